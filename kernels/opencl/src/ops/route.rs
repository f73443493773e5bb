//! Launches of what surrounds the products of experts: the choice of experts, and the sum of what they make.
#![expect(unsafe_code, reason = "launches kernels")]

use super::kernels::Kernels;
use super::programs::{Family, chunk};
use super::views::{F32, View, int};
use crate::error::OpenClError;
use crate::session::{Arg, Buffer};
use lapwing_model::op::{RouteOp, RouterScore};

/// Choice of experts by the logits of each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<'a> {
    pub(crate) op: &'a RouteOp,
    /// Rows of a logit for each expert.
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    /// Experts to choose from.
    pub(crate) experts: usize,
    /// One value for each expert.
    pub(crate) bias: Option<&'a Buffer>,
    /// Room for [`Route::scores_bytes`].
    pub(crate) scores: &'a Buffer,
    /// Rows of the numbers of the chosen experts, and of as many weights.
    pub(crate) out: View<'a>,
}

impl Route<'_> {
    /// Bytes of the scores of rows.
    pub(crate) fn scores_bytes(op: &RouteOp, rows: usize, experts: usize) -> usize {
        rows * (experts + op.groups.map_or(0, |groups| groups.count)) * F32
    }

    /// # Panics
    /// If an operand is too small, or there are fewer experts than are chosen.
    fn check(&self) {
        let Route { op, rows, experts, .. } = *self;
        assert!((1..=experts).contains(&op.used), "{} of {experts} experts", op.used);
        self.x.check(rows, experts, "logits of experts");
        self.out.check(rows, 2 * op.used, "out of a choice of experts");
        let bytes = Route::scores_bytes(op, rows, experts);
        assert!(bytes <= self.scores.bytes(), "room for scores of {bytes} bytes");
        if let Some(bias) = self.bias {
            assert!(bias.bytes() / F32 >= experts, "a bias of {} bytes", bias.bytes());
        }
        if let Some(groups) = op.groups {
            let is_even = groups.count > 0 && experts.is_multiple_of(groups.count);
            assert!(is_even, "{} groups of {experts} experts", groups.count);
        }
    }
}

/// The sum of what the experts of each row have made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix<'a> {
    /// Rows of `used · width` values.
    pub(crate) made: View<'a>,
    /// Rows as a [`Route`] writes them.
    pub(crate) route: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) used: usize,
    /// Whether each one's share is multiplied by its weight.
    pub(crate) is_weighted: bool,
    pub(crate) out: View<'a>,
}

impl Kernels {
    /// Chooses experts. Of equal ones the first are chosen.
    ///
    /// # Panics
    /// If an operand is too small, or there are fewer experts than are chosen.
    pub(crate) fn route(&mut self, job: &Route<'_>) -> Result<(), OpenClError> {
        job.check();
        let RouteOp { used, score, groups, is_normalised, scale, .. } = *job.op;
        let [x, x_at, x_stride] = job.x.args();
        let [out, out_at, out_stride] = job.out.args();
        let args = [
            x,
            x_at,
            x_stride,
            Arg::Buffer(job.bias.unwrap_or(job.x.buffer)),
            Arg::Buffer(job.scores),
            out,
            out_at,
            out_stride,
            int(job.rows),
            int(job.experts),
            int(used),
            // As in common.cl.
            Arg::Int(match score {
                RouterScore::Softmax => 0,
                RouterScore::Sigmoid => 1,
                RouterScore::ChosenSoftmax => 2,
                RouterScore::ChosenSigmoid => 3,
                RouterScore::RootSoftplus => 4,
            }),
            Arg::Int(i32::from(job.bias.is_some())),
            int(groups.map_or(0, |groups| groups.count)),
            int(groups.map_or(0, |groups| groups.used)),
            Arg::Int(i32::from(is_normalised)),
            Arg::Float(RouteOp::LEAST_SUM),
            Arg::Float(scale),
        ];
        // SAFETY: the parameters of both kernels; the operands were checked, and the numbers that are written are below
        // `experts`.
        unsafe { self.launch_rows("choose_experts", &args, [1, job.rows]) }
    }

    /// Adds up what experts have made, in the order of the route.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn mix(&mut self, job: &Mix<'_>) -> Result<(), OpenClError> {
        let Mix { rows, width, used, is_weighted, .. } = *job;
        assert!(used > 0, "a row has an expert");
        job.made.check(rows, used * width, "what experts have made");
        job.route.check(rows, 2 * used, "a route");
        job.out.check(rows, width, "out of a mixture");
        let views = [job.made, job.route, job.out];
        let mut args: Vec<Arg<'_>> = views.iter().flat_map(View::args).collect();
        args.extend([int(rows), int(width), int(used), Arg::Int(i32::from(is_weighted))]);
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel("mix_experts"), &args, items) }
    }
}

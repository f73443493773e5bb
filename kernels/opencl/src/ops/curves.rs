//! Launches of layer norms, and of functions of each value.
#![expect(unsafe_code, reason = "launches kernels")]

use super::kernels::Kernels;
use super::programs::{Family, chunk};
use super::views::{F32, View, int};
use crate::error::OpenClError;
use crate::session::{Arg, Buffer};
use lapwing_model::op::{Curve, Xielu};

/// Layer norm of groups of each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerNorm<'a> {
    /// Rows of `groups · len` values.
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    /// Groups per row.
    pub(crate) groups: usize,
    /// Values per group.
    pub(crate) len: usize,
    /// Gains of a row; 1 without them.
    pub(crate) weight: Option<&'a Buffer>,
    /// Offsets of a row; 0 without them.
    pub(crate) bias: Option<&'a Buffer>,
    pub(crate) eps: f32,
    /// May be `x`.
    pub(crate) out: View<'a>,
}

/// `out = curve(x)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curved<'a> {
    pub(crate) curve: Curve,
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// May be `x`.
    pub(crate) out: View<'a>,
}

impl Kernels {
    /// Layer norm.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn layer_norm(&mut self, job: &LayerNorm<'_>) -> Result<(), OpenClError> {
        let width = job.groups * job.len;
        job.x.check(job.rows, width, "x of a norm");
        job.out.check(job.rows, width, "out of a norm");
        for part in [job.weight, job.bias].into_iter().flatten() {
            let values = part.bytes() / F32;
            assert!(width <= values, "{values} weights or biases for rows of {width}");
        }
        let parts = i32::from(job.weight.is_some()) + 2 * i32::from(job.bias.is_some());
        let [x, x_at, x_stride] = job.x.args();
        let [out, out_at, out_stride] = job.out.args();
        let args = [
            x,
            x_at,
            x_stride,
            Arg::Buffer(job.weight.unwrap_or(job.x.buffer)),
            Arg::Buffer(job.bias.unwrap_or(job.x.buffer)),
            out,
            out_at,
            out_stride,
            int(job.rows),
            int(job.groups),
            int(job.len),
            Arg::Int(parts),
            Arg::Float(job.eps),
        ];
        // SAFETY: the parameters of both kernels; the operands were checked.
        unsafe { self.launch_rows("layer_norm", &args, [job.groups, job.rows]) }
    }

    /// A function of each value.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn curve(&mut self, job: &Curved<'_>) -> Result<(), OpenClError> {
        let Curved { rows, width, .. } = *job;
        let (name, numbers) = match job.curve {
            Curve::Gelu => ("gelu", vec![0.0]),
            Curve::GeluTanh => ("gelu_tanh", vec![0.0]),
            Curve::ReluSquared => ("relu_squared", vec![0.0]),
            Curve::Clamp { limit } => ("clamp_to", vec![limit]),
            Curve::Sigmoid => ("sigmoid", vec![0.0]),
            Curve::Softplus => ("softplus", vec![0.0]),
            Curve::Exp => ("exponential", vec![0.0]),
            Curve::Xielu(Xielu { positive, negative, beta, eps }) => {
                ("xielu", vec![positive, negative, beta, eps])
            }
        };
        let views = [job.x, job.out];
        views.iter().for_each(|view| view.check(rows, width, name));
        let mut args: Vec<Arg<'_>> = views.iter().flat_map(View::args).collect();
        args.extend([int(rows), int(width)]);
        args.extend(numbers.into_iter().map(Arg::Float));
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel(name), &args, items) }
    }
}

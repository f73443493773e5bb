//! Launches of the blocks of chosen experts.
//!
//! A slot is a row and one of its experts. With few slots, each is a product of its own. With many, they are sorted by
//! their experts on the device, and the rows of an expert are multiplied together. Both give the same bits.
#![expect(unsafe_code, reason = "launches kernels")]

use super::curves::Curved;
use super::kernels::Kernels;
use super::matmul::shapes_for;
use super::programs::{Family, chunk, segment};
use super::rows::Gated;
use super::shapes::Grouping;
use super::stack::Stack;
use super::variants::Variant;
use super::views::{F32, View, int};
use crate::error::OpenClError;
use crate::pack::PANEL;
use crate::session::{Arg, Buffer, Range};
use lapwing_model::op::ExpertForm;

/// A matrix of each expert, with what is added to its product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertMatrices<'a> {
    pub(crate) stack: &'a Stack,
    /// The expert of its first matrix.
    pub(crate) first: usize,
    /// Biases, the first of them of the first expert, and how far it is to those of the next.
    pub(crate) bias: Option<(&'a Buffer, [usize; 2])>,
    /// A factor for each expert's product, before the bias.
    pub(crate) factors: Option<&'a Buffer>,
}

/// What each expert of a row makes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experts<'a> {
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    /// Rows as [`Kernels::route`] writes them; numbers that no expert has are replaced.
    pub(crate) route: View<'a>,
    /// Experts of a row.
    pub(crate) used: usize,
    /// Experts of the layer.
    pub(crate) all: usize,
    /// The first of those that are computed, and their number. The slots of others are not written.
    pub(crate) own: [usize; 2],
    pub(crate) gate: Option<ExpertMatrices<'a>>,
    pub(crate) up: ExpertMatrices<'a>,
    pub(crate) form: ExpertForm,
    pub(crate) down: ExpertMatrices<'a>,
    /// Whether the weights of the route multiply what experts read.
    pub(crate) weighs_input: bool,
    /// Rows of `used` times the outputs of `down`, without gaps.
    pub(crate) out: View<'a>,
}

/// Memory for what is between the products: gates, ups, what experts read, and the sorted slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertRoom<'a>(pub(crate) [&'a Buffer; 4]);

/// A product of each slot with the matrix of its expert.
struct Product<'a> {
    of: ExpertMatrices<'a>,
    x: View<'a>,
    /// Slots that share a row of `x`; 0 if it has a row for each place in the order of the products.
    x_slots: usize,
    out: View<'a>,
    /// Whether `out` has a row for each slot, not for each place.
    to_slots: bool,
}

impl<'a> Experts<'a> {
    fn slots(&self) -> usize {
        self.rows * self.used
    }

    fn count(&self) -> usize {
        self.own[1]
    }

    /// Whether slots are sorted by experts: where experts have several on average.
    pub(crate) fn is_sorted(&self) -> bool {
        self.rows > 1 && 2 * self.slots() > self.all
    }

    /// Rows begin at multiples of 4 values, as the kernels of groups need it.
    fn stride(width: usize) -> usize {
        width.next_multiple_of(4)
    }

    /// Bytes of an [`ExpertRoom`].
    pub(crate) fn room_bytes(&self) -> [usize; 4] {
        let values = |width: usize| self.slots() * Experts::stride(width) * F32;
        let inner = values(self.up.stack.rows);
        [
            if self.gate.is_some() { inner } else { 0 },
            inner,
            if self.weighs_input { values(self.up.stack.matrix.cols) } else { 0 },
            if self.is_sorted() { (self.count() + 1 + self.slots()) * size_of::<i32>() } else { 0 },
        ]
    }

    /// # Panics
    /// If an operand is too small, matrices do not fit each other, or a form with gates has none.
    fn check(&self, room: &ExpertRoom<'_>) {
        let Experts { x, rows, route, used, gate, up, down, out, .. } = self;
        let (cols, inner, made) = (up.stack.matrix.cols, up.stack.rows, used * down.stack.rows);
        let end_of_own = self.own[0] + self.own[1];
        assert!(
            self.own[1] > 0 && end_of_own <= self.all,
            "{:?} of {} experts",
            self.own,
            self.all
        );
        x.check(*rows, cols, "x of experts");
        route.check(*rows, 2 * used, "a route");
        out.check(*rows, made, "out of experts");
        assert_eq!(out.stride, made, "the outputs of experts have no gaps");
        assert_eq!(down.stack.matrix.cols, inner, "inputs of the last product");
        for of in gate.iter().chain([up, down]) {
            let stack = of.stack;
            let has_own = of.first <= self.own[0] && end_of_own <= of.first + stack.count;
            assert!(has_own, "matrices of these experts");
            let has = |buffer: &Buffer, values| buffer.bytes() / F32 >= values;
            let end = |[first, stride]: [usize; 2]| first + (end_of_own - 1) * stride + stack.rows;
            assert!(of.bias.is_none_or(|(bias, at)| has(bias, end(at))), "biases of experts");
            assert!(of.factors.is_none_or(|factors| has(factors, end_of_own)), "factors");
        }
        let is_plain = matches!(self.form, ExpertForm::Plain(_));
        let fits =
            |gate: &ExpertMatrices<'_>| gate.stack.rows == inner && gate.stack.matrix.cols == cols;
        assert!(is_plain || gate.as_ref().is_some_and(fits), "the gates of {:?}", self.form);
        let is_enough = |(buffer, bytes): (&&Buffer, usize)| buffer.bytes() >= bytes;
        assert!(room.0.iter().zip(self.room_bytes()).all(is_enough), "room for experts");
    }
}

impl Kernels {
    /// Computes what the chosen experts make of rows.
    ///
    /// # Panics
    /// If an operand is too small, matrices do not fit each other, or a form with gates has none.
    pub(crate) fn experts(
        &mut self,
        job: &Experts<'_>,
        room: ExpertRoom<'_>,
    ) -> Result<(), OpenClError> {
        job.check(&room);
        if job.rows == 0 {
            return Ok(());
        }
        let ExpertRoom([gates, ups, weighted, table]) = room;
        let (slots, cols, inner) = (job.slots(), job.up.stack.matrix.cols, job.up.stack.rows);
        if job.is_sorted() {
            self.sort_experts(job, table)?;
        }
        let view = |buffer, width| View { buffer, at: 0, stride: Experts::stride(width) };
        let (x, x_slots) = match job.weighs_input {
            true => (view(weighted, cols), 1),
            false => (job.x, job.used),
        };
        if job.weighs_input {
            self.weigh_rows(job, x)?;
        }
        let (gate, up) = (view(gates, inner), view(ups, inner));
        let first = |of, out| Product { of, x, x_slots, out, to_slots: false };
        if let Some(of) = job.gate {
            self.expert_product(job, table, &first(of, gate))?;
        }
        self.expert_product(job, table, &first(job.up, up))?;
        let both = [gate, up, up];
        match job.form {
            ExpertForm::Gated(activation) => {
                self.gated(&Gated { activation, gate, up, rows: slots, width: inner, out: up })?;
            }
            ExpertForm::ReluGated => self.elementwise("gated_relu", both, [slots, inner], &[])?,
            ExpertForm::ClampedGated { alpha, gate_limit, limit, offset } => {
                let numbers = [alpha, gate_limit, limit, offset];
                self.elementwise("gated_clamped", both, [slots, inner], &numbers)?;
            }
            ExpertForm::Plain(curve) => {
                self.curve(&Curved { curve, x: up, rows: slots, width: inner, out: up })?;
            }
        }
        let out = View { stride: job.down.stack.rows, ..job.out };
        let last = Product { of: job.down, x: up, x_slots: 0, out, to_slots: true };
        self.expert_product(job, table, &last)
    }

    /// Sorts the slots by their experts.
    fn sort_experts(&mut self, job: &Experts<'_>, table: &Buffer) -> Result<(), OpenClError> {
        let [route, at, stride] = job.route.args();
        let table = Arg::Buffer(table);
        let sizes = [job.rows, job.count(), job.used, job.all, job.own[0]].map(int);
        let args: Vec<Arg<'_>> = [route, at, stride, table].into_iter().chain(sizes).collect();
        // SAFETY: the kernel's parameters; the operands were checked, and the table has room for the experts, the
        // number of slots and these.
        unsafe { self.launch(Family::Rows.kernel("sort_experts"), &args, [job.count() + 1, 1, 1]) }
    }

    /// Multiplies what experts read by the weights of the route.
    fn weigh_rows(&mut self, job: &Experts<'_>, out: View<'_>) -> Result<(), OpenClError> {
        let width = job.up.stack.matrix.cols;
        let mut args: Vec<Arg<'_>> = [job.x, job.route, out].iter().flat_map(View::args).collect();
        args.extend([int(job.slots()), int(width), int(job.used)]);
        let items = [width.div_ceil(chunk(self.is_cpu)), job.slots(), 1];
        // SAFETY: the kernel's parameters; the operands were checked, and `out` has a row for each slot.
        unsafe { self.launch(Family::Rows.kernel("weigh_rows"), &args, items) }
    }

    /// Multiplies each slot with the matrix of its expert.
    fn expert_product(
        &mut self,
        job: &Experts<'_>,
        table: &Buffer,
        product: &Product<'_>,
    ) -> Result<(), OpenClError> {
        let stack = product.of.stack;
        self.check_order(&stack.matrix);
        let (dtype, cols) = (stack.matrix.dtype, stack.matrix.cols);
        let shapes = shapes_for(product.x, self.shapes(dtype));
        let (slots, count) = (job.slots(), job.count());
        let rows = if job.is_sorted() { slots.div_ceil(job.all) } else { 1 };
        let (variant, grouping, _) = shapes.variant(rows, cols, false, self.slices());
        let Variant { name, rows, panels, .. } = variant;
        // Each expert that has slots may have one tile that is not full.
        let tiles = if job.is_sorted() { slots / rows + count.min(slots) } else { slots };
        let panels = stack.rows.div_ceil(PANEL).div_ceil(panels);
        let args = self.product_args(job, table, product);
        let items = if self.is_cpu { [tiles, panels, 1] } else { [panels, tiles, 1] };
        // SAFETY: MATMUL_PARAMETERS of experts; the operands were checked for all slots and channels. Tiles that no
        // expert has do nothing, and neither do items beyond the channels. The groups are those that the kernels state.
        unsafe {
            match grouping {
                Grouping::Items => self.launch(Family::experts(dtype).kernel(name), &args, items),
                Grouping::Groups(local) => {
                    let range = Range::plane([panels, tiles], local);
                    self.launch_groups(Family::experts_group(dtype).kernel(name), &args, range)
                }
            }
        }
    }

    /// MATMUL_PARAMETERS, with those of experts.
    fn product_args<'a>(
        &self,
        job: &Experts<'a>,
        table: &'a Buffer,
        product: &Product<'a>,
    ) -> Vec<Arg<'a>> {
        let Product { of: ExpertMatrices { stack, first, bias, factors }, x, out, .. } = *product;
        let [own, count] = job.own;
        let is = |flag: bool| Arg::Int(i32::from(flag));
        let [from, from_at, from_stride] = x.args();
        let [to, to_at, to_stride] = out.args();
        let [route, route_at, route_stride] = job.route.args();
        let (biases, [first_bias, bias_stride]) = bias.unwrap_or((out.buffer, [0, 0]));
        let first_bias = first_bias + own * bias_stride;
        let cols = stack.matrix.cols;
        let (weight, cols_arg, slots) =
            (Arg::Buffer(&stack.matrix.buffer), int(cols), int(job.slots()));
        let of_matmul = [
            [weight, from, Arg::Buffer(biases), to, to].to_vec(),
            [cols_arg, slots, int(first_bias), int(stack.rows), from_at, from_stride].to_vec(),
            // No residual.
            [is(bias.is_some()), int(0), int(0), int(0), to_at, to_stride].to_vec(),
            // No norm and no gate.
            [int(segment(self.slices(), cols)), to, int(0), Arg::Float(0.0), int(0)].to_vec(),
        ];
        let of_experts = [
            [route, route_at, route_stride, Arg::Buffer(table)].to_vec(),
            [Arg::Buffer(factors.unwrap_or(out.buffer)), is(factors.is_some())].to_vec(),
            [int(count), int(job.used), int(stack.panels), int(bias_stride)].to_vec(),
            [is(job.is_sorted()), int(product.x_slots), is(product.to_slots)].to_vec(),
            [int(job.all), int(own), int(own - first)].to_vec(),
        ];
        of_matmul.into_iter().chain(of_experts).flatten().collect()
    }
}

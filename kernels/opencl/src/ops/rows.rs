//! Launches of ops on rows of values.
#![expect(unsafe_code, reason = "launches kernels")]

use super::kernels::Kernels;
use super::programs::{Family, PIECE, ROW_ITEMS, chunk};
use super::views::{F32, View, int};
use crate::error::OpenClError;
use crate::session::{Arg, Buffer, Range};
use lapwing_model::op::{Activation, RopePairs};

/// Bytes of the result of a piece of columns.
pub(crate) const RESULT: usize = 12;

/// RMS norm of groups of each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RmsNorm<'a> {
    /// Rows of `groups · len` values.
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    /// Groups per row.
    pub(crate) groups: usize,
    /// Gain, `len` values.
    pub(crate) weight: &'a Buffer,
    /// Values per group.
    pub(crate) len: usize,
    pub(crate) eps: f32,
    /// May be `x`.
    pub(crate) out: View<'a>,
}

/// Heads of a rotary embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RopeHeads {
    pub(crate) heads: usize,
    pub(crate) head_dim: usize,
    /// Values per head that are rotated; even.
    pub(crate) dims: usize,
    pub(crate) pairs: RopePairs,
}

/// Rotary embedding of each head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rope<'a> {
    /// Rows of `heads · head_dim` values.
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    pub(crate) shape: RopeHeads,
    /// For each row all cosines, then all sines.
    pub(crate) angles: View<'a>,
    /// May be `x`.
    pub(crate) out: View<'a>,
}

/// `out = activation(gate) · up`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gated<'a> {
    pub(crate) activation: Activation,
    pub(crate) gate: View<'a>,
    pub(crate) up: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// May be `gate` or `up`.
    pub(crate) out: View<'a>,
}

/// `out = a + b`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Add<'a> {
    pub(crate) a: View<'a>,
    pub(crate) b: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// May be `a` or `b`.
    pub(crate) out: View<'a>,
}

/// An op on each value, with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    /// `out = number · x`.
    Scale,
    /// `out = number · tanh(x / number)`.
    SoftCap,
}

/// An op on each value of `x`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unary<'a> {
    pub(crate) op: UnaryOp,
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) number: f32,
    /// May be `x`.
    pub(crate) out: View<'a>,
}

impl Kernels {
    /// RMS norm.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn rms_norm(&mut self, job: &RmsNorm<'_>) -> Result<(), OpenClError> {
        let width = job.groups * job.len;
        job.x.check(job.rows, width, "x of a norm");
        job.out.check(job.rows, width, "out of a norm");
        let gains = job.weight.bytes() / F32;
        assert!(job.len <= gains, "{gains} gains for groups of {}", job.len);
        let [x, x_at, x_stride] = job.x.args();
        let [out, out_at, out_stride] = job.out.args();
        let args = [
            x,
            x_at,
            x_stride,
            Arg::Buffer(job.weight),
            out,
            out_at,
            out_stride,
            int(job.rows),
            int(job.groups),
            int(job.len),
            Arg::Float(job.eps),
        ];
        let (name, groups) = ("rms_norm", [job.groups, job.rows]);
        // SAFETY: the parameters of both kernels; the operands were checked.
        unsafe { self.launch_rows(name, &args, groups) }
    }

    /// Rotary embedding.
    ///
    /// # Panics
    /// If an operand is too small, or a head has fewer values than are rotated.
    pub(crate) fn rope(&mut self, job: &Rope<'_>) -> Result<(), OpenClError> {
        let RopeHeads { heads, head_dim, dims, pairs } = job.shape;
        assert!(dims <= head_dim, "{dims} of {head_dim} values are rotated");
        job.x.check(job.rows, heads * head_dim, "x of a rotary embedding");
        job.out.check(job.rows, heads * head_dim, "out of a rotary embedding");
        job.angles.check(job.rows, 2 * (dims / 2), "angles");
        let [x, x_at, x_stride] = job.x.args();
        let [angles, angles_at, angles_stride] = job.angles.args();
        let [out, out_at, out_stride] = job.out.args();
        let args = [
            x,
            x_at,
            x_stride,
            angles,
            angles_at,
            angles_stride,
            out,
            out_at,
            out_stride,
            int(job.rows),
            int(heads),
            int(head_dim),
            int(dims / 2),
            Arg::Int(i32::from(pairs == RopePairs::Adjacent)),
        ];
        let items = [head_dim - dims / 2, job.rows, if self.is_cpu { 1 } else { heads }];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel("rope"), &args, items) }
    }

    /// Gated activation.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn gated(&mut self, job: &Gated<'_>) -> Result<(), OpenClError> {
        let name = match job.activation {
            Activation::Silu => "gated_silu",
            Activation::GeluTanh => "gated_gelu",
            Activation::Sigmoid => "gated_sigmoid",
        };
        self.elementwise(name, [job.gate, job.up, job.out], [job.rows, job.width], &[])
    }

    /// Sum of two values.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn add(&mut self, job: &Add<'_>) -> Result<(), OpenClError> {
        self.elementwise("add", [job.a, job.b, job.out], [job.rows, job.width], &[])
    }

    /// Product of two values, element by element.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn mul(&mut self, job: &Add<'_>) -> Result<(), OpenClError> {
        self.elementwise("mul", [job.a, job.b, job.out], [job.rows, job.width], &[])
    }

    /// Launches an op on two operands, with numbers.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(super) fn elementwise(
        &mut self,
        name: &'static str,
        views: [View<'_>; 3],
        [rows, width]: [usize; 2],
        numbers: &[f32],
    ) -> Result<(), OpenClError> {
        views.iter().for_each(|view| view.check(rows, width, name));
        let mut args: Vec<Arg<'_>> = views.iter().flat_map(View::args).collect();
        args.extend([int(rows), int(width)]);
        args.extend(numbers.iter().map(|number| Arg::Float(*number)));
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the parameters of the kernels of two operands; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel(name), &args, items) }
    }

    /// Scales values, or caps them.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn unary(&mut self, job: &Unary<'_>) -> Result<(), OpenClError> {
        let Unary { rows, width, .. } = *job;
        let name = match job.op {
            UnaryOp::Scale => "scale",
            UnaryOp::SoftCap => "soft_cap",
        };
        let views = [job.x, job.out];
        views.iter().for_each(|view| view.check(rows, width, name));
        let mut args: Vec<Arg<'_>> = views.iter().flat_map(View::args).collect();
        args.extend([int(rows), int(width), Arg::Float(job.number)]);
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel(name), &args, items) }
    }

    /// Reduces each row to one result per piece of columns, as [`top`](crate::top) reads them.
    ///
    /// # Panics
    /// If `x` or `out` is too small.
    pub(crate) fn top(
        &mut self,
        x: View<'_>,
        rows: usize,
        width: usize,
        out: &Buffer,
    ) -> Result<(), OpenClError> {
        let pieces = width.div_ceil(PIECE);
        x.check(rows, width, "logits");
        let bytes = rows * pieces * RESULT;
        assert!(bytes <= out.bytes(), "{} bytes for results of {bytes}", out.bytes());
        let [buffer, at, stride] = x.args();
        let args = [buffer, at, stride, Arg::Buffer(out), int(rows), int(width), int(pieces)];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch_rows("top", &args, [pieces, rows]) }
    }

    /// Launches an op on parts of rows: an item computes a part, or on a GPU a work-group.
    ///
    /// # Safety
    /// As [`launch`](Kernels::launch), for the kernels of that name of both families.
    pub(super) unsafe fn launch_rows(
        &mut self,
        name: &'static str,
        args: &[Arg<'_>],
        [parts, rows]: [usize; 2],
    ) -> Result<(), OpenClError> {
        if self.shares(Family::RowsGroup.kernel(name), ROW_ITEMS)? {
            let range = Range::plane([parts, rows], [ROW_ITEMS, 1]);
            // SAFETY: the caller's promise; the kernel states groups of that many items.
            unsafe { self.launch_groups(Family::RowsGroup.kernel(name), args, range) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.launch(Family::Rows.kernel(name), args, [parts, rows, 1]) }
        }
    }
}

//! Launches of ops that pick rows or values.
#![expect(unsafe_code, reason = "launches kernels")]

use super::kernels::Kernels;
use super::matrix::Matrix;
use super::programs::{Family, RUN, chunk};
use super::views::{Ints, View, int};
use crate::error::OpenClError;
use crate::session::Arg;

/// Rows of a table, times a factor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embed<'a> {
    /// Row of the table for each row; numbers out of range are replaced by the nearest.
    pub(crate) ids: Ints<'a>,
    pub(crate) rows: usize,
    pub(crate) table: &'a Matrix,
    pub(crate) scale: f32,
    pub(crate) out: View<'a>,
}

/// Copies of some rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectRows<'a> {
    pub(crate) x: View<'a>,
    /// Row of `x` for each row; numbers beyond the buffer are replaced by the nearest.
    pub(crate) selected: Ints<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Not the rows of `x`.
    pub(crate) out: View<'a>,
}

/// Values, each several times in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatValues<'a> {
    /// Rows of `width / times` values.
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    /// Values of a row of `out`.
    pub(crate) width: usize,
    pub(crate) times: usize,
    /// Not the values of `x`.
    pub(crate) out: View<'a>,
}

/// Heads of two values, joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinHeads<'a> {
    /// Rows of `heads · of_a` values.
    pub(crate) a: View<'a>,
    /// Rows of `heads · of_b` values, or `of_b` if they are shared.
    pub(crate) b: View<'a>,
    pub(crate) rows: usize,
    pub(crate) heads: usize,
    /// Values of a head in `a`.
    pub(crate) of_a: usize,
    /// Values that a head gets of `b`.
    pub(crate) of_b: usize,
    /// Whether all heads get the same ones.
    pub(crate) is_shared: bool,
    /// Rows of `heads · (of_a + of_b)` values, not those of `a` or `b`.
    pub(crate) out: View<'a>,
}

impl Kernels {
    /// Rows of an embedding table.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn embed(&mut self, job: &Embed<'_>) -> Result<(), OpenClError> {
        let Embed { rows, table, .. } = *job;
        self.check_order(table);
        job.ids.check(rows, "token ids");
        job.out.check(rows, table.cols, "out of an embedding");
        if table.rows == 0 {
            return Ok(());
        }
        let [out, out_at, out_stride] = job.out.args();
        let args = [
            Arg::Buffer(&table.buffer),
            Arg::Buffer(job.ids.buffer),
            out,
            int(table.rows),
            int(table.cols),
            int(rows),
            int(job.ids.at),
            out_at,
            out_stride,
            Arg::Float(job.scale),
        ];
        let items = [table.cols.div_ceil(RUN), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked, and the kernel keeps ids within
        // the table.
        unsafe { self.launch(Family::embed(table.dtype).kernel("embed"), &args, items) }
    }

    /// Copies rows.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn select_rows(&mut self, job: &SelectRows<'_>) -> Result<(), OpenClError> {
        let SelectRows { rows, width, .. } = *job;
        job.selected.check(rows, "selected rows");
        job.out.check(rows, width, "out of selected rows");
        let limit = job.x.rows_of(width);
        assert!(rows == 0 || limit > 0, "no row of {width} values to select");
        let [x, x_at, x_stride] = job.x.args();
        let [out, out_at, out_stride] = job.out.args();
        let args = [
            x,
            x_at,
            x_stride,
            Arg::Buffer(job.selected.buffer),
            out,
            out_at,
            out_stride,
            int(job.selected.at),
            int(limit),
            int(rows),
            int(width),
        ];
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked, and the kernel keeps numbers of
        // rows below `limit`.
        unsafe { self.launch(Family::Rows.kernel("select_rows"), &args, items) }
    }

    /// Repeats values.
    ///
    /// # Panics
    /// If an operand is too small, or `out` has no whole numbers of each value.
    pub(crate) fn repeat_values(&mut self, job: &RepeatValues<'_>) -> Result<(), OpenClError> {
        let RepeatValues { rows, width, times, .. } = *job;
        assert!(times > 0 && width.is_multiple_of(times), "{times} of each in {width} values");
        job.x.check(rows, width / times, "x of repeated values");
        job.out.check(rows, width, "out of repeated values");
        let mut args: Vec<Arg<'_>> = [job.x, job.out].iter().flat_map(View::args).collect();
        args.extend([int(rows), int(width), int(times)]);
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel("repeat_values"), &args, items) }
    }

    /// Joins the heads of two values.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn join_heads(&mut self, job: &JoinHeads<'_>) -> Result<(), OpenClError> {
        let JoinHeads { a, b, rows, heads, of_a, of_b, is_shared, out } = *job;
        let (b_step, width) = (if is_shared { 0 } else { of_b }, heads * (of_a + of_b));
        a.check(rows, heads * of_a, "the first of joined heads");
        b.check(rows, if is_shared { of_b } else { heads * of_b }, "the second of joined heads");
        out.check(rows, width, "out of joined heads");
        let mut args: Vec<Arg<'_>> = [a, b, out].iter().flat_map(View::args).collect();
        args.extend([rows, width, of_a, of_b, b_step].map(int));
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel("join_heads"), &args, items) }
    }
}

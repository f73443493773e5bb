//! Launches of ops that sum over rows, or add values with factors of each row.
#![expect(unsafe_code, reason = "launches kernels")]

use super::kernels::Kernels;
use super::programs::{Family, chunk};
use super::views::{View, int};
use crate::error::OpenClError;
use crate::session::Arg;

/// `out = max(x − mean − deviations · σ, 0)` for each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excess<'a> {
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) deviations: f32,
    /// May be `x`.
    pub(crate) out: View<'a>,
}

/// `out = x · |y| / |x|` for each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithLength<'a> {
    pub(crate) x: View<'a>,
    pub(crate) y: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// May be `x`.
    pub(crate) out: View<'a>,
}

/// `out = a + factor · b`, with a factor for each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddWeighted<'a> {
    pub(crate) a: View<'a>,
    pub(crate) b: View<'a>,
    /// Rows that begin with the factor.
    pub(crate) factors: View<'a>,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// May be `a` or `b`.
    pub(crate) out: View<'a>,
}

impl Kernels {
    /// What exceeds the mean of a row by so many standard deviations.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn excess(&mut self, job: &Excess<'_>) -> Result<(), OpenClError> {
        let views = [job.x, job.out];
        views.iter().for_each(|view| view.check(job.rows, job.width, "excess"));
        let mut args: Vec<Arg<'_>> = views.iter().flat_map(View::args).collect();
        args.extend([int(job.rows), int(job.width), Arg::Float(job.deviations)]);
        // SAFETY: the parameters of both kernels; the operands were checked.
        unsafe { self.launch_rows("excess", &args, [1, job.rows]) }
    }

    /// Rows with the lengths of others.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn with_length(&mut self, job: &WithLength<'_>) -> Result<(), OpenClError> {
        let views = [job.x, job.y, job.out];
        views.iter().for_each(|view| view.check(job.rows, job.width, "with_length"));
        let mut args: Vec<Arg<'_>> = views.iter().flat_map(View::args).collect();
        args.extend([int(job.rows), int(job.width)]);
        // SAFETY: the parameters of both kernels; the operands were checked.
        unsafe { self.launch_rows("with_length", &args, [1, job.rows]) }
    }

    /// Sum of a value and of another with a factor for each row.
    ///
    /// # Panics
    /// If an operand is too small.
    pub(crate) fn add_weighted(&mut self, job: &AddWeighted<'_>) -> Result<(), OpenClError> {
        let AddWeighted { rows, width, .. } = *job;
        [job.a, job.b, job.out].iter().for_each(|view| view.check(rows, width, "add_weighted"));
        job.factors.check(rows, 1, "factors of rows");
        let views = [job.a, job.b, job.factors, job.out];
        let mut args: Vec<Arg<'_>> = views.iter().flat_map(View::args).collect();
        args.extend([int(rows), int(width)]);
        let items = [width.div_ceil(chunk(self.is_cpu)), rows, 1];
        // SAFETY: the kernel's parameters; the operands were checked.
        unsafe { self.launch(Family::Rows.kernel("add_weighted"), &args, items) }
    }
}

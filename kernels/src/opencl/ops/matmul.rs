//! Launches of matmuls.
#![expect(unsafe_code, reason = "launches kernels")]

use std::ops::Range;

use super::programs::{FEW, Family, TILE, Variant};
use super::{F32, Kernels, Matrix, View, int};
use crate::opencl::error::OpenClError;
use crate::opencl::pack::{CHANNELS, PANEL};
use crate::opencl::session::{Arg, Buffer};

/// Fewest rows for the tile kernel.
const TILE_MIN: usize = 6;

/// `out = x · weightᵀ + bias + residual` for some output channels.
#[derive(Clone, Debug)]
pub(in crate::opencl) struct MatMul<'a> {
    /// Rows of `weight.cols()` values.
    pub(in crate::opencl) x: View<'a>,
    pub(in crate::opencl) rows: usize,
    pub(in crate::opencl) weight: &'a Matrix,
    /// Output channels; the first is a multiple of [`CHANNELS`].
    pub(in crate::opencl) channels: Range<usize>,
    /// One value for each output channel of the matrix.
    pub(in crate::opencl) bias: Option<&'a Buffer>,
    /// Rows that are added; may be the rows of `out`.
    pub(in crate::opencl) residual: Option<View<'a>>,
    /// Rows of `channels.len()` values; not those of `x`.
    pub(in crate::opencl) out: View<'a>,
}

impl MatMul<'_> {
    /// # Panics
    /// If an operand is too small or the channels are not those of the matrix.
    fn check(&self) {
        let MatMul { rows, weight, channels, .. } = self;
        assert!(
            channels.start <= channels.end
                && channels.end <= weight.rows
                && channels.start.is_multiple_of(CHANNELS),
            "the channels {channels:?} of a matrix of {}",
            weight.rows
        );
        self.x.check(*rows, weight.cols, "x of a matmul");
        self.out.check(*rows, channels.len(), "out of a matmul");
        if let Some(residual) = self.residual {
            residual.check(*rows, channels.len(), "residual of a matmul");
        }
        if let Some(bias) = self.bias {
            assert!(bias.bytes() / F32 >= weight.rows, "a bias of {} bytes", bias.bytes());
        }
    }
}

/// The kernel for the first of `rows` rows, and how many rows it takes.
fn next_variant(rows: usize, is_cpu: bool) -> (Variant, usize) {
    if is_cpu && rows >= TILE_MIN {
        return (TILE, rows);
    }
    let few = FEW.into_iter().find(|few| few.rows <= rows).unwrap_or(FEW[FEW.len() - 1]);
    (few, rows / few.rows * few.rows)
}

impl Kernels {
    /// Multiplies rows with a matrix.
    ///
    /// # Panics
    /// If an operand is too small for its rows, or the channels are not those of the matrix.
    pub(in crate::opencl) fn matmul(&mut self, job: &MatMul<'_>) -> Result<(), OpenClError> {
        job.check();
        let mut done = 0;
        while done < job.rows && !job.channels.is_empty() {
            let (variant, rows) = next_variant(job.rows - done, self.is_cpu);
            self.matmul_rows(job, variant, (done, rows))?;
            done += rows;
        }
        Ok(())
    }

    /// Computes `rows` rows from `first` on with one kernel.
    fn matmul_rows(
        &mut self,
        job: &MatMul<'_>,
        variant: Variant,
        (first, rows): (usize, usize),
    ) -> Result<(), OpenClError> {
        let weight = &job.weight.buffer;
        let (x, out) = (job.x.after(first), job.out.after(first));
        let residual = job.residual.map(|residual| residual.after(first)).unwrap_or(out);
        let args = [
            Arg::Buffer(weight),
            Arg::Buffer(x.buffer),
            Arg::Buffer(job.bias.unwrap_or(out.buffer)),
            Arg::Buffer(residual.buffer),
            Arg::Buffer(out.buffer),
            int(job.weight.cols),
            int(rows),
            int(job.channels.start),
            int(job.channels.len()),
            int(x.at),
            int(x.stride),
            Arg::Int(i32::from(job.bias.is_some())),
            Arg::Int(i32::from(job.residual.is_some())),
            int(residual.at),
            int(residual.stride),
            int(out.at),
            int(out.stride),
        ];
        let panels = job.channels.len().div_ceil(PANEL).div_ceil(variant.panels);
        let tiles = rows.div_ceil(variant.rows);
        let items = if self.is_cpu { [tiles, panels] } else { [panels, tiles] };
        // SAFETY: these are MATMUL_PARAMETERS; `check` holds for all rows and channels, and items
        // beyond either do nothing.
        unsafe { self.launch((Family::matmul(job.weight.dtype), variant.name), &args, items) }
    }
}

//! Launches of matmuls.
#![expect(unsafe_code, reason = "launches kernels")]

use std::ops::Range;

use super::programs::{FEW, Family, GROUP, GROUP_ITEMS, Variant, few_in_groups, segment, tile};
use super::tuning::{FewRows, ManyRows, Shapes};
use super::{F32, Kernels, Matrix, View, int};
use crate::opencl::error::OpenClError;
use crate::opencl::pack::{CHANNELS, PANEL};
use crate::opencl::session::{Arg, Buffer, Range as SessionRange};

/// Fewest rows for the kernels for many rows, whose items compute panels.
const TILE_MIN: usize = 6;

/// Fewest rows for the kernel for many rows, whose work-groups share panels.
const GROUP_MIN: usize = 17;

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

/// How the items of a kernel share its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Each item computes panels.
    Items,
    /// A work-group of these items computes panels.
    Groups([usize; 2]),
}

/// The kernel for the first of `rows` rows with `cols` inputs, and how many rows it takes.
fn next_variant(
    rows: usize,
    cols: usize,
    (shapes, slices): (Shapes, Option<usize>),
) -> (Variant, Shape, usize) {
    match shapes.many {
        ManyRows::Tile(step) if rows >= TILE_MIN => return (tile(step), Shape::Items, rows),
        ManyRows::Group if rows >= GROUP_MIN => return (GROUP, Shape::Groups(GROUP_ITEMS), rows),
        _ => {}
    }
    match shapes.few {
        FewRows::Wide => {
            let few = FEW.into_iter().find(|few| few.rows <= rows).unwrap_or(FEW[FEW.len() - 1]);
            (few, Shape::Items, rows / few.rows * few.rows)
        }
        FewRows::Group => {
            let segments = cols.div_ceil(segment(slices, cols));
            let variants = few_in_groups(slices.unwrap_or(1));
            let most = variants[variants.len() - 1].rows;
            let fits = |few: &Variant| few.rows >= rows.min(most) && few.slices >= segments;
            let few = variants.into_iter().find(fits).expect("the last takes all segments");
            (few, Shape::Groups([PANEL, few.slices]), rows)
        }
    }
}

impl Kernels {
    /// Multiplies rows with a matrix.
    ///
    /// # Panics
    /// If an operand is too small for its rows, or the channels are not those of the matrix.
    pub(in crate::opencl) fn matmul(&mut self, job: &MatMul<'_>) -> Result<(), OpenClError> {
        job.check();
        let mut shapes = self.shapes(job.weight.dtype);
        // The kernels of groups read 4 inputs at a time.
        if !(job.x.at.is_multiple_of(4) && job.x.stride.is_multiple_of(4)) {
            shapes.few = FewRows::Wide;
        }
        if shapes.few == FewRows::Group
            && let Some(gemv) = self.persistent_gemv(job)
        {
            let shape = Shape::Groups([PANEL, self.slices().unwrap_or(1)]);
            return self.matmul_rows(job, (gemv, shape), (0, job.rows));
        }
        let mut done = 0;
        while done < job.rows && !job.channels.is_empty() {
            let (variant, shape, rows) =
                next_variant(job.rows - done, job.weight.cols, (shapes, self.slices()));
            self.matmul_rows(job, (variant, shape), (done, rows))?;
            done += rows;
        }
        Ok(())
    }

    /// Computes `rows` rows from `first` on with one kernel.
    fn matmul_rows(
        &mut self,
        job: &MatMul<'_>,
        (variant, shape): (Variant, Shape),
        (first, rows): (usize, usize),
    ) -> Result<(), OpenClError> {
        let (x, out) = (job.x.after(first), job.out.after(first));
        let residual = job.residual.map(|residual| residual.after(first)).unwrap_or(out);
        let args = [
            Arg::Buffer(&job.weight.buffer),
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
            int(segment(self.slices(), job.weight.cols)),
        ];
        let panels = job.channels.len().div_ceil(PANEL).div_ceil(variant.panels);
        let tiles = rows.div_ceil(variant.rows);
        let (wide, group) =
            (Family::matmul(job.weight.dtype), Family::matmul_group(job.weight.dtype));
        let items = if self.is_cpu { [tiles, panels, 1] } else { [panels, tiles, 1] };
        // SAFETY: these are MATMUL_PARAMETERS; `check` holds for all rows and channels, and items
        // beyond either do nothing. The groups are those that the kernels state.
        unsafe {
            match shape {
                Shape::Items => self.launch((wide, variant.name), &args, items),
                Shape::Groups(local) => {
                    let range = SessionRange::plane([panels, tiles], local);
                    self.launch_groups((group, variant.name), &args, range)
                }
            }
        }
    }
}

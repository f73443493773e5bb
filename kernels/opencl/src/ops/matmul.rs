//! Launches of matmuls.
#![expect(unsafe_code, reason = "launches kernels")]

use std::ops::Range;
use std::sync::Arc;

use super::kernels::Kernels;
use super::matrix::Matrix;
use super::persistent::NORM;
use super::programs::{Family, ROW_ITEMS, segment};
use super::shapes::{FewRows, Grouping, Shapes};
use super::variants::Variant;
use super::views::{F32, View, int};
use crate::error::OpenClError;
use crate::pack::{CHANNELS, PANEL};
use crate::session::{Arg, Buffer, PersistentOp, Range as SessionRange};
use lapwing_model::formats::DType;
use lapwing_model::op::Activation;

/// Ops before and after a matmul of few rows that its kernel computes, with the bits of separate ops.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fused<'a> {
    /// The norm of each row of x.
    pub(crate) norm: Option<Norm<'a>>,
    /// `activation(gate) · up`: the first half of the channels are gates, the second half ups.
    pub(crate) gate: Option<Activation>,
}

/// RMS norm of whole rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm<'a> {
    /// Gain, one value for each input.
    pub(crate) gain: &'a Buffer,
    pub(crate) eps: f32,
}

/// `out = x · weightᵀ + bias + residual` for some output channels.
#[derive(Clone, Debug)]
pub(crate) struct MatMul<'a> {
    /// Rows of `weight.cols()` values.
    pub(crate) x: View<'a>,
    pub(crate) rows: usize,
    pub(crate) weight: &'a Matrix,
    /// Output channels; the first is a multiple of [`CHANNELS`].
    pub(crate) channels: Range<usize>,
    /// One value for each output channel of the matrix.
    pub(crate) bias: Option<&'a Buffer>,
    /// Rows that are added; may be the rows of `out`.
    pub(crate) residual: Option<View<'a>>,
    /// Only where [`Kernels::fuses`] says so, and a gate has neither bias nor residual.
    pub(crate) fused: Fused<'a>,
    /// Rows of a value for each channel, or half of them with a gate; not those of `x`.
    pub(crate) out: View<'a>,
}

impl<'a> MatMul<'a> {
    /// Of all output channels, with nothing before and after it.
    pub(crate) fn plain(x: View<'a>, rows: usize, weight: &'a Matrix, out: View<'a>) -> MatMul<'a> {
        let channels = 0..weight.rows;
        let fused = Fused::default();
        MatMul { x, rows, weight, channels, bias: None, residual: None, fused, out }
    }

    /// Values of a row of `out`.
    fn outputs(&self) -> usize {
        self.channels.len() / if self.fused.gate.is_some() { 2 } else { 1 }
    }

    /// # Panics
    /// If an operand is too small or the channels are not those of the matrix.
    fn check(&self) {
        let MatMul { rows, weight, channels, fused, .. } = self;
        assert!(
            channels.start <= channels.end
                && channels.end <= weight.rows
                && channels.start.is_multiple_of(CHANNELS),
            "the channels {channels:?} of a matrix of {}",
            weight.rows
        );
        self.x.check(*rows, weight.cols, "x of a matmul");
        self.out.check(*rows, self.outputs(), "out of a matmul");
        if fused.gate.is_some() {
            let is_alone = self.bias.is_none() && self.residual.is_none();
            let is_whole = channels.len().is_multiple_of(2 * PANEL);
            assert!(is_alone && is_whole, "gates of the channels {channels:?}");
        }
        if let Some(norm) = fused.norm {
            assert!(norm.gain.bytes() / F32 >= weight.cols, "gains of {} inputs", weight.cols);
        }
        if let Some(residual) = self.residual {
            residual.check(*rows, channels.len(), "residual of a matmul");
        }
        if let Some(bias) = self.bias {
            assert!(bias.bytes() / F32 >= weight.rows, "a bias of {} bytes", bias.bytes());
        }
    }
}

/// The shapes of the kernels for rows of `x`.
pub(super) fn shapes_for(x: View<'_>, shapes: Shapes) -> Shapes {
    // The kernels of groups read 4 inputs at a time.
    let is_aligned = x.at.is_multiple_of(4) && x.stride.is_multiple_of(4);
    Shapes { few: if is_aligned { shapes.few } else { FewRows::Wide }, ..shapes }
}

impl Kernels {
    /// Whether the kernels for so many rows of `x` and a matrix of a format can compute a norm and gates with the
    /// matmul. The results have the bits of separate ops.
    ///
    /// # Errors
    /// If a kernel is not compiled yet, and the driver does not compile it.
    pub(crate) fn fuses(
        &mut self,
        dtype: DType,
        rows: usize,
        x: View<'_>,
    ) -> Result<bool, OpenClError> {
        let shapes = shapes_for(x, self.shapes(dtype));
        let wanted = if self.is_cpu { FewRows::Wide } else { FewRows::Group };
        if shapes.many.takes(rows) || shapes.few != wanted {
            return Ok(false);
        }
        // The smallest group has the items that norm a row.
        let has_items = |slices: usize| PANEL * slices / 2 >= ROW_ITEMS;
        Ok(match self.slices() {
            None => true,
            Some(slices) => {
                has_items(slices) && self.shares(Family::RowsGroup.kernel("rms_norm"), ROW_ITEMS)?
            }
        })
    }

    /// Multiplies rows with a matrix.
    ///
    /// # Panics
    /// If an operand is too small for its rows, or the channels are not those of the matrix.
    pub(crate) fn matmul(&mut self, job: &MatMul<'_>) -> Result<(), OpenClError> {
        // Of a small matrix, the last device of a cut may have none.
        if job.channels.is_empty() {
            return Ok(());
        }
        job.check();
        self.check_order(job.weight);
        let shapes = shapes_for(job.x, self.shapes(job.weight.dtype));
        if shapes.few == FewRows::Group
            && let Some(gemv) = self.persistent_gemv(job)
        {
            let normed = self.record_norm(job)?;
            let norm = job.fused.norm.zip(normed.as_deref());
            let norm = norm.map(|(norm, normed)| Norm { gain: normed, ..norm });
            let fused = Fused { norm, ..job.fused };
            let grouping = Grouping::Groups([PANEL, self.slices().unwrap_or(1)]);
            let job = MatMul { fused, ..job.clone() };
            return self.matmul_rows(&job, gemv, grouping, 0..job.rows);
        }
        let mut done = 0;
        while done < job.rows && !job.channels.is_empty() {
            let (cols, has_gates) = (job.weight.cols, job.fused.gate.is_some());
            let (variant, grouping, rows) =
                shapes.variant(job.rows - done, cols, has_gates, self.slices());
            self.matmul_rows(job, variant, grouping, done..done + rows)?;
            done += rows;
        }
        Ok(())
    }

    /// The persistent kernel's function for a matmul, if that is to be an op of it.
    fn persistent_gemv(&self, job: &MatMul<'_>) -> Option<Variant> {
        let panels = job.outputs().div_ceil(PANEL);
        let family = Family::matmul_group(job.weight.dtype);
        self.recorder.as_ref()?.gemv(family, job.rows, panels, job.fused.gate.is_some())
    }

    /// Adds the norm of the rows of a matmul, if it has one, that is the next op of the persistent kernel. Returns
    /// where the normed rows are.
    fn record_norm(&mut self, job: &MatMul<'_>) -> Result<Option<Arc<Buffer>>, OpenClError> {
        let Some(norm) = job.fused.norm else { return Ok(None) };
        let recorder = self.recorder.as_mut().expect("a persistent kernel");
        let number = recorder.number(NORM).expect("every persistent kernel norms");
        let cols = job.weight.cols;
        let normed = recorder.normed(&self.session, cols)?;
        let [x, at, stride] = job.x.args();
        let (gain, to) = (Arg::Buffer(norm.gain), Arg::Buffer(&normed));
        let args = [x, at, stride, gain, to, int(job.rows), int(cols), Arg::Float(norm.eps)];
        let op = PersistentOp { number, size: [1; 3], args: &args, is_for_next: true };
        // SAFETY: NORM_PARAMETERS; the rows of a matmul's x are in their buffer, and there is room for those of
        // each group.
        unsafe { self.session.record(&op) }?;
        Ok(Some(normed))
    }

    /// Computes some rows with one kernel.
    fn matmul_rows(
        &mut self,
        job: &MatMul<'_>,
        variant: Variant,
        grouping: Grouping,
        rows: Range<usize>,
    ) -> Result<(), OpenClError> {
        let (x, out) = (job.x.after(rows.start), job.out.after(rows.start));
        let residual = job.residual.map(|residual| residual.after(rows.start)).unwrap_or(out);
        let rows = rows.len();
        let Fused { norm, gate } = job.fused;
        let args = [
            Arg::Buffer(&job.weight.buffer),
            Arg::Buffer(x.buffer),
            Arg::Buffer(job.bias.unwrap_or(out.buffer)),
            Arg::Buffer(residual.buffer),
            Arg::Buffer(out.buffer),
            int(job.weight.cols),
            int(rows),
            int(job.channels.start),
            int(job.outputs()),
            int(x.at),
            int(x.stride),
            Arg::Int(i32::from(job.bias.is_some())),
            Arg::Int(i32::from(job.residual.is_some())),
            int(residual.at),
            int(residual.stride),
            int(out.at),
            int(out.stride),
            int(segment(self.slices(), job.weight.cols)),
            Arg::Buffer(norm.map_or(out.buffer, |norm| norm.gain)),
            Arg::Int(i32::from(norm.is_some())),
            Arg::Float(norm.map_or(0.0, |norm| norm.eps)),
            Arg::Int(match gate {
                None => 0,
                Some(Activation::Silu) => 1,
                Some(Activation::GeluTanh) => 2,
                Some(Activation::Sigmoid) => 3,
            }),
        ];
        let each = variant.panels / if gate.is_some() { 2 } else { 1 };
        let panels = job.outputs().div_ceil(PANEL).div_ceil(each);
        let tiles = rows.div_ceil(variant.rows);
        let (wide, group) =
            (Family::matmul(job.weight.dtype), Family::matmul_group(job.weight.dtype));
        let items = if self.is_cpu { [tiles, panels, 1] } else { [panels, tiles, 1] };
        // SAFETY: these are MATMUL_PARAMETERS; `check` holds for all rows and channels, and items
        // beyond either do nothing. The groups are those that the kernels state.
        unsafe {
            match grouping {
                Grouping::Items => self.launch(wide.kernel(variant.name), &args, items),
                Grouping::Groups(local) => {
                    let range = SessionRange::plane([panels, tiles], local);
                    self.launch_groups(group.kernel(variant.name), &args, range)
                }
            }
        }
    }
}

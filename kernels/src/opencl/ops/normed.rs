//! Launches of matmuls that norm their row themselves.
#![expect(unsafe_code, reason = "launches kernels")]

use std::ops::Range;

use super::matmul::{MatMul, args_of};
use super::programs::{Family, NORM_AHEAD, NORM_MAX, Variant, norm_gemv, segment};
use super::tuning::FewRows;
use super::{F32, Kernels, Matrix, int};
use crate::op::Activation;
use crate::opencl::error::OpenClError;
use crate::opencl::pack::PANEL;
use crate::opencl::session::{Arg, Buffer, Range as SessionRange};
use crate::quant::DType;

/// Work-groups for each compute unit of a device.
const GROUPS_OF_UNIT: usize = 2;

/// `out = norm(x) · weightᵀ + bias + residual` for one row and some output channels, or `out =
/// activation(norm(x) · weightᵀ) · (norm(x) · secondᵀ)`.
#[derive(Clone, Debug)]
pub(in crate::opencl) struct NormMatMul<'a> {
    /// As for a matmul of one row; `x` is not normed yet.
    pub(in crate::opencl) matmul: MatMul<'a>,
    /// Gain of the norm, one value for each input channel.
    pub(in crate::opencl) gain: &'a Buffer,
    pub(in crate::opencl) eps: f32,
    /// The activation, and how many channels after the first matrix' the second one's begin: a multiple
    /// of [`PANEL`].
    pub(in crate::opencl) gated: Option<(Activation, usize)>,
}

impl Kernels {
    /// Whether a matmul of one row with `cols` input channels can norm the row itself.
    pub(in crate::opencl) fn norms_in_matmul(&mut self, dtype: DType, cols: usize) -> bool {
        if self.is_cpu || self.shapes(dtype).few != FewRows::Group {
            return false;
        }
        let variant = self.norm_variant(cols, false);
        cols <= NORM_MAX.min(NORM_AHEAD * PANEL * variant.slices)
    }

    fn norm_variant(&self, cols: usize, is_gated: bool) -> Variant {
        let slices = self.slices();
        let segments = cols.div_ceil(segment(slices, cols));
        let [half, whole] = norm_gemv(slices.unwrap_or(1), is_gated);
        if segments <= half.slices { half } else { whole }
    }

    /// Norms a row and multiplies it with a matrix.
    ///
    /// # Panics
    /// If an operand is too small, there is not one row, the channels are not those of the matrix, or
    /// [`norms_in_matmul`](Kernels::norms_in_matmul) does not hold.
    pub(in crate::opencl) fn norm_matmul(
        &mut self,
        job: &NormMatMul<'_>,
    ) -> Result<(), OpenClError> {
        let NormMatMul { matmul, gain, eps, gated } = job;
        let MatMul { weight, channels, .. } = matmul;
        matmul.check();
        let cols = weight.cols();
        assert!(matmul.rows == 1 && self.norms_in_matmul(weight.dtype, cols), "not one row");
        assert!(gain.bytes() / F32 >= cols, "{} bytes of gains for {cols}", gain.bytes());
        let second = gated.map_or(0, |(_, second)| second);
        check_second(weight, channels, second);
        if channels.is_empty() {
            return Ok(());
        }
        let mut args = args_of(matmul, (0, 1), segment(self.slices(), cols)).to_vec();
        let is_gelu = gated.is_some_and(|(activation, _)| activation == Activation::GeluTanh);
        args.extend([
            Arg::Buffer(gain),
            Arg::Local(cols.next_multiple_of(4) * F32),
            Arg::Float(*eps),
            int(second),
            Arg::Int(i32::from(is_gelu)),
        ]);
        let variant = self.norm_variant(cols, gated.is_some());
        let panels = channels.len().div_ceil(PANEL);
        let groups = panels.min(GROUPS_OF_UNIT * self.session.info().units.max(1) as usize);
        let range = SessionRange::plane([groups, 1], [PANEL, variant.slices]);
        let kernel = (Family::matmul_group(weight.dtype), variant.name);
        // SAFETY: these are the parameters of norm_gemv.cl; the checks hold for both matrices, and the
        // group is the one that the kernel states.
        unsafe { self.launch_groups(kernel, &args, range) }
    }
}

/// # Panics
/// If the channels of the second matrix are not channels of the buffer.
fn check_second(weight: &Matrix, channels: &Range<usize>, second: usize) {
    let end = channels.end.checked_add(second);
    assert!(
        second.is_multiple_of(PANEL) && end.is_some_and(|end| end <= weight.rows()),
        "channels {channels:?} and {second} further of a matrix of {}",
        weight.rows()
    );
}

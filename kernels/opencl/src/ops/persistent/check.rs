//! The check of a persistent kernel at a model's start: it must give the bits that launches give, and be
//! faster.

use crate::error::OpenClError;
use crate::ops::kernels::Kernels;
use crate::ops::matmul::{Fused, MatMul, Norm};
use crate::ops::matrix::{Matrix, NORMAL};
use crate::ops::rows::RmsNorm;
use crate::ops::target::is_persistent_on_any;
use crate::ops::tuning::between;
use crate::ops::views::{F32, View};
use crate::session::{Buffer, Lane};
use lapwing_model::op::Activation;

/// Inputs and outputs of the matmuls, as in a small model: whole blocks of every format.
const WIDTH: usize = 1024;

/// Matmuls, each of which all groups compute from a norm that one of them has computed, and the reverse. After each of
/// them are two of norms that each group computes for itself, the second with gates.
const TURNS: usize = 16;

/// Runs of both kinds, of which the fastest counts.
const RUNS: usize = 5;

const WHAT: &str = "the check of a persistent kernel";

/// Operands of the check.
struct Operands {
    weights: Vec<Matrix>,
    /// Values that are added to the products, other ones in each turn.
    residual: Buffer,
    gain: Buffer,
    x: Buffer,
    y: Buffer,
    z: Buffer,
}

impl Kernels {
    /// Builds the persistent kernel, and uses it if it passes the check.
    pub(crate) fn start_persistent(&mut self) {
        let reason = match self.build_persistent() {
            Ok(false) => return,
            Ok(true) => match self.against_persistent() {
                Ok(None) => return,
                Ok(Some(reason)) => reason,
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        _ = self.drop_persistent();
        let note = format!("runs of few rows are launched op by op, not as one kernel: {reason}");
        self.unrecorded = Some(note);
    }

    /// What speaks against the persistent kernel: other bits than those of launches, or more time.
    fn against_persistent(&mut self) -> Result<Option<String>, OpenClError> {
        let operands = self.operands()?;
        let against = self.compare(&operands);
        if !matches!(against, Ok(None)) {
            // Before the operands are released: launches and ops that wait name them by address.
            _ = self.drop_persistent();
        }
        against
    }

    /// As [`against_persistent`](Kernels::against_persistent), with these operands.
    fn compare(&mut self, operands: &Operands) -> Result<Option<String>, OpenClError> {
        let mut fastest = [u64::MAX; 2];
        let mut first = None;
        // The first of both kinds may compile, and is not timed.
        for run in 0..=RUNS {
            for (is_persistent, fastest) in [false, true].into_iter().zip(&mut fastest) {
                self.record(is_persistent);
                let found = self.turns(operands);
                self.record(false);
                let (values, ns) = found?;
                if self.session.is_timed_out()? {
                    return Ok(Some("its groups do not all run at the same time".to_owned()));
                }
                if *first.get_or_insert_with(|| values.clone()) != values {
                    return Ok(Some("it does not give the results of launches".to_owned()));
                }
                if run > 0 {
                    *fastest = ns.unwrap_or(u64::MAX).min(*fastest);
                }
            }
        }
        let [launches, persistent] = fastest;
        // A CPU driver runs it in tests only.
        let is_better = persistent <= launches || is_persistent_on_any();
        Ok((!is_better)
            .then(|| format!("it takes {persistent} ns where launches take {launches} ns")))
    }

    fn operands(&self) -> Result<Operands, OpenClError> {
        let session = &self.session;
        let dtypes = self.spec.dtypes.iter();
        let weights =
            dtypes.map(|dtype| Matrix::repeated(session, *dtype, [WIDTH; 2], NORMAL, WHAT));
        let weights = weights.collect::<Result<_, _>>()?;
        let values: Vec<f32> =
            (0..WIDTH + 4 * TURNS).map(|i| (i * 7919 % 1009) as f32 / 504.0 - 1.0).collect();
        let floats = |values: &[f32]| session.filled(bytemuck::cast_slice(values), WHAT);
        Ok(Operands {
            weights,
            residual: floats(&values)?,
            gain: floats(&values[..WIDTH])?,
            x: session.buffer(WIDTH * F32, WHAT)?,
            y: session.buffer(WIDTH * F32, WHAT)?,
            z: session.buffer(WIDTH * F32, WHAT)?,
        })
    }

    /// Computes norms and matmuls in turns, each with matmuls that norm their input and that have gates; returns the
    /// bytes of the last ones, and the device's time.
    fn turns(&mut self, operands: &Operands) -> Result<(Vec<u8>, Option<u64>), OpenClError> {
        let Operands { weights, residual, gain, x, y, z } = operands;
        let view = |buffer, at| View { buffer, at, stride: WIDTH };
        let norm =
            |x, out| RmsNorm { x, rows: 1, groups: 1, weight: gain, len: WIDTH, eps: 1e-5, out };
        let begin = self.session.marker()?;
        self.rms_norm(&norm(view(residual, 0), view(x, 0)))?;
        for turn in 0..TURNS {
            let weight = &weights[turn % weights.len()];
            let plain = MatMul::plain(view(x, 0), 1, weight, view(y, 0));
            let residual = Some(view(residual, 4 * turn));
            self.matmul(&MatMul { residual, ..plain.clone() })?;
            if self.fuses(weight.dtype, 1, view(y, 0))? {
                let fused = Fused { norm: Some(Norm { gain, eps: 1e-5 }), gate: None };
                let residual = Some(view(z, 0)).filter(|_| turn > 0);
                let (from, to) = (view(y, 0), view(z, 0));
                self.matmul(&MatMul { x: from, residual, fused, out: to, ..plain.clone() })?;
                let fused = Fused { gate: Some(Activation::Silu), ..fused };
                self.matmul(&MatMul { x: to, fused, out: from, ..plain })?;
            }
            self.rms_norm(&norm(view(y, 0), view(x, 0)))?;
        }
        let end = self.session.marker()?;
        self.session.finish()?;
        let mut bytes = vec![0; 3 * WIDTH * F32];
        for (buffer, bytes) in [x, y, z].into_iter().zip(bytes.chunks_exact_mut(WIDTH * F32)) {
            self.session.read(Lane::Compute, buffer, 0, bytes)?;
        }
        Ok((bytes, between(&begin, &end)))
    }
}

//! Which launches become ops of a persistent kernel.

use std::sync::Arc;

use super::text::Numbers;
use crate::error::OpenClError;
use crate::ops::built::Built;
use crate::ops::programs::{Family, KernelId};
use crate::ops::variants::{PERSISTENT_ROWS, Variant, gemv_for};
use crate::ops::views::F32;
use crate::session::{Buffer, Session};

/// The numbers of the kernels that a persistent kernel has.
#[derive(Debug)]
pub(in crate::ops) struct Recorder {
    numbers: Numbers,
    groups: usize,
    /// Whether launches become its ops.
    is_on: bool,
    program: Built,
    /// Memory for the rows that each group norms for itself: the last is the largest, and ops may name others.
    normed: Vec<Arc<Buffer>>,
}

impl Recorder {
    /// Of a program with these kernels, which runs in so many groups.
    pub(super) fn new(program: Built, numbers: Numbers, groups: usize) -> Recorder {
        Recorder { numbers, groups, is_on: false, program, normed: Vec::new() }
    }

    pub(in crate::ops) fn program(&self) -> &Built {
        &self.program
    }

    /// Makes launches its ops, or ends that.
    pub(super) fn record(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Whether launches become its ops.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The number of a kernel, if its launch is to be an op.
    pub(in crate::ops) fn number(&self, kernel: KernelId) -> Option<u32> {
        self.numbers.get(&kernel).copied().filter(|_| self.is_on)
    }

    /// The function for a matmul of so many rows and panels of outputs, if that is to be an op.
    pub(in crate::ops) fn gemv(
        &self,
        family: Family,
        rows: usize,
        panels: usize,
        has_gates: bool,
    ) -> Option<Variant> {
        let gemv = gemv_for(rows, panels, self.groups, has_gates)?;
        self.number(family.kernel(gemv.name))?;
        Some(gemv)
    }

    /// Memory for rows of so many values of each group, as NORMED_AT in persistent_place.cl.
    pub(in crate::ops) fn normed(
        &mut self,
        session: &Session,
        cols: usize,
    ) -> Result<Arc<Buffer>, OpenClError> {
        let bytes = self.groups * PERSISTENT_ROWS * cols.next_multiple_of(4) * F32;
        if let Some(last) = self.normed.last().filter(|last| last.bytes() >= bytes) {
            return Ok(Arc::clone(last));
        }
        let normed = Arc::new(session.buffer(bytes, "normed rows")?);
        self.normed.push(Arc::clone(&normed));
        Ok(normed)
    }
}

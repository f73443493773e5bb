//! The matrices of a layer's experts in a device's memory.

use super::matrix::Matrix;
use super::target::{is_cpu, order};
use crate::error::OpenClError;
use crate::pack::{PANEL, Stored, panels};
use crate::session::{Lane, Session};
use lapwing_model::formats::DType;

/// A weight matrix `[rows, cols]` of each expert, packed as a [`Matrix`] each, one after another.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(super) matrix: Matrix,
    /// Panels of an expert.
    pub(super) panels: usize,
    /// Output channels of an expert.
    pub(super) rows: usize,
    /// Number of experts.
    pub(super) count: usize,
}

impl Stack {
    /// Room for the matrices of `count` experts. `name` is named in errors.
    pub(crate) fn new(
        session: &Session,
        dtype: DType,
        [count, rows, cols]: [usize; 3],
        name: &str,
    ) -> Result<Stack, OpenClError> {
        let of_expert = Stored { dtype, bytes: &[], rows, cols };
        let buffer = session.buffer(count * of_expert.packed_bytes(), name)?;
        let (panels, order) = (panels(rows), order(is_cpu(session)));
        let matrix = Matrix { buffer, dtype, order, rows: count * panels * PANEL, cols };
        Ok(Stack { matrix, panels, rows, count })
    }

    /// Packs the matrix of an expert, copies it to the device and waits. `bytes` are those of a GGUF file.
    ///
    /// # Panics
    /// If there is no such expert, or `bytes` are no matrix of that format and shape.
    pub(crate) fn put(
        &self,
        session: &Session,
        expert: usize,
        bytes: &[u8],
    ) -> Result<(), OpenClError> {
        assert!(expert < self.count, "expert {expert} of {}", self.count);
        let Matrix { buffer, dtype, order, cols, .. } = &self.matrix;
        let stored = Stored { dtype: *dtype, bytes, rows: self.rows, cols: *cols };
        let words = stored.pack(0..self.panels, *order);
        let at = expert * stored.packed_bytes();
        session.write(Lane::Transfer, buffer, at, bytemuck::cast_slice(&words))
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.matrix.bytes()
    }
}

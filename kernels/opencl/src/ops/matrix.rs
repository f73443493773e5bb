//! Weight matrices in a device's memory.

use super::target::{is_cpu, order};
use crate::error::OpenClError;
use crate::pack::{RunOrder, Stored, panels};
use crate::session::{Buffer, Lane, Session};
use lapwing_model::formats::DType;

/// A weight matrix `[rows, cols]` in a device's memory, packed for the kernels.
#[derive(Debug)]
pub(crate) struct Matrix {
    pub(super) buffer: Buffer,
    pub(super) dtype: DType,
    pub(super) order: RunOrder,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// Any bytes are weights; these make every scale a normal number.
pub(crate) const NORMAL: [u8; 2] = [0x66, 0x2c];

/// Bytes that are packed at a time.
const UPLOAD: usize = 8 << 20;

impl Matrix {
    /// Packs a matrix, copies it to the device and waits. `bytes` are those of a GGUF file; `name` is
    /// named in errors.
    ///
    /// # Panics
    /// If `bytes` are not a matrix of that format and shape.
    pub(crate) fn upload(
        session: &Session,
        stored: Stored<'_>,
        name: &str,
    ) -> Result<Matrix, OpenClError> {
        let Stored { dtype, rows, cols, .. } = stored;
        let buffer = session.buffer(stored.packed_bytes(), name)?;
        let panel_bytes = stored.panel_words() * size_of::<u32>();
        let step = (UPLOAD / panel_bytes.max(1)).max(1);
        let order = order(is_cpu(session));
        let panels = panels(rows);
        for first in (0..panels).step_by(step) {
            let words = stored.pack(first..panels.min(first + step), order);
            let bytes = bytemuck::cast_slice(&words);
            session.write(Lane::Transfer, &buffer, first * panel_bytes, bytes)?;
        }
        Ok(Matrix { buffer, dtype, order, rows, cols })
    }

    /// A matrix `[rows, cols]` whose stored bytes are two, repeated. `name` is named in errors.
    ///
    /// # Panics
    /// If the columns are not whole blocks of the format.
    pub(crate) fn repeated(
        session: &Session,
        dtype: DType,
        [rows, cols]: [usize; 2],
        bytes: [u8; 2],
        name: &str,
    ) -> Result<Matrix, OpenClError> {
        let len = rows * dtype.row_bytes(cols).expect("the columns are whole blocks");
        let bytes = bytes.repeat(len.div_ceil(2));
        Matrix::upload(session, Stored { dtype, bytes: &bytes[..len], rows, cols }, name)
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.buffer.bytes()
    }

    /// Output channels.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Input channels.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }
}

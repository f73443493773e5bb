//! Launches of probes of a device's limits.
#![expect(unsafe_code, reason = "launches kernels")]

use super::kernels::Kernels;
use super::programs::Family;
use super::views::{F32, int};
use crate::error::OpenClError;
use crate::session::{Arg, Buffer};

/// Vectors of 16 words that an item reads on a CPU.
const READ_VECTORS: usize = 1024;

/// Vectors of 4 words that an item reads on a GPU.
const READ_BESIDE: usize = 32;

/// Multiply-adds of an item in each of its chains.
const STEPS: usize = 10_000;

impl Kernels {
    /// Multiply-adds of an item of [`Kernels::multiply_add`]: 10 chains of 16 lanes.
    pub(crate) const MULTIPLY_ADDS: usize = STEPS * 10 * 16;

    /// Bytes that an item of [`Kernels::read_all`] reads.
    pub(crate) fn read_bytes(&self) -> usize {
        if self.is_cpu { READ_VECTORS * 64 } else { READ_BESIDE * 16 }
    }

    /// Reads a buffer; writes one u32 for each [`Kernels::read_bytes`].
    ///
    /// # Panics
    /// If `to` is too small.
    pub(crate) fn read_all(&mut self, from: &Buffer, to: &Buffer) -> Result<(), OpenClError> {
        let items = from.bytes() / self.read_bytes();
        assert!(items <= to.bytes() / size_of::<u32>(), "{} bytes for {items} sums", to.bytes());
        let (name, vectors) =
            if self.is_cpu { ("read_all", READ_VECTORS) } else { ("read_beside", READ_BESIDE) };
        let args = [Arg::Buffer(from), Arg::Buffer(to), int(items), int(vectors)];
        // SAFETY: the parameters of both kernels; `items` items read `from` at most, and fill `to` at
        // most.
        unsafe { self.launch(Family::Probe.kernel(name), &args, [items, 1, 1]) }
    }

    /// Computes multiply-adds; writes 16 values for each item, as many as fit in `to`.
    pub(crate) fn multiply_add(&mut self, to: &Buffer) -> Result<(), OpenClError> {
        let items = to.bytes() / (16 * F32);
        let numbers = [Arg::Float(0.999), Arg::Float(0.001)];
        let args = [Arg::Buffer(to), int(items), int(STEPS), numbers[0], numbers[1]];
        // SAFETY: the kernel's parameters; `items` items fill `to` at most.
        unsafe { self.launch(Family::Probe.kernel("multiply_add"), &args, [items, 1, 1]) }
    }
}

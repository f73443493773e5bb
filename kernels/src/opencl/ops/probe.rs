//! Launches of probes of a device's limits.
#![expect(unsafe_code, reason = "launches kernels")]

use super::programs::Family;
use super::{F32, Kernels, int};
use crate::opencl::error::OpenClError;
use crate::opencl::session::{Arg, Buffer};

/// Vectors of 16 words that an item reads.
const READ_VECTORS: usize = 1024;

/// Multiply-adds of an item in each of its chains.
const STEPS: usize = 10_000;

impl Kernels {
    /// Bytes that an item of [`Kernels::read_all`] reads.
    pub(in crate::opencl) const READ_BYTES: usize = READ_VECTORS * 64;

    /// Multiply-adds of an item of [`Kernels::multiply_add`]: 10 chains of 16 lanes.
    pub(in crate::opencl) const MULTIPLY_ADDS: usize = STEPS * 10 * 16;

    /// Reads a buffer; writes one u32 for each [`Kernels::READ_BYTES`].
    ///
    /// # Panics
    /// If `to` is too small.
    pub(in crate::opencl) fn read_all(
        &mut self,
        from: &Buffer,
        to: &Buffer,
    ) -> Result<(), OpenClError> {
        let items = from.bytes() / Kernels::READ_BYTES;
        assert!(items <= to.bytes() / size_of::<u32>(), "{} bytes for {items} sums", to.bytes());
        let args = [Arg::Buffer(from), Arg::Buffer(to), int(items), int(READ_VECTORS)];
        // SAFETY: the kernel's parameters; `items` items read `from` at most, and fill `to` at most.
        unsafe { self.launch((Family::Probe, "read_all"), &args, [items, 1]) }
    }

    /// Computes multiply-adds; writes 16 values for each item, as many as fit in `to`.
    pub(in crate::opencl) fn multiply_add(&mut self, to: &Buffer) -> Result<(), OpenClError> {
        let items = to.bytes() / (16 * F32);
        let numbers = [Arg::Float(0.999), Arg::Float(0.001)];
        let args = [Arg::Buffer(to), int(items), int(STEPS), numbers[0], numbers[1]];
        // SAFETY: the kernel's parameters; `items` items fill `to` at most.
        unsafe { self.launch((Family::Probe, "multiply_add"), &args, [items, 1]) }
    }
}

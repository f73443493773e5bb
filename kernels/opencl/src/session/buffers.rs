//! Memory of a device, and its allocation.

use std::ptr::null_mut;
use std::sync::OnceLock;

use cl3::memory;

use super::{Handle, Lane, Session};
use crate::error::OpenClError;

/// Memory of a device.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(super) memory: Handle,
    pub(super) bytes: usize,
    /// Where it is in the device's memory, once that was asked for.
    pub(super) address: OnceLock<u64>,
}

impl Buffer {
    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// # Panics
    /// If it has no `len` bytes from byte `at` on.
    pub(super) fn check(&self, at: usize, len: usize) {
        assert!(len <= self.bytes && at <= self.bytes - len, "a copy beyond a buffer");
    }

    /// A number that no other buffer has at the same time.
    #[cfg(test)]
    pub(crate) fn id(&self) -> usize {
        self.memory.object.addr()
    }
}

impl Session {
    /// Allocates device memory; its content is undefined. `what` is named in the error.
    pub(crate) fn buffer(&self, bytes: usize, what: &str) -> Result<Buffer, OpenClError> {
        if bytes as u64 > self.info.buffer_max {
            return Err(self.no_memory(what, bytes));
        }
        // Memory that finished commands still hold may be free after a wait.
        let buffer = self.allocate(bytes).or_else(|| {
            _ = self.finish();
            self.allocate(bytes)
        });
        buffer.ok_or_else(|| self.no_memory(what, bytes))
    }

    /// Allocates device memory, if there is some.
    pub(super) fn allocate(&self, bytes: usize) -> Option<Buffer> {
        let (flags, size) = (memory::CL_MEM_READ_WRITE, bytes.max(4));
        // SAFETY: no host memory is passed.
        let buffer = unsafe { memory::create_buffer(self.context.object, flags, size, null_mut()) };
        let memory = Handle { object: buffer.ok()?, release: memory::release_mem_object };
        Some(Buffer { memory, bytes, address: OnceLock::new() })
    }

    /// The error that there is no memory for `what`.
    pub(super) fn no_memory(&self, what: &str, bytes: usize) -> OpenClError {
        OpenClError::Memory { device: self.info.name.clone(), what: what.to_owned(), bytes }
    }

    /// Allocates memory with a content, and waits for the copy.
    pub(crate) fn filled(&self, data: &[u8], what: &str) -> Result<Buffer, OpenClError> {
        let buffer = self.buffer(data.len(), what)?;
        self.write(Lane::Transfer, &buffer, 0, data)?;
        Ok(buffer)
    }
}

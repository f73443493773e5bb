//! Copies between host and device.

use std::ops::Range;
use std::ptr::{null, null_mut};

use cl3::command_queue;

use super::{Buffer, Lane, Session};
use crate::error::OpenClError;

impl Session {
    /// Copies to the device from byte `at` on, and waits.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) fn write(
        &self,
        lane: Lane,
        to: &Buffer,
        at: usize,
        data: &[u8],
    ) -> Result<(), OpenClError> {
        self.settle_before(lane)?;
        // SAFETY: `data` lives until the copy has ended.
        unsafe { self.enqueue_write(lane, (to, at), data, true) }?;
        // A blocking write may return when `data` may be reused: before the other queue sees it.
        command_queue::finish(self.queue(lane)).map_err(|code| self.error("clFinish", code))
    }

    /// Adds a copy to the device to a queue.
    ///
    /// # Safety
    /// `data` must stay in place and unchanged until the queue has passed the copy.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) unsafe fn write_later(
        &self,
        lane: Lane,
        to: &Buffer,
        at: usize,
        data: &[u8],
    ) -> Result<(), OpenClError> {
        self.settle_before(lane)?;
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_write(lane, (to, at), data, false) }
    }

    fn settle_before(&self, lane: Lane) -> Result<(), OpenClError> {
        if lane == Lane::Compute { self.settle() } else { Ok(()) }
    }

    unsafe fn enqueue_write(
        &self,
        lane: Lane,
        (to, at): (&Buffer, usize),
        data: &[u8],
        waits: bool,
    ) -> Result<(), OpenClError> {
        assert!(data.len() <= to.bytes && at <= to.bytes - data.len(), "a write beyond a buffer");
        if data.is_empty() {
            return Ok(());
        }
        let code = self.library.clEnqueueWriteBuffer(
            self.queue(lane),
            to.memory.object,
            u32::from(waits),
            at,
            data.len(),
            data.as_ptr().cast(),
            0,
            null(),
            null_mut(),
        );
        self.checked("clEnqueueWriteBuffer", code)
    }

    /// Copies from the device from byte `at` on, and waits.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) fn read(
        &self,
        lane: Lane,
        from: &Buffer,
        at: usize,
        data: &mut [u8],
    ) -> Result<(), OpenClError> {
        self.settle_before(lane)?;
        // SAFETY: `data` is borrowed until the copy has ended.
        unsafe { self.enqueue_read(lane, (from, at), data, true) }
    }

    /// Adds a copy from the device to a queue.
    ///
    /// # Safety
    /// `data` must stay in place, and be neither read nor written, until the queue has passed the copy.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) unsafe fn read_later(
        &self,
        lane: Lane,
        from: &Buffer,
        at: usize,
        data: &mut [u8],
    ) -> Result<(), OpenClError> {
        self.settle_before(lane)?;
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_read(lane, (from, at), data, false) }
    }

    pub(super) unsafe fn enqueue_read(
        &self,
        lane: Lane,
        (from, at): (&Buffer, usize),
        data: &mut [u8],
        waits: bool,
    ) -> Result<(), OpenClError> {
        assert!(
            data.len() <= from.bytes && at <= from.bytes - data.len(),
            "a read beyond a buffer"
        );
        if data.is_empty() {
            return Ok(());
        }
        let code = self.library.clEnqueueReadBuffer(
            self.queue(lane),
            from.memory.object,
            u32::from(waits),
            at,
            data.len(),
            data.as_mut_ptr().cast(),
            0,
            null(),
            null_mut(),
        );
        self.checked("clEnqueueReadBuffer", code)
    }

    /// Adds a copy of bytes of a buffer to another place in it to the compute queue.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) fn copy_within(
        &self,
        buffer: &Buffer,
        from: Range<usize>,
        to: usize,
    ) -> Result<(), OpenClError> {
        let (len, end) = (from.len(), buffer.bytes);
        assert!(from.end <= end && len <= end && to <= end - len, "a copy beyond a buffer");
        if len == 0 || from.start == to {
            return Ok(());
        }
        self.settle()?;
        let code = self.library.clEnqueueCopyBuffer(
            self.queue(Lane::Compute),
            buffer.memory.object,
            buffer.memory.object,
            from.start,
            to,
            len,
            0,
            null(),
            null_mut(),
        );
        self.checked("clEnqueueCopyBuffer", code)
    }
}

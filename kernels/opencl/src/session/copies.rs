//! Copies between host and device.

use std::ops::Range;
use std::ptr::{null, null_mut};

use cl3::command_queue;

use super::{Buffer, Lane, Session};
use crate::error::OpenClError;

/// The direction of a copy, and the bytes of the host.
pub(super) enum HostBytes<'a> {
    ToDevice(&'a [u8]),
    FromDevice(&'a mut [u8]),
}

/// A copy between host and device.
pub(super) struct HostCopy<'a> {
    pub(super) buffer: &'a Buffer,
    /// Where its bytes begin in the buffer.
    pub(super) at: usize,
    pub(super) host: HostBytes<'a>,
}

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
        let copy = HostCopy { buffer: to, at, host: HostBytes::ToDevice(data) };
        // SAFETY: `data` lives until the copy has ended.
        unsafe { self.enqueue(lane, copy, true) }?;
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
        let copy = HostCopy { buffer: to, at, host: HostBytes::ToDevice(data) };
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(lane, copy, false) }
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
        let copy = HostCopy { buffer: from, at, host: HostBytes::FromDevice(data) };
        // SAFETY: `data` is borrowed until the copy has ended.
        unsafe { self.enqueue(lane, copy, true) }
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
        let copy = HostCopy { buffer: from, at, host: HostBytes::FromDevice(data) };
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(lane, copy, false) }
    }

    fn settle_before(&self, lane: Lane) -> Result<(), OpenClError> {
        if lane == Lane::Compute { self.settle() } else { Ok(()) }
    }

    /// Adds a copy to a queue, without the ops that wait for the persistent kernel, and waits for it if `waits`.
    ///
    /// # Safety
    /// The host's bytes must stay allocated until the queue has executed the copy. Until then no code may write bytes
    /// that are copied to the device, and no code may read or write bytes that are copied from it.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(super) unsafe fn enqueue(
        &self,
        lane: Lane,
        copy: HostCopy<'_>,
        waits: bool,
    ) -> Result<(), OpenClError> {
        let HostCopy { buffer, at, host } = copy;
        let len = match &host {
            HostBytes::ToDevice(data) => data.len(),
            HostBytes::FromDevice(data) => data.len(),
        };
        buffer.check(at, len);
        if len == 0 {
            return Ok(());
        }
        let (queue, object, waits) = (self.queue(lane), buffer.memory.object, u32::from(waits));
        let library = self.library;
        match host {
            HostBytes::ToDevice(data) => {
                let from = data.as_ptr().cast();
                let code = library.clEnqueueWriteBuffer(
                    queue,
                    object,
                    waits,
                    at,
                    len,
                    from,
                    0,
                    null(),
                    null_mut(),
                );
                self.checked("clEnqueueWriteBuffer", code)
            }
            HostBytes::FromDevice(data) => {
                let to = data.as_mut_ptr().cast();
                let code = library.clEnqueueReadBuffer(
                    queue,
                    object,
                    waits,
                    at,
                    len,
                    to,
                    0,
                    null(),
                    null_mut(),
                );
                self.checked("clEnqueueReadBuffer", code)
            }
        }
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
        let len = from.len();
        buffer.check(from.start, len);
        buffer.check(to, len);
        if len == 0 || from.start == to {
            return Ok(());
        }
        self.settle()?;
        let (queue, object) = (self.queue(Lane::Compute), buffer.memory.object);
        let code = self.library.clEnqueueCopyBuffer(
            queue,
            object,
            object,
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

//! Buffers for values, which return to their pool when they are dropped.
//!
//! A buffer may be used again as soon as the commands that read it are in the queue: commands run in
//! order, so a later one writes it after they have read it. Of the free ones, that which was allocated first
//! is used first, so that runs of one shape use the same buffers for the same values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::OpenClError;
use super::session::{Buffer, Session};

/// Smallest buffer in bytes; sizes are powers of two from there on.
const BYTES_MIN: usize = 4096;

/// A pool of buffers of one session.
#[derive(Debug)]
pub(super) struct BufferPool {
    session: Arc<Session>,
    free: Mutex<Free>,
}

/// Free buffers, by their size and number.
#[derive(Debug, Default)]
struct Free {
    buffers: BTreeMap<(usize, usize), Buffer>,
    /// Buffers that were allocated so far.
    allocated: usize,
}

/// A buffer of a pool.
#[derive(Debug)]
pub(super) struct Pooled {
    /// Taken when it is dropped.
    buffer: Option<Buffer>,
    number: usize,
    home: Arc<BufferPool>,
}

impl BufferPool {
    pub(super) fn new(session: &Arc<Session>) -> Arc<BufferPool> {
        Arc::new(BufferPool { session: Arc::clone(session), free: Mutex::default() })
    }

    /// A buffer of at least `bytes` bytes; its content is undefined.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<Pooled, OpenClError> {
        let size = bytes.max(BYTES_MIN).next_power_of_two();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.buffers.range((size, 0)..=(size, usize::MAX)).next().map(|(key, _)| *key);
        let known = found.and_then(|key| Some((free.buffers.remove(&key)?, key.1)));
        let (buffer, number) = match known {
            Some(known) => known,
            None => {
                let buffer = self.session.buffer(size, "values between ops").or_else(|error| {
                    // Free buffers of other sizes are of no use now.
                    free.buffers.clear();
                    self.session.buffer(size, "values between ops").map_err(|_| error)
                })?;
                free.allocated += 1;
                (buffer, free.allocated)
            }
        };
        Ok(Pooled { buffer: Some(buffer), number, home: Arc::clone(self) })
    }
}

impl Pooled {
    pub(super) fn buffer(&self) -> &Buffer {
        match &self.buffer {
            Some(buffer) => buffer,
            None => unreachable!("it is taken on drop only"),
        }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut free = self.home.free.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = self.buffer.take();
        free.buffers.extend(buffer.map(|buffer| ((buffer.bytes(), self.number), buffer)));
    }
}

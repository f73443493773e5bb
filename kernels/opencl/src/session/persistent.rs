//! Ops that wait to be computed by a persistent kernel, which takes one launch for many of them.
//!
//! They are in the compute queue as any other command: whatever is added to it after them is preceded by
//! their launch. They name buffers by address, because a launch with a hundred buffers costs a driver as much
//! as ten launches.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::copies::{HostBytes, HostCopy};
use super::{Arg, Buffer, Kernel, Lane, Range, Session};
use crate::error::OpenClError;

/// Words of an op before its arguments: the kernel's number, and the items or groups in each dimension.
pub(crate) const HEAD_WORDS: usize = 4;

/// Words of an op.
pub(crate) const OP_WORDS: usize = 48;

/// Ops of a run's first launch, so that the device begins while further ones are being added.
const FIRST_OPS: usize = 16;

/// Most ops of a launch.
const OPS_MAX: usize = 256;

/// Lists of ops that are kept in the device's memory: runs of the same shape have the same.
const LISTS: usize = 32;

/// How often a group reads the counter of a barrier before the barrier times out: some seconds.
const POLLS_MAX: u32 = 1 << 23;

/// A persistent kernel and the ops that wait for its next launch.
#[derive(Debug)]
pub(crate) struct Persistent {
    kernel: Kernel,
    /// Writes the address of a buffer.
    address: Kernel,
    /// Groups, which all run at the same time, and their items.
    groups: [usize; 2],
    /// Arrivals of groups at barriers since the first launch, and whether a barrier timed out.
    sync: Buffer,
    arrived: u32,
    /// Whether it was launched since the last look at `sync`.
    is_used: bool,
    limit: usize,
    ops: Vec<u32>,
    /// How many of `ops` have no barrier after them, and whether the last op is one of these.
    without_barrier: usize,
    is_last_without_barrier: bool,
    lists: VecDeque<(Vec<u32>, Buffer)>,
}

/// An op for a persistent kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersistentOp<'a> {
    /// The kernel's number.
    pub(crate) number: u32,
    /// Items, or groups of a kernel that has groups.
    pub(crate) size: [usize; 3],
    pub(crate) args: &'a [Arg<'a>],
    /// Whether every group computes it for the next op, which is in the same launch. No barrier follows it.
    pub(crate) is_for_next: bool,
}

impl Persistent {
    /// `kernels`: the persistent kernel, and the one that writes the address of its first argument to its
    /// second. `groups`: how many, and their items.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn new(
        session: &Session,
        [kernel, address]: [Kernel; 2],
        groups: [usize; 2],
    ) -> Result<Persistent, OpenClError> {
        let sync = session.filled(&[0; 2 * size_of::<u32>()], "a persistent kernel")?;
        Ok(Persistent {
            kernel,
            address,
            groups,
            sync,
            arrived: 0,
            is_used: false,
            limit: FIRST_OPS,
            ops: Vec::new(),
            without_barrier: 0,
            is_last_without_barrier: false,
            lists: VecDeque::new(),
        })
    }

    fn push(&mut self, session: &Session, op: &PersistentOp<'_>) -> Result<(), OpenClError> {
        let end = self.ops.len() + OP_WORDS;
        self.ops.push(op.number);
        self.ops.extend(op.size.map(|size| size as u32));
        for arg in op.args {
            match arg {
                Arg::Buffer(buffer) => {
                    let address = session.address(&mut self.address, buffer)?;
                    self.ops.extend([address as u32, (address >> 32) as u32]);
                }
                Arg::Int(value) => self.ops.push(value.cast_unsigned()),
                Arg::Float(value) => self.ops.push(value.to_bits()),
            }
        }
        assert!(self.ops.len() <= end, "an op with {} arguments", op.args.len());
        self.ops.resize(end, 0);
        Ok(())
    }

    /// The copy to the host of whether a barrier timed out.
    fn copy_of_timed_out<'a>(&'a self, to: &'a mut [u8; 4]) -> HostCopy<'a> {
        HostCopy { buffer: &self.sync, at: 4, host: HostBytes::FromDevice(to) }
    }
}

impl Session {
    /// Makes `persistent` compute the ops that are recorded from now on; `None` ends that. Ops that were
    /// not launched yet are dropped.
    pub(crate) fn set_persistent(&self, persistent: Option<Persistent>) {
        *self.persistent.lock().unwrap_or_else(PoisonError::into_inner) = persistent;
    }

    /// Adds an op to the compute queue.
    ///
    /// # Safety
    /// As [`launch`](Session::launch), for the function of that number in the persistent kernel. The buffers
    /// must not be released until the queue has passed the op: the driver does not know of them.
    ///
    /// # Panics
    /// If there is no persistent kernel.
    pub(crate) unsafe fn record(&self, op: &PersistentOp<'_>) -> Result<(), OpenClError> {
        if op.size.contains(&0) {
            return Ok(());
        }
        let mut guard = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        let persistent = guard.as_mut().expect("a persistent kernel");
        if persistent.ops.len() >= persistent.limit * OP_WORDS
            && !persistent.is_last_without_barrier
        {
            self.launch_ops(persistent)?;
            persistent.limit = (2 * persistent.limit).min(OPS_MAX);
            // The device begins.
            self.flush_queue()?;
        }
        let length = persistent.ops.len();
        let pushed = persistent.push(self, op);
        match pushed {
            Ok(()) => {
                persistent.is_last_without_barrier = op.is_for_next;
                persistent.without_barrier += usize::from(op.is_for_next);
            }
            Err(_) => persistent.ops.truncate(length),
        }
        pushed
    }

    /// Where a buffer is in the device's memory, in bytes. Waits when asked for the first time.
    fn address(&self, kernel: &mut Kernel, buffer: &Buffer) -> Result<u64, OpenClError> {
        if let Some(address) = buffer.address.get() {
            return Ok(*address);
        }
        let out = self.allocate(size_of::<u64>()).ok_or_else(|| self.no_memory("an address", 8))?;
        let mut bytes = [0; size_of::<u64>()];
        let args = [Arg::Buffer(buffer), Arg::Buffer(&out)];
        let one = Range { groups: [1; 3], local: [1; 3] };
        // SAFETY: the kernel's parameters; it writes 8 bytes.
        unsafe { self.launch_now(Lane::Transfer, kernel, &args, one) }?;
        self.read(Lane::Transfer, &out, 0, &mut bytes)?;
        Ok(*buffer.address.get_or_init(|| u64::from_le_bytes(bytes)))
    }

    /// Makes the groups of the persistent kernel wait for one more than there is.
    #[cfg(test)]
    pub(crate) fn expect_group(&self) {
        let mut guard = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        let persistent = guard.as_mut().expect("a persistent kernel");
        persistent.arrived = persistent.arrived.wrapping_add(1);
    }

    /// Launches the ops that wait.
    pub(super) fn settle(&self) -> Result<(), OpenClError> {
        let mut guard = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_mut().map_or(Ok(()), |persistent| self.launch_ops(persistent))
    }

    fn launch_ops(&self, persistent: &mut Persistent) -> Result<(), OpenClError> {
        if persistent.ops.is_empty() {
            return Ok(());
        }
        let ops = std::mem::take(&mut persistent.ops);
        let count = ops.len() / OP_WORDS;
        // The last op has no barrier in any case.
        let without = std::mem::take(&mut persistent.without_barrier)
            - usize::from(std::mem::take(&mut persistent.is_last_without_barrier));
        let barriers = count - 1 - without;
        let known = persistent.lists.iter().position(|(list, _)| *list == ops);
        let list = match known.and_then(|at| persistent.lists.remove(at)) {
            Some(list) => list,
            None => {
                let bytes: &[u8] = bytemuck::cast_slice(&ops);
                let buffer = self.allocate(bytes.len());
                let buffer = buffer.ok_or_else(|| self.no_memory("a list of ops", bytes.len()))?;
                self.write(Lane::Transfer, &buffer, 0, bytes)?;
                (ops, buffer)
            }
        };
        let [groups, items] = persistent.groups;
        let Persistent { kernel, sync, arrived, .. } = &mut *persistent;
        let [count_arg, arrived_arg, polls_max] =
            [count as u32, *arrived, POLLS_MAX].map(|word| Arg::Int(word.cast_signed()));
        let args = [Arg::Buffer(&list.1), count_arg, Arg::Buffer(sync), arrived_arg, polls_max];
        let range = Range { groups: [groups, 1, 1], local: [items, 1, 1] };
        // SAFETY: the kernel's parameters; `record` promised that the ops stay within their buffers.
        let launched = unsafe { self.launch_now(Lane::Compute, kernel, &args, range) };
        if launched.is_ok() {
            // There is a barrier after each op but those for the next one.
            persistent.arrived = arrived.wrapping_add((groups * barriers) as u32);
            persistent.is_used = true;
        }
        persistent.lists.push_back(list);
        if persistent.lists.len() > LISTS {
            persistent.lists.pop_front();
        }
        launched
    }

    /// Adds a copy to `timed_out` to the compute queue, if a persistent kernel was launched since the last call:
    /// a number that is not 0 if a barrier timed out. Returns whether it was launched.
    ///
    /// # Safety
    /// `timed_out` must stay in place, and be neither read nor written, until the queue has passed the copy.
    pub(crate) unsafe fn read_timed_out(
        &self,
        timed_out: &mut [u8; 4],
    ) -> Result<bool, OpenClError> {
        let mut guard = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(persistent) = guard.as_mut() else { return Ok(false) };
        self.launch_ops(persistent)?;
        persistent.limit = FIRST_OPS;
        if !std::mem::take(&mut persistent.is_used) {
            return Ok(false);
        }
        let copy = persistent.copy_of_timed_out(timed_out);
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(Lane::Compute, copy, false) }?;
        Ok(true)
    }

    /// Whether a barrier of the persistent kernel timed out. Waits for the compute queue.
    pub(crate) fn is_timed_out(&self) -> Result<bool, OpenClError> {
        let mut guard = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(persistent) = guard.as_mut() else { return Ok(false) };
        self.launch_ops(persistent)?;
        let mut timed_out = [0; 4];
        let copy = persistent.copy_of_timed_out(&mut timed_out);
        // SAFETY: `timed_out` is borrowed until the copy has ended.
        unsafe { self.enqueue(Lane::Compute, copy, true) }?;
        Ok(timed_out != [0; 4])
    }
}

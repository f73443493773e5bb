//! Copies of pages and states in the memory of devices: which of them are current.
//!
//! A device with its own memory keeps a copy of the pages that it works with. Whoever writes rows
//! of a page becomes its only holder; whoever needs a page and does not hold it copies it from the
//! host, which copies it from another holder first. Pages move whole. The content of a page before
//! its first row is written is of no interest, so a page that is written from its first row on is
//! never copied. The same holds of the states at a place, which are always written whole.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::device::{DeviceError, SpanStates};
use crate::kv::{KvLayout, KvSize, PageId, StateId};
use crate::sync::{Mutex, MutexGuard, lock};

/// The pages and states in a device's memory.
pub trait KvMirror: Send + Sync + fmt::Debug {
    /// Copies a page of a layer to the host, after all runs of the device that are complete. Waits.
    ///
    /// # Errors
    /// [`DeviceError`] when the device has failed.
    fn read_page(&self, layer: usize, page: PageId, to: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies the state of a layer at a place to the host, after all runs of the device that are complete. Waits.
    ///
    /// # Errors
    /// [`DeviceError`] when the device has failed.
    fn read_state(&self, state: usize, place: StateId, to: &mut [u8]) -> Result<(), DeviceError>;
}

/// Number of a copy of the pages and states; the host's is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvCopyId(u32);

impl KvCopyId {
    pub(crate) const HOST: KvCopyId = KvCopyId(0);

    fn bit(self) -> u32 {
        1 << self.0
    }
}

/// Pages and states that were copied between host and devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvCopies {
    /// Pages of one layer, or states of one, that were copied from a device to the host.
    pub to_host: usize,
    /// Pages of one layer, or states of one, that were copied from the host to a device.
    pub to_device: usize,
    /// Bytes of both.
    pub bytes: usize,
}

/// The rows of a sequence that a copy is about to read and write, in one layer.
#[derive(Clone, Debug)]
pub struct KvAccess<'a> {
    /// Pages of the sequence.
    pub pages: &'a [PageId],
    /// Positions to be written, if any; all positions before them are read.
    pub written: Range<usize>,
}

/// A part of a cache whose pages or places have holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KvPart {
    /// The pages of a layer.
    Pages(usize),
    /// The places of a state.
    States(usize),
}

/// Who holds which page, and the state at which place.
#[derive(Debug)]
pub(super) struct Copies {
    layout: KvLayout,
    size: KvSize,
    /// Bits of the holders of each page, for each layer.
    pages: Vec<Mutex<Vec<u32>>>,
    /// Bits of the holders of each place, for each state.
    states: Vec<Mutex<Vec<u32>>>,
    mirrors: Mutex<Vec<Arc<dyn KvMirror>>>,
    /// Number of mirrors, readable without the lock.
    count: AtomicUsize,
    to_host: AtomicUsize,
    to_device: AtomicUsize,
    bytes: AtomicUsize,
}

impl Copies {
    pub(super) fn new(layout: KvLayout, size: KvSize) -> Copies {
        Copies {
            size,
            pages: layout.layers.iter().map(|_| Mutex::default()).collect(),
            states: layout.states.iter().map(|_| Mutex::default()).collect(),
            layout,
            mirrors: Mutex::default(),
            count: AtomicUsize::new(0),
            to_host: AtomicUsize::new(0),
            to_device: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Most copies beside the host's.
    const MIRRORS_MAX: usize = u32::BITS as usize - 1;

    pub(super) fn attach(&self, mirror: Arc<dyn KvMirror>) -> Option<KvCopyId> {
        let mut mirrors = lock(&self.mirrors);
        if mirrors.len() == Copies::MIRRORS_MAX {
            return None;
        }
        mirrors.push(mirror);
        self.count.store(mirrors.len(), Ordering::Release);
        Some(KvCopyId(mirrors.len() as u32))
    }

    /// Whether the host's copy is the only one.
    pub(super) fn is_alone(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(super) fn stats(&self) -> KvCopies {
        let counts = [&self.to_host, &self.to_device, &self.bytes];
        let [to_host, to_device, bytes] = counts.map(|count| count.load(Ordering::Relaxed));
        KvCopies { to_host, to_device, bytes }
    }

    /// The holders of each page or place of a part.
    fn holders_of(&self, part: KvPart) -> MutexGuard<'_, Vec<u32>> {
        let (holders, count) = match part {
            KvPart::Pages(layer) => (&self.pages[layer], self.size.pages),
            KvPart::States(state) => (&self.states[state], self.size.states),
        };
        let mut holders = lock(holders);
        // What has no entry has never been written, so all copies of it hold the same values.
        holders.resize(count as usize, u32::MAX);
        holders
    }

    /// Makes `copy` a holder of what these bits say who holds. Returns the other copy to take it from, if it was none: the
    /// host's, if that is a holder.
    fn hold(bits: &mut u32, copy: KvCopyId) -> Option<KvCopyId> {
        let known = std::mem::replace(bits, *bits | copy.bit());
        let from = if known & KvCopyId::HOST.bit() != 0 { 0 } else { known.trailing_zeros() };
        (known & copy.bit() == 0).then_some(KvCopyId(from))
    }

    /// Makes `copy` a holder of all pages that it is about to read and the only holder of those that
    /// it is about to write. Returns the pages whose rows it lacks, with the other copy to take each
    /// from: the host's, if it is a holder.
    pub(super) fn claim(
        &self,
        layer: usize,
        copy: KvCopyId,
        access: &KvAccess<'_>,
    ) -> Vec<(PageId, KvCopyId)> {
        let KvAccess { pages, written } = access;
        let layout = &self.layout;
        let mut holders = self.holders_of(KvPart::Pages(layer));
        let first_written = written.start / layout.page_rows;
        // A page that is written from its first row on has no rows to keep.
        let read = layout.pages_for(written.start).min(pages.len());
        let mut missing = Vec::new();
        for page in &pages[..read] {
            let from = Copies::hold(&mut holders[*page as usize], copy);
            missing.extend(from.map(|from| (*page, from)));
        }
        let end = layout.pages_for(written.end).min(pages.len());
        let end = if written.is_empty() { first_written } else { end };
        for page in &pages[first_written.min(end)..end] {
            holders[*page as usize] = copy.bit();
        }
        missing
    }

    /// Makes `copy` a holder of the state before the rows of a span, and the only holder of those that the span keeps. Returns the
    /// place of the former and the copy to take it from, if it lacks that.
    pub(super) fn claim_states(
        &self,
        state: usize,
        copy: KvCopyId,
        states: &SpanStates,
    ) -> Option<(StateId, KvCopyId)> {
        let mut holders = self.holders_of(KvPart::States(state));
        let missing = states
            .from
            .and_then(|place| Some((place, Copies::hold(&mut holders[place as usize], copy)?)));
        states.written().for_each(|place| holders[place as usize] = copy.bit());
        missing
    }

    /// Makes the host a holder of a page or place. Returns the copy to take it from, unless it was a holder.
    pub(super) fn claim_read(&self, part: KvPart, at: u32) -> Option<KvCopyId> {
        Copies::hold(&mut self.holders_of(part)[at as usize], KvCopyId::HOST)
    }

    /// Makes the host the only holder of a page or place.
    pub(super) fn claim_write(&self, part: KvPart, at: u32) {
        self.holders_of(part)[at as usize] = KvCopyId::HOST.bit();
    }

    /// Copies a page, or the state at a place, from a device to the host.
    pub(super) fn fetch(
        &self,
        part: KvPart,
        at: u32,
        from: KvCopyId,
        to: &mut [u8],
    ) -> Result<(), DeviceError> {
        let mirror = lock(&self.mirrors).get(from.0 as usize - 1).map(Arc::clone);
        let Some(mirror) = mirror else { return Ok(()) };
        self.to_host.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(to.len(), Ordering::Relaxed);
        match part {
            KvPart::Pages(layer) => mirror.read_page(layer, at, to),
            KvPart::States(state) => mirror.read_state(state, at, to),
        }
    }

    /// Counts pages or states of so many bytes each.
    pub(super) fn count_to_device(&self, count: usize, bytes: usize) {
        self.to_device.fetch_add(count, Ordering::Relaxed);
        self.bytes.fetch_add(count * bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

//! Copies of pages in the memory of devices: which of them hold the current rows.
//!
//! A device with its own memory keeps a copy of the pages that it works with. Whoever writes rows
//! of a page becomes its only holder; whoever needs a page and does not hold it copies it from the
//! host, which copies it from another holder first. Pages move whole. The content of a page before
//! its first row is written is of no interest, so a page that is written from its first row on is
//! never copied.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::device::DeviceError;
use crate::kv::{KvLayout, PageId};
use crate::sync::{Mutex, MutexGuard, lock};

/// The pages in a device's memory.
pub trait KvMirror: Send + Sync + fmt::Debug {
    /// Copies a page of a layer to the host, after all runs of the device that are complete. Waits.
    ///
    /// # Errors
    /// [`DeviceError`] when the device has failed.
    fn read_page(&self, layer: usize, page: PageId, to: &mut [u8]) -> Result<(), DeviceError>;
}

/// Number of a copy of the pages; the host's is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvCopyId(u32);

impl KvCopyId {
    pub(crate) const HOST: KvCopyId = KvCopyId(0);

    fn bit(self) -> u32 {
        1 << self.0
    }
}

/// Pages that were copied between host and devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvCopies {
    /// Pages of one layer that were copied from a device to the host.
    pub to_host: usize,
    /// Pages of one layer that were copied from the host to a device.
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

/// Who holds which page.
#[derive(Debug)]
pub(super) struct Copies {
    layout: KvLayout,
    /// Number of pages.
    pages: usize,
    /// Bits of the holders of each page, for each layer.
    holders: Vec<Mutex<Vec<u32>>>,
    mirrors: Mutex<Vec<Arc<dyn KvMirror>>>,
    /// Number of mirrors, readable without the lock.
    count: AtomicUsize,
    to_host: AtomicUsize,
    to_device: AtomicUsize,
    bytes: AtomicUsize,
}

impl Copies {
    pub(super) fn new(layout: KvLayout, pages: usize) -> Copies {
        Copies {
            pages,
            holders: layout.layers.iter().map(|_| Mutex::default()).collect(),
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

    /// The holders of each page of a layer.
    fn holders_of(&self, layer: usize) -> MutexGuard<'_, Vec<u32>> {
        let mut holders = lock(&self.holders[layer]);
        // A page without an entry has never been written, so all copies of it hold the same rows.
        holders.resize(self.pages, u32::MAX);
        holders
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
        let mut holders = self.holders_of(layer);
        let first_written = written.start / layout.page_rows;
        // A page that is written from its first row on has no rows to keep.
        let read = layout.pages_for(written.start).min(pages.len());
        let mut missing = Vec::new();
        for page in &pages[..read] {
            let bits = &mut holders[*page as usize];
            if *bits & copy.bit() == 0 {
                let from = if *bits & 1 != 0 { 0 } else { bits.trailing_zeros() };
                missing.push((*page, KvCopyId(from)));
                *bits |= copy.bit();
            }
        }
        let end = layout.pages_for(written.end).min(pages.len());
        let end = if written.is_empty() { first_written } else { end };
        for page in &pages[first_written.min(end)..end] {
            holders[*page as usize] = copy.bit();
        }
        missing
    }

    /// Makes the host a holder of a page. Returns the copy to take it from: the host's, if it was a holder.
    pub(super) fn claim_read(&self, layer: usize, page: PageId) -> KvCopyId {
        let host = KvCopyId::HOST.bit();
        let mut holders = self.holders_of(layer);
        let bits = holders[page as usize];
        holders[page as usize] |= host;
        if bits & host != 0 { KvCopyId::HOST } else { KvCopyId(bits.trailing_zeros()) }
    }

    /// Makes the host the only holder of a page.
    pub(super) fn claim_write(&self, layer: usize, page: PageId) {
        self.holders_of(layer)[page as usize] = KvCopyId::HOST.bit();
    }

    /// Copies a page from a device to the host.
    pub(super) fn fetch(
        &self,
        layer: usize,
        page: PageId,
        from: KvCopyId,
        to: &mut [u8],
    ) -> Result<(), DeviceError> {
        let mirror = lock(&self.mirrors).get(from.0 as usize - 1).map(Arc::clone);
        let Some(mirror) = mirror else { return Ok(()) };
        self.to_host.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(to.len(), Ordering::Relaxed);
        mirror.read_page(layer, page, to)
    }

    /// Counts pages of so many bytes each.
    pub(super) fn count_to_device(&self, pages: usize, page_bytes: usize) {
        self.to_device.fetch_add(pages, Ordering::Relaxed);
        self.bytes.fetch_add(pages * page_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

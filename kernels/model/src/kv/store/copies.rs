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
}

impl Copies {
    pub(super) fn new(layout: KvLayout, pages: usize) -> Copies {
        Copies {
            layout,
            pages,
            holders: (0..layout.layers).map(|_| Mutex::default()).collect(),
            mirrors: Mutex::default(),
            count: AtomicUsize::new(0),
            to_host: AtomicUsize::new(0),
            to_device: AtomicUsize::new(0),
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

    pub(super) fn stats(&self, page_bytes: usize) -> KvCopies {
        let [to_host, to_device] =
            [&self.to_host, &self.to_device].map(|count| count.load(Ordering::Relaxed));
        KvCopies { to_host, to_device, bytes: (to_host + to_device) * page_bytes }
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
        mirror.read_page(layer, page, to)
    }

    pub(super) fn count_to_device(&self, pages: usize) {
        self.to_device.fetch_add(pages, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{DuplicatePage, KvDtype, KvStore};

    /// Pages of a device in plain memory: `[page][bytes]` of one layer.
    #[derive(Debug)]
    struct Memory(Mutex<Vec<Vec<u8>>>);

    impl KvMirror for Memory {
        fn read_page(&self, _: usize, page: PageId, to: &mut [u8]) -> Result<(), DeviceError> {
            to.copy_from_slice(&lock(&self.0)[page as usize]);
            Ok(())
        }
    }

    const LAYOUT: KvLayout =
        KvLayout { layers: 1, kv_heads: 1, head_dim: 2, page_rows: 4, dtype: KvDtype::F32 };
    const PAGES: usize = 6;

    /// A device with copies of the pages.
    struct Device<'a> {
        store: &'a KvStore,
        copy: KvCopyId,
        memory: Arc<Memory>,
    }

    impl Device<'_> {
        fn attached(store: &KvStore) -> Device<'_> {
            let memory = vec![vec![0; LAYOUT.page_bytes()]; PAGES];
            let memory = Arc::new(Memory(Mutex::new(memory)));
            let mirror = Arc::clone(&memory) as Arc<dyn KvMirror>;
            Device { store, copy: store.attach(mirror).expect("few devices"), memory }
        }

        /// Uploads what the device lacks for these rows, then sets a byte of each row to `to`.
        fn write(&self, pages: &[PageId], rows: Range<usize>, to: u8) -> Vec<PageId> {
            let mut uploaded = Vec::new();
            let access = KvAccess { pages, written: rows.clone() };
            let upload = |page: PageId, bytes: &[u8]| {
                uploaded.push(page);
                lock(&self.memory.0)[page as usize].copy_from_slice(bytes);
                Ok(())
            };
            self.store.bring_to_device(0, self.copy, &access, upload).expect("no failure");
            for row in rows {
                let page = pages[row / LAYOUT.page_rows] as usize;
                lock(&self.memory.0)[page][row % LAYOUT.page_rows] = to;
            }
            uploaded
        }
    }

    #[test]
    fn pages_move_only_to_a_copy_that_lacks_their_rows() {
        let store = KvStore::new(LAYOUT, PAGES as u32).expect("memory");
        let device = Device::attached(&store);
        let pages = [3, 1, 4];
        // The host writes rows 0 to 5: pages 3 and 1.
        let access = KvAccess { pages: &pages, written: 0..6 };
        assert_eq!(store.layer(0).bring_to_host(&access), Ok(0));
        [3, 1].into_iter().for_each(|page| store.layer(0).fill(page, 1));
        // The device appends row 6: it lacks both.
        assert_eq!(device.write(&pages, 6..7, 9), [3, 1]);
        // And again: it has them.
        assert!(device.write(&pages, 7..8, 9).is_empty());
        // A new page is written from its first row on, so nothing is copied for it.
        assert!(device.write(&pages, 8..10, 9).is_empty());
        // The host appends row 10: it lacks the pages that the device wrote, and has page 3.
        let access = KvAccess { pages: &pages, written: 10..11 };
        let copied = store.layer(0).bring_to_host(&access);
        assert_eq!(copied, Ok(2 * LAYOUT.page_bytes()));
        let row_6 = store.layer(0).byte(1, 2);
        assert_eq!(row_6, 9, "the row that the device wrote to page 1");
        assert_eq!(store.layer(0).bring_to_host(&access), Ok(0));
        let copies = store.copies();
        assert_eq!((copies.to_host, copies.to_device), (2, 2));
        assert_eq!(copies.bytes, 4 * LAYOUT.page_bytes());
    }

    #[test]
    fn a_page_goes_from_one_device_to_another_by_way_of_the_host() {
        let store = KvStore::new(LAYOUT, PAGES as u32).expect("memory");
        let (first, second) = (Device::attached(&store), Device::attached(&store));
        let pages = [2];
        first.write(&pages, 0..2, 5);
        assert_eq!(second.write(&pages, 2..3, 6), [2]);
        assert_eq!(lock(&second.memory.0)[2][..3], [5, 5, 6]);
        assert_eq!((store.copies().to_host, store.copies().to_device), (1, 1));
        // The first one is out of date now.
        assert_eq!(first.write(&pages, 3..4, 7), [2]);
        assert_eq!(lock(&first.memory.0)[2][..4], [5, 5, 6, 7]);
    }

    #[test]
    fn a_duplicate_has_the_rows_that_only_a_device_holds() {
        let store = KvStore::new(LAYOUT, PAGES as u32).expect("memory");
        let device = Device::attached(&store);
        device.write(&[3], 0..2, 5);
        store.duplicate_page(3, 4).expect("no failure");
        assert_eq!([0, 1].map(|at| store.layer(0).byte(4, at)), [5, 5]);
        // The device lacks the duplicate, and still holds the original.
        assert_eq!(device.write(&[4], 2..3, 6), [4]);
        assert!(device.write(&[3], 2..3, 6).is_empty());
        assert_eq!(lock(&device.memory.0)[4][..3], [5, 5, 6]);
    }

    #[test]
    fn a_page_of_another_sequence_is_not_copied_when_it_is_written_anew() {
        let store = KvStore::new(LAYOUT, PAGES as u32).expect("memory");
        let device = Device::attached(&store);
        device.write(&[0, 1], 0..8, 1);
        let access = KvAccess { pages: &[1, 0], written: 0..3 };
        assert_eq!(store.layer(0).bring_to_host(&access), Ok(0));
    }
}

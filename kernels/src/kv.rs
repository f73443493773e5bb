//! Keys and values in pages: who owns which page, and the storage.

use crate::binary16::from_f32;
use crate::sync::{Mutex, MutexGuard, lock};
use std::sync::Arc;
use thiserror::Error;

/// Number of a page in the pool and in the store.
pub type PageId = u32;

/// Shape of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// Layers of the model.
    pub layers: usize,
    /// Key–value heads per layer.
    pub kv_heads: usize,
    /// Values per head.
    pub head_dim: usize,
    /// Positions per page.
    pub page_rows: usize,
}

impl KvLayout {
    /// Positions per page unless there is a reason for another number.
    pub const PAGE_ROWS: usize = 32;

    /// Pages that `rows` positions take.
    pub fn pages_for(&self, rows: usize) -> usize {
        rows.div_ceil(self.page_rows.max(1))
    }

    /// Bytes of one page over all layers, keys and values.
    pub fn page_bytes(&self) -> usize {
        self.layers * 2 * self.part_len() * 2
    }

    /// Values of the keys (or of the values) of one layer's page.
    fn part_len(&self) -> usize {
        self.kv_heads * self.head_dim * self.page_rows
    }
}

/// The pool has too few free pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "out of KV pages: {wanted} wanted, {free} free; wait for a sequence to end, or make \
         the cache larger"
)]
pub struct OutOfPages {
    /// Pages asked for.
    pub wanted: usize,
    /// Pages that were free.
    pub free: usize,
}

/// The system has not the memory for a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the system gives no memory for a KV cache of {pages} pages of {page_bytes} bytes; set a \
         smaller context or cache"
)]
pub struct KvTooLarge {
    /// Pages asked for.
    pub pages: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
}

/// Allocator of page numbers. Clones share the pages.
#[derive(Clone, Debug)]
pub struct KvPool {
    free: Arc<Mutex<Vec<PageId>>>,
    capacity: usize,
}

impl KvPool {
    /// A pool of pages `0 … pages − 1`, all free.
    pub fn new(pages: u32) -> KvPool {
        KvPool { free: Arc::new(Mutex::new((0..pages).rev().collect())), capacity: pages as usize }
    }

    /// Takes `n` pages, or none.
    ///
    /// # Errors
    /// When fewer than `n` are free.
    pub fn alloc(&self, n: usize) -> Result<Vec<KvPage>, OutOfPages> {
        let mut free = lock(&self.free);
        let Some(rest) = free.len().checked_sub(n) else {
            return Err(OutOfPages { wanted: n, free: free.len() });
        };
        let ids = free.split_off(rest).into_iter().rev();
        Ok(ids.map(|id| KvPage(Arc::new(Owned { id, home: self.free.clone() }))).collect())
    }

    /// Pages that nobody owns.
    pub fn free_pages(&self) -> usize {
        lock(&self.free).len()
    }

    /// All pages.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

#[derive(Debug)]
struct Owned {
    id: PageId,
    home: Arc<Mutex<Vec<PageId>>>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        lock(&self.home).push(self.id);
    }
}

/// A page that is owned; it returns to its pool when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct KvPage(Arc<Owned>);

impl KvPage {
    /// Its number.
    pub fn id(&self) -> PageId {
        self.0.id
    }

    /// Whether another clone of it exists: whoever wants to write must then copy it first.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The pages of one sequence, in order of position. A clone shares them.
#[derive(Clone, Debug, Default)]
pub struct KvLease {
    pages: Vec<KvPage>,
    ids: Vec<PageId>,
}

impl KvLease {
    /// A lease over `pages`, the first of which holds position 0.
    pub fn new(pages: Vec<KvPage>) -> KvLease {
        let ids = pages.iter().map(KvPage::id).collect();
        KvLease { pages, ids }
    }

    /// The pages.
    pub fn pages(&self) -> &[KvPage] {
        &self.pages
    }

    /// Their numbers, as [`KvStore`] and attention want them.
    pub fn page_ids(&self) -> &[PageId] {
        &self.ids
    }

    /// Takes pages from `pool` until `rows` positions fit; never gives any back.
    ///
    /// # Errors
    /// When the pool has too few; the lease is then unchanged.
    pub fn grow(
        &mut self,
        pool: &KvPool,
        layout: &KvLayout,
        rows: usize,
    ) -> Result<(), OutOfPages> {
        let missing = layout.pages_for(rows).saturating_sub(self.pages.len());
        let more = pool.alloc(missing)?;
        self.ids.extend(more.iter().map(KvPage::id));
        self.pages.extend(more);
        Ok(())
    }

    /// Gives back the pages that the first `rows` positions do not need.
    pub fn truncate(&mut self, layout: &KvLayout, rows: usize) {
        let keep = layout.pages_for(rows);
        self.pages.truncate(keep);
        self.ids.truncate(keep);
    }
}

/// The storage of all pages, in binary16, shared by the devices of one address space. Memory of
/// pages that were never written is not touched. Each layer has a lock of its own, which a device
/// holds while it attends: chunks in different layers do not wait for each other.
///
/// Within a page, keys are `[kv_head][head_dim][row]`, so that the scores of a page are
/// sums over vectors of neighbouring keys, and values are `[kv_head][row][head_dim]`.
#[derive(Debug)]
pub struct KvStore {
    layout: KvLayout,
    pages: usize,
    layers: Vec<Mutex<Vec<u16>>>,
}

impl KvStore {
    /// Zeroed storage for `pages` pages.
    ///
    /// # Errors
    /// When the system does not give that much memory.
    pub fn new(layout: KvLayout, pages: u32) -> Result<KvStore, KvTooLarge> {
        let pages = pages as usize;
        let too_large = KvTooLarge { pages, page_bytes: layout.page_bytes() };
        let all = (layout.page_bytes() / 2).checked_mul(pages).ok_or(too_large)?;
        // A zeroed vector ends the process where there is no memory; this only asks for it.
        Vec::<u16>::new().try_reserve_exact(all).map_err(|_| too_large)?;
        let layer = 2 * layout.part_len() * pages;
        let layers = (0..layout.layers).map(|_| Mutex::new(vec![0; layer])).collect();
        Ok(KvStore { layout, pages, layers })
    }

    /// No layer and no page: for a device that never attends.
    pub fn none() -> KvStore {
        let layout = KvLayout { layers: 0, kv_heads: 0, head_dim: 0, page_rows: 1 };
        KvStore { layout, pages: 0, layers: Vec::new() }
    }

    /// Shape.
    pub fn layout(&self) -> &KvLayout {
        &self.layout
    }

    /// Pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// A layer's keys and values. Waits for whoever else holds them.
    ///
    /// # Panics
    /// When there is no such layer.
    pub fn layer(&self, layer: usize) -> KvLayer<'_> {
        KvLayer { layout: self.layout, pages: self.pages, data: lock(&self.layers[layer]) }
    }
}

/// Keys and values of one layer, locked.
#[derive(Debug)]
pub struct KvLayer<'a> {
    layout: KvLayout,
    pages: usize,
    data: MutexGuard<'a, Vec<u16>>,
}

impl KvLayer<'_> {
    /// Shape.
    pub fn layout(&self) -> &KvLayout {
        &self.layout
    }

    /// Writes rows `start_pos …` of one sequence: `k` and `v` are `[rows][kv_heads][head_dim]`,
    /// rounded to nearest binary16, ties to even.
    ///
    /// # Panics
    /// When `k` and `v` are not whole rows of one number, or `pages` are too few or unknown.
    pub fn write(&mut self, pages: &[PageId], start_pos: usize, (k, v): (&[f32], &[f32])) {
        let KvLayout { head_dim, page_rows, .. } = self.layout;
        let width = self.layout.kv_heads * head_dim;
        assert!(k.len() == v.len() && k.len().is_multiple_of(width), "not whole rows of k and v");
        let rows = k.chunks_exact(width).zip(v.chunks_exact(width));
        for (i, (k, v)) in rows.enumerate() {
            let (page, row) = ((start_pos + i) / page_rows, (start_pos + i) % page_rows);
            let (keys, values) = self.parts_mut(pages[page]);
            for (j, k) in k.iter().enumerate() {
                keys[j * page_rows + row] = from_f32(*k);
            }
            let heads = values.chunks_exact_mut(page_rows * head_dim);
            for (head, v) in heads.zip(v.chunks_exact(head_dim)) {
                for (to, v) in head[row * head_dim..][..head_dim].iter_mut().zip(v) {
                    *to = from_f32(*v);
                }
            }
        }
    }

    fn part_start(&self, page: PageId) -> usize {
        assert!((page as usize) < self.pages, "KV page {page} of {}", self.pages);
        page as usize * 2 * self.layout.part_len()
    }

    fn parts_mut(&mut self, page: PageId) -> (&mut [u16], &mut [u16]) {
        let (start, len) = (self.part_start(page), self.layout.part_len());
        self.data[start..start + 2 * len].split_at_mut(len)
    }

    /// Keys `[head_dim][page_rows]` and values `[page_rows][head_dim]` of one head's page.
    pub(crate) fn head(&self, page: PageId, kv_head: usize) -> (&[u16], &[u16]) {
        let (start, len) = (self.part_start(page), self.layout.part_len());
        let head = self.layout.head_dim * self.layout.page_rows;
        let (keys, values) = self.data[start..start + 2 * len].split_at(len);
        (&keys[kv_head * head..][..head], &values[kv_head * head..][..head])
    }
}

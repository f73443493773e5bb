//! Ownership of the pages of a KV cache.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::{OutOfPages, PageId};
use crate::sync::{Mutex, lock};

/// Allocator of page indices. Clones share the pages.
#[derive(Clone, Debug)]
pub struct KvPool {
    free: Arc<Mutex<Free>>,
    capacity: usize,
}

#[derive(Debug)]
struct Free {
    /// Pages that came back, the latest one last.
    pages: Vec<PageId>,
    /// Pages that were never allocated. They are allocated in this order when none of the others is left.
    fresh: Range<PageId>,
    /// Pages that never become free again.
    withheld: BTreeSet<PageId>,
}

impl KvPool {
    /// A pool of pages `0 … pages − 1`, all free.
    pub fn new(pages: u32) -> KvPool {
        let free = Free { pages: Vec::new(), fresh: 0..pages, withheld: BTreeSet::new() };
        KvPool { free: Arc::new(Mutex::new(free)), capacity: pages as usize }
    }

    /// Allocates `n` pages, or none.
    ///
    /// # Errors
    /// [`OutOfPages`] if fewer than `n` are free.
    pub fn alloc(&self, n: usize) -> Result<Vec<KvPage>, OutOfPages> {
        let free = &mut *lock(&self.free);
        if n > free.count() {
            return Err(OutOfPages { wanted: n, free: free.count() });
        }
        let rest = free.pages.len().saturating_sub(n);
        let back = free.pages.split_off(rest).into_iter().rev();
        let more = n - back.len();
        let ids = back.chain(free.fresh.by_ref().take(more));
        Ok(ids.map(|id| KvPage(Arc::new(Owned { id, home: self.free.clone() }))).collect())
    }

    /// Number of free pages.
    pub fn free_pages(&self) -> usize {
        lock(&self.free).count()
    }

    /// Takes pages out of use for good. They count as allocated; those that are leased stay with their owners.
    pub fn withhold(&self, pages: &[PageId]) {
        let mut free = lock(&self.free);
        let Free { pages: left, fresh, withheld } = &mut *free;
        withheld.extend(pages);
        // Those that were never allocated come last.
        left.splice(..0, std::mem::take(fresh).rev());
        left.retain(|page| !withheld.contains(page));
    }

    /// Number of pages that are not withheld.
    pub fn usable(&self) -> usize {
        self.capacity - lock(&self.free).withheld.len()
    }

    /// Total number of pages.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

impl Free {
    fn count(&self) -> usize {
        self.pages.len() + self.fresh.len()
    }
}

#[derive(Debug)]
struct Owned {
    id: PageId,
    home: Arc<Mutex<Free>>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        let mut free = lock(&self.home);
        if !free.withheld.contains(&self.id) {
            free.pages.push(self.id);
        }
    }
}

/// An allocated page. It returns to its pool when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct KvPage(Arc<Owned>);

impl KvPage {
    /// Index of the page.
    pub fn id(&self) -> PageId {
        self.0.id
    }

    /// Whether there are other clones of it.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

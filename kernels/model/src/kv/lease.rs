//! The pages of one sequence.

use std::sync::Arc;

#[cfg(doc)]
use super::KvStore;
use super::{KvLayout, KvPage, KvPool, OutOfPages, PageIds};

/// The pages of one sequence, in position order. A clone shares them, and costs two counts.
#[derive(Clone, Debug)]
pub struct KvLease {
    pages: Arc<Vec<KvPage>>,
    ids: PageIds,
}

impl Default for KvLease {
    fn default() -> KvLease {
        KvLease::new(Vec::new())
    }
}

impl KvLease {
    /// A lease of `pages`; the first one holds position 0.
    pub fn new(pages: Vec<KvPage>) -> KvLease {
        let ids = pages.iter().map(KvPage::id).collect();
        KvLease { pages: Arc::new(pages), ids }
    }

    /// The pages.
    pub fn pages(&self) -> &[KvPage] {
        &self.pages
    }

    /// Indices of the pages, for [`KvStore`] and attention.
    pub fn page_ids(&self) -> &PageIds {
        &self.ids
    }

    /// Allocates pages from `pool` until `rows` positions fit; never frees any. Clones keep the pages
    /// that they have.
    ///
    /// # Errors
    /// [`OutOfPages`] if the pool has too few free pages; the lease is then unchanged.
    pub fn grow(
        &mut self,
        pool: &KvPool,
        layout: &KvLayout,
        rows: usize,
    ) -> Result<(), OutOfPages> {
        let missing = layout.pages_for(rows).saturating_sub(self.pages.len());
        if missing == 0 {
            return Ok(());
        }
        let more = pool.alloc(missing)?;
        self.ids.extend(more.iter().map(KvPage::id));
        Arc::make_mut(&mut self.pages).extend(more);
        Ok(())
    }

    /// Leases other pages in place of those from the page `first` on. They must hold the same rows. Clones keep the pages that
    /// they have.
    ///
    /// # Panics
    /// If there are more than the lease has.
    pub fn replace(&mut self, first: usize, pages: &[KvPage]) {
        let range = first..first + pages.len();
        if self.pages[range.clone()].iter().zip(pages).any(|(own, other)| own.id() != other.id()) {
            Arc::make_mut(&mut self.pages)[range].clone_from_slice(pages);
            self.ids = self.pages.iter().map(KvPage::id).collect();
        }
    }

    /// Releases the pages that the first `rows` positions do not need, unless a clone has them.
    pub fn truncate(&mut self, layout: &KvLayout, rows: usize) {
        let keep = layout.pages_for(rows);
        if keep < self.pages.len() {
            Arc::make_mut(&mut self.pages).truncate(keep);
            self.ids.truncate(keep);
        }
    }
}

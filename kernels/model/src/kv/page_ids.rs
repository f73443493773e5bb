//! Lists of pages as devices see them.

use std::ops::Deref;
use std::sync::Arc;

use super::PageId;

/// Indices of the pages of a sequence, in position order. Clones share the list; it is copied when it grows while there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageIds(Arc<Vec<PageId>>);

impl PageIds {
    pub(super) fn extend(&mut self, more: impl Iterator<Item = PageId>) {
        Arc::make_mut(&mut self.0).extend(more);
    }

    pub(super) fn truncate(&mut self, pages: usize) {
        Arc::make_mut(&mut self.0).truncate(pages);
    }
}

impl Deref for PageIds {
    type Target = [PageId];

    fn deref(&self) -> &[PageId] {
        &self.0
    }
}

impl FromIterator<PageId> for PageIds {
    fn from_iter<I: IntoIterator<Item = PageId>>(ids: I) -> PageIds {
        PageIds::from(ids.into_iter().collect::<Vec<PageId>>())
    }
}

impl From<Vec<PageId>> for PageIds {
    fn from(ids: Vec<PageId>) -> PageIds {
        PageIds(Arc::new(ids))
    }
}

impl<const N: usize> From<[PageId; N]> for PageIds {
    fn from(ids: [PageId; N]) -> PageIds {
        PageIds::from(ids.to_vec())
    }
}

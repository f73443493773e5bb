//! Paged KV cache: ownership of pages, and their storage.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

mod pool;
mod sharing;
pub(crate) mod store;

pub use pool::{KvPage, KvPool};
pub use sharing::{KvSharing, KvSharingError};
pub use store::panel::{Panel, scale_of};
pub use store::{
    DuplicatePage, KvAccess, KvCopies, KvCopyId, KvElements, KvLayer, KvMirror, KvStore,
};

/// Index of a page in the pool and in the store.
pub type PageId = u32;

/// Storage type of keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvDtype {
    /// f32, as computed.
    F32,
    /// Rounded to the nearest binary16.
    #[default]
    F16,
    /// int8: value = scale · q with |q| ≤ 127, and one f32 scale per position and head, the largest
    /// magnitude divided by 127.
    I8,
}

/// The name of a KV cache type is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown KV cache type '{name}' (expected one of f32, f16, int8)")]
pub struct UnknownKvDtype {
    /// The given name.
    pub name: String,
}

impl KvDtype {
    /// Every type, the most precise first.
    pub const ALL: [KvDtype; 3] = [KvDtype::F32, KvDtype::F16, KvDtype::I8];

    /// `f32`, `f16` or `int8`.
    pub fn name(self) -> &'static str {
        match self {
            KvDtype::F32 => "f32",
            KvDtype::F16 => "f16",
            KvDtype::I8 => "int8",
        }
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KvDtype {
    type Err = UnknownKvDtype;

    fn from_str(name: &str) -> Result<KvDtype, UnknownKvDtype> {
        let known = KvDtype::ALL.into_iter().find(|dtype| dtype.name() == name);
        known.ok_or_else(|| UnknownKvDtype { name: name.to_owned() })
    }
}

/// Shape of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// Layers that have keys and values of their own.
    pub layers: usize,
    /// KV heads per layer.
    pub kv_heads: usize,
    /// Values per head.
    pub head_dim: usize,
    /// Positions per page.
    pub page_rows: usize,
    /// Storage type.
    pub dtype: KvDtype,
}

impl KvLayout {
    /// Default number of positions per page.
    pub const PAGE_ROWS: usize = 32;

    /// Number of pages for `rows` positions.
    pub fn pages_for(&self, rows: usize) -> usize {
        rows.div_ceil(self.page_rows.max(1))
    }

    /// Bytes of one page: keys and values of all layers.
    pub fn page_bytes(&self) -> usize {
        self.layers * self.page_rows * self.row_bytes()
    }

    /// Bytes of one position in one layer: keys and values.
    pub fn row_bytes(&self) -> usize {
        let values = 2 * self.kv_heads * self.head_dim;
        match self.dtype {
            KvDtype::F32 => 4 * values,
            KvDtype::F16 => 2 * values,
            KvDtype::I8 => values + 2 * self.kv_heads * size_of::<f32>(),
        }
    }

    /// For [`KvDtype::I8`], bytes of the scales of the keys (or values) of a page in one layer.
    pub fn scale_bytes(&self) -> usize {
        self.kv_heads * self.page_rows * size_of::<f32>()
    }

    /// Elements of the keys (or values) of a page in one layer.
    pub fn part_len(&self) -> usize {
        self.kv_heads * self.head_len()
    }

    /// Elements of the keys (or values) of a page in one layer and one head.
    fn head_len(&self) -> usize {
        self.head_dim * self.page_rows
    }
}

/// The pool has too few free pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "out of KV pages: {wanted} requested, {free} free; wait for a sequence to end, or make \
         the cache larger"
)]
pub struct OutOfPages {
    /// Requested pages.
    pub wanted: usize,
    /// Free pages.
    pub free: usize,
}

/// The system does not have the memory for a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not enough memory for a KV cache of {pages} pages of {page_bytes} bytes; set a smaller \
         context or cache, or store keys and values in fewer bytes (int8)"
)]
pub struct KvTooLarge {
    /// Requested pages.
    pub pages: usize,
    /// Bytes per page.
    pub page_bytes: usize,
}

/// The pages of one sequence, in position order. A clone shares them, and costs two counts.
#[derive(Clone, Debug)]
pub struct KvLease {
    pages: Arc<Vec<KvPage>>,
    ids: Arc<[PageId]>,
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
    pub fn page_ids(&self) -> &Arc<[PageId]> {
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
        Arc::make_mut(&mut self.pages).extend(more);
        self.ids = self.pages.iter().map(KvPage::id).collect();
        Ok(())
    }

    /// Leases other pages in place of the first ones. They must hold the same rows. Clones keep the pages that
    /// they have.
    ///
    /// # Panics
    /// If there are more than the lease has.
    pub fn replace_first(&mut self, pages: &[KvPage]) {
        if self.pages[..pages.len()].iter().zip(pages).any(|(own, other)| own.id() != other.id()) {
            Arc::make_mut(&mut self.pages)[..pages.len()].clone_from_slice(pages);
            self.ids = self.pages.iter().map(KvPage::id).collect();
        }
    }

    /// Releases the pages that the first `rows` positions do not need, unless a clone has them.
    pub fn truncate(&mut self, layout: &KvLayout, rows: usize) {
        let keep = layout.pages_for(rows);
        if keep < self.pages.len() {
            Arc::make_mut(&mut self.pages).truncate(keep);
            self.ids = self.ids[..keep].into();
        }
    }
}

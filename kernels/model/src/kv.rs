//! Paged KV cache: ownership of pages, and their storage.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

mod lease;
mod page_ids;
mod pool;
mod sharing;
mod state;
pub(crate) mod store;

pub use lease::KvLease;
pub use page_ids::PageIds;
pub use pool::{KvPage, KvPool};
pub use sharing::{KvSharing, KvSharingError};
pub use state::{KvSize, StateId, StateLayout};
pub use store::panel::{Panel, scale_of};
pub use store::{
    DuplicatePage, KvAccess, KvCopies, KvCopyId, KvElements, KvLayer, KvMirror, KvStore, StateLayer,
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

/// Keys and values of a position in one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvHeads {
    /// KV heads.
    pub count: usize,
    /// Values of a head's key.
    pub key_dim: usize,
    /// Values of a head's value.
    pub value_dim: usize,
}

impl KvHeads {
    /// Heads whose keys and values are `dim` values long.
    pub const fn new(count: usize, dim: usize) -> KvHeads {
        KvHeads { count, key_dim: dim, value_dim: dim }
    }

    /// Values of the keys of all heads.
    pub const fn key_width(self) -> usize {
        self.count * self.key_dim
    }

    /// Values of the values of all heads.
    pub const fn value_width(self) -> usize {
        self.count * self.value_dim
    }
}

/// Shape of a KV cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// Heads of the layers that have keys and values of their own.
    pub layers: Arc<[KvHeads]>,
    /// States of the layers that have one.
    pub states: Arc<[StateLayout]>,
    /// Positions per page.
    pub page_rows: usize,
    /// Storage type.
    pub dtype: KvDtype,
}

/// Shape of the pages of one layer of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvPageLayout {
    /// Heads.
    pub heads: KvHeads,
    /// Positions per page.
    pub page_rows: usize,
    /// Storage type.
    pub dtype: KvDtype,
}

impl KvLayout {
    /// Default number of positions per page.
    pub const PAGE_ROWS: usize = 32;

    /// A cache of `layers` layers with the same heads.
    pub fn uniform(layers: usize, heads: KvHeads, page_rows: usize, dtype: KvDtype) -> KvLayout {
        let layers = vec![heads; layers].into();
        KvLayout { layers, states: Arc::new([]), page_rows, dtype }
    }

    /// The pages of a layer.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn layer(&self, layer: usize) -> KvPageLayout {
        let KvLayout { layers, page_rows, dtype, .. } = self;
        KvPageLayout { heads: layers[layer], page_rows: *page_rows, dtype: *dtype }
    }

    /// Number of pages for `rows` positions.
    pub fn pages_for(&self, rows: usize) -> usize {
        rows.div_ceil(self.page_rows.max(1))
    }

    /// Bytes of one page: keys and values of all layers.
    pub fn page_bytes(&self) -> usize {
        self.page_rows * self.row_bytes()
    }

    /// Bytes of one position: keys and values of all layers.
    pub fn row_bytes(&self) -> usize {
        (0..self.layers.len()).map(|layer| self.layer(layer).row_bytes()).sum()
    }
}

impl KvPageLayout {
    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_rows * self.row_bytes()
    }

    /// Bytes of one position: keys and values.
    pub fn row_bytes(&self) -> usize {
        let values = self.heads.key_width() + self.heads.value_width();
        match self.dtype {
            KvDtype::F32 => 4 * values,
            KvDtype::F16 => 2 * values,
            KvDtype::I8 => values + 2 * self.heads.count * size_of::<f32>(),
        }
    }

    /// For [`KvDtype::I8`], bytes of the scales of the keys (or values) of a page.
    pub fn scale_bytes(&self) -> usize {
        self.heads.count * self.page_rows * size_of::<f32>()
    }

    /// Elements of the keys of a page, which come first.
    pub fn keys_len(&self) -> usize {
        self.heads.key_width() * self.page_rows
    }

    /// Elements of the values of a page, which follow its keys.
    pub fn values_len(&self) -> usize {
        self.heads.value_width() * self.page_rows
    }

    /// Stored elements of a page: its keys, its values, and for [`KvDtype::I8`] the bytes of their scales.
    pub fn page_len(&self) -> usize {
        let scales = if self.dtype == KvDtype::I8 { 2 * self.scale_bytes() } else { 0 };
        self.keys_len() + self.values_len() + scales
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
    "not enough memory for a KV cache of {pages} pages of {page_bytes} bytes{}; set a smaller \
         context or cache, or store keys and values in fewer bytes (int8)",
    Beside::new(.states, .state_bytes)
)]
pub struct KvTooLarge {
    /// Requested pages.
    pub pages: usize,
    /// Bytes per page.
    pub page_bytes: usize,
    /// Requested places of states.
    pub states: usize,
    /// Bytes of the states of a sequence; 0 if no layer has one.
    pub state_bytes: usize,
}

/// States beside pages, as part of a sentence.
struct Beside {
    states: usize,
    bytes: usize,
}

impl Beside {
    fn new(states: &usize, bytes: &usize) -> Beside {
        Beside { states: *states, bytes: *bytes }
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Beside { bytes: 0, .. } => Ok(()),
            Beside { states, bytes } => write!(f, " and {states} states of {bytes} bytes"),
        }
    }
}

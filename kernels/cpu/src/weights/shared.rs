//! Packed weights that all devices of the process share, and the file that they are cached in.

use super::Weights;
use crate::pack::cache::report::{PackCache, PackReport};
use lapwing_model::weights::WeightFile;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Packed weights of an open file.
#[derive(Default)]
pub(super) struct Shared {
    /// Packed weights that devices share while any of them uses them.
    pub(super) weights: Vec<Weak<Weights>>,
    /// File that packed weights are cached in.
    pub(super) cache: Option<PackCache>,
    /// Outcome of the last use of the cache.
    pub(super) report: Option<Arc<PackReport>>,
}

/// Calls `f` with the packed weights of a file.
pub(super) fn with<T>(file: &WeightFile, f: impl FnOnce(&mut Shared) -> T) -> T {
    let shared = file.kept::<Mutex<Shared>>();
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    f(&mut shared)
}

/// Caches the packed weights of `file` in a file: devices created from now on read it if it is valid, or write it after
/// packing. Without a cache, every process packs the weights again.
pub fn keep_packed(file: &WeightFile, cache: PackCache) {
    with(file, |shared| shared.cache = Some(cache));
}

/// Outcome of the last use of the cache of packed weights; `None` if no device was created or [`keep_packed`] was not called.
pub fn pack_report(file: &WeightFile) -> Option<Arc<PackReport>> {
    with(file, |shared| shared.report.clone())
}

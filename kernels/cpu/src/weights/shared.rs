//! Packed weights that all devices of the process share, and where they are kept.

use super::Weights;
use crate::pack::cache::report::{PackCache, PackReport};
use lapwing_model::weights::WeightFile;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Packed weights of an open file.
#[derive(Default)]
pub(super) struct Shared {
    /// Packed weights that devices share while any of them uses them.
    pub(super) weights: Vec<Weak<Weights>>,
    pub(super) kept: Kept,
    /// Outcome of the last use of the cache.
    pub(super) report: Option<Arc<PackReport>>,
}

/// Where packed weights of a file may be.
#[derive(Default)]
pub(super) struct Kept {
    /// File that they are cached in.
    pub(super) cache: Option<PackCache>,
    /// Bytes of memory that are free.
    free: Option<Box<dyn Fn() -> Option<u64> + Send>>,
}

impl Kept {
    /// Packed weights that are in no file, because the file is that of other ones.
    pub(super) fn beside(&self) -> Kept {
        let free = self.free();
        Kept { cache: None, free: Some(Box::new(move || free)) }
    }

    /// Bytes of memory that are free now; `None` if that is not known.
    pub(super) fn free(&self) -> Option<u64> {
        self.free.as_ref().and_then(|free| free())
    }
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
    with(file, |shared| shared.kept.cache = Some(cache));
}

/// Limits the memory that packed weights of `file` may take: `free` says how many bytes there are when a device is created, `None` if that
/// is not known. Weights that have more are used from their cached file, which is mapped, or else devices are not created
/// ([`PackError::Beyond`](crate::PackError::Beyond)).
pub fn limit_packed(file: &WeightFile, free: impl Fn() -> Option<u64> + Send + 'static) {
    with(file, |shared| shared.kept.free = Some(Box::new(free)));
}

/// Outcome of the last use of the cache of packed weights; `None` if no device was created or [`keep_packed`] was not called.
pub fn pack_report(file: &WeightFile) -> Option<Arc<PackReport>> {
    with(file, |shared| shared.report.clone())
}

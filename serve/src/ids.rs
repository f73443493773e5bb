//! Ids of answers, calls and requests.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new id, different from all others of this process and most likely of others.
pub(crate) fn new_id(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{:016x}{:08x}", RandomState::new().hash_one(count), count & 0xffff_ffff)
}

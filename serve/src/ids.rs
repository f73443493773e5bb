//! Ids of answers, calls and requests.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use lapwing_engine::chat::short_id;

/// A new id, different from all others of this process and most likely of others.
pub(crate) fn new_id(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{:016x}{:08x}", RandomState::new().hash_one(count), count & 0xffff_ffff)
}

/// A new id of a call, in the form that every chat template accepts.
pub(crate) fn new_call_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    short_id(RandomState::new().hash_one(COUNT.fetch_add(1, Ordering::Relaxed)))
}

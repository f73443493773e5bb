//! The synchronisation primitives that lock-free code here may use, so that under
//! `--cfg loom` every interleaving of them can be explored.

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
};

/// Threads that sleep and wake each other.
pub mod thread {
    #[cfg(loom)]
    pub use loom::thread::{Thread, current, park};
    #[cfg(not(loom))]
    pub use std::thread::{Thread, current, park, park_timeout};

    /// Under loom no time passes: the sleep is over at once, or after others have run.
    #[cfg(loom)]
    pub fn park_timeout(_timeout: std::time::Duration) {
        loom::thread::yield_now();
    }
}

/// Locks `mutex`; a panic of another holder does not make the data unusable, because no
/// holder in this crate leaves it half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

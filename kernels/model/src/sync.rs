//! Synchronisation primitives of this crate: those of `std`, or under `--cfg loom` those of loom, which
//! explores every interleaving.

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

/// Parking and waking of threads.
pub mod thread {
    #[cfg(loom)]
    pub use loom::thread::{Thread, current, park};
    #[cfg(not(loom))]
    pub use std::thread::{Thread, current, park, park_timeout};

    /// Loom has no time: returns immediately, or after other threads have run.
    #[cfg(loom)]
    pub fn park_timeout(_timeout: std::time::Duration) {
        loom::thread::yield_now();
    }
}

/// Locks `mutex` and ignores poisoning: in this crate, no holder leaves data half changed if it
/// panics.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

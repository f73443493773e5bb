//! The synchronisation primitives that lock-free code here may use, so that under
//! `--cfg loom` every interleaving of them can be explored.

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    },
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    },
};

/// Locks `mutex`; a panic of another holder does not make the data unusable, because no
/// holder in this crate leaves it half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

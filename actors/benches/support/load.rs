//! Threads that keep cores busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::thread_time::stay_on_core;

/// Threads that count as fast as they can, until this is dropped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    pub(crate) done: Arc<AtomicU64>,
}

impl Load {
    #[expect(clippy::disallowed_methods, reason = "a bench of threads makes threads")]
    pub(crate) fn start(threads: usize) -> Load {
        let load = Load { stop: Arc::default(), done: Arc::default() };
        for core in 0..threads {
            let (stop, done) = (Arc::clone(&load.stop), Arc::clone(&load.done));
            thread::spawn(move || {
                stay_on_core(core);
                while !stop.load(Ordering::Relaxed) {
                    (0..2_000_u64).fold(1, |x, i| std::hint::black_box(x * 31 + i));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        load
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

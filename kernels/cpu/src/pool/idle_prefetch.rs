//! Prefetch while a thread waits for the others, when memory bandwidth is idle: the start of what
//! it will most likely read next.

use crate::caches::Caches;
use crate::simd::prefetch::{CACHE_LINE, PrefetchHint, prefetch_line};
use lapwing_model::sync::spin_loop;
use std::cell::Cell;

thread_local! {
    static IDLE_PREFETCH: Cell<IdlePrefetch> = const { Cell::new(IdlePrefetch::NOTHING) };
}

/// Lines that are still to be prefetched. The memory may have been freed meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdlePrefetch {
    first: *const u8,
    lines: usize,
    hint: PrefetchHint,
}

impl IdlePrefetch {
    const NOTHING: IdlePrefetch =
        IdlePrefetch { first: std::ptr::null(), lines: 0, hint: PrefetchHint::AllLevels };
    /// Lines prefetched between two checks of the awaited condition; few, so that the thread reacts
    /// quickly.
    const LINES_PER_STEP: usize = 2;

    /// The bytes after the first `skip`, as far as the caches have room for them.
    pub(crate) fn of(caches: &Caches, bytes: &[u8], skip: usize) -> IdlePrefetch {
        let room = caches.idle_prefetch_bytes().min(bytes.len());
        IdlePrefetch {
            first: bytes.as_ptr().wrapping_add(skip),
            lines: room.saturating_sub(skip) / CACHE_LINE,
            hint: caches.prefetch_hint,
        }
    }

    /// From now on, the calling thread prefetches these bytes when it waits, instead of its
    /// previous ones.
    pub(crate) fn register(self) {
        IDLE_PREFETCH.set(self);
    }

    /// Prefetches the next lines; `false` if none are left.
    fn step(&mut self) -> bool {
        let hint = self.hint;
        (0..IdlePrefetch::LINES_PER_STEP)
            .map_while(|_| self.next())
            .map(|line| prefetch_line(line, hint))
            .count()
            > 0
    }

    /// Address of the next line, if any is left.
    fn next(&mut self) -> Option<*const u8> {
        self.lines = self.lines.checked_sub(1)?;
        let line = self.first;
        self.first = line.wrapping_add(CACHE_LINE);
        Some(line)
    }
}

/// Polls `load` until `is_done` accepts the word, at most `spins` times after the first; returns
/// the last word. Prefetches meanwhile.
pub(super) fn spin_until(
    spins: usize,
    load: impl Fn() -> usize,
    is_done: impl Fn(usize) -> bool,
) -> usize {
    let (mut word, mut prefetch) = (load(), IDLE_PREFETCH.get());
    for _ in 0..spins {
        if is_done(word) {
            break;
        }
        if !prefetch.step() {
            spin_loop();
        }
        word = load();
    }
    IDLE_PREFETCH.set(prefetch);
    word
}

#[cfg(all(test, not(loom)))]
mod tests;

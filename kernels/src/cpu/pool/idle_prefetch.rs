//! What a thread of the pool will most likely read when it has waited. Memory is half idle while it
//! waits for the others: it asks for the beginning in the meantime.

use crate::cpu::caches::Caches;
use crate::cpu::packed::layout::LINE;
use crate::cpu::simd::prefetch::PrefetchHint;
use crate::cpu::simd::prefetch::prefetch_line;
use crate::sync::spin_loop;
use std::cell::Cell;

thread_local! {
    static IDLE_PREFETCH: Cell<IdlePrefetch> = const { Cell::new(IdlePrefetch::NOTHING) };
}

/// Lines of which none has been asked for. All of it is hints: the memory need not be there any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdlePrefetch {
    first: *const u8,
    lines: usize,
    hint: PrefetchHint,
}

impl IdlePrefetch {
    const NOTHING: IdlePrefetch =
        IdlePrefetch { first: std::ptr::null(), lines: 0, hint: PrefetchHint::AllLevels };
    /// Asked for between two looks at what is waited for, so that it is seen soon.
    const AT_ONCE: usize = 2;

    /// Of these bytes, those after the first `asked`, as far as the caches have room for them.
    pub(crate) fn of(caches: &Caches, bytes: &[u8], asked: usize) -> IdlePrefetch {
        let room = caches.idle_prefetch_bytes().min(bytes.len());
        IdlePrefetch {
            first: bytes.as_ptr().wrapping_add(asked),
            lines: room.saturating_sub(asked) / LINE,
            hint: caches.prefetch_hint,
        }
    }

    /// This thread asks for it from now on whenever it waits, instead of what it wanted before.
    pub(crate) fn register(self) {
        IDLE_PREFETCH.set(self);
    }

    /// Asks for some of it; `false` when nothing is left.
    fn step(&mut self) -> bool {
        let hint = self.hint;
        (0..IdlePrefetch::AT_ONCE)
            .map_while(|_| self.next())
            .map(|line| prefetch_line(line, hint))
            .count()
            > 0
    }

    /// The next line, if any is left.
    fn next(&mut self) -> Option<*const u8> {
        self.lines = self.lines.checked_sub(1)?;
        let line = self.first;
        self.first = line.wrapping_add(LINE);
        Some(line)
    }
}

/// The first word that is `awaited` of those that `look` finds, or the last of so many and one.
pub(super) fn spin_until(
    times: usize,
    look: impl Fn() -> usize,
    awaited: impl Fn(usize) -> bool,
) -> usize {
    let (mut word, mut wanted) = (look(), IDLE_PREFETCH.get());
    for _ in 0..times {
        if awaited(word) {
            break;
        }
        if !wanted.step() {
            spin_loop();
        }
        word = look();
    }
    IDLE_PREFETCH.set(wanted);
    word
}

#[cfg(all(test, not(loom)))]
mod tests;

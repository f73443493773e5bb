//! What a thread of the pool will most likely read when it has waited. Memory is half idle while it
//! waits for the others: it asks for the beginning in the meantime.

use crate::cpu::caches::{Caches, PrefetchHint};
use crate::cpu::isa::prefetch::prefetch_line;
use crate::cpu::packed::LINE;
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
    into: PrefetchHint,
}

impl IdlePrefetch {
    const NOTHING: IdlePrefetch =
        IdlePrefetch { first: std::ptr::null(), lines: 0, into: PrefetchHint::AllLevels };
    /// Asked for between two looks at what is waited for, so that it is seen soon.
    const AT_ONCE: usize = 2;

    /// Of these bytes, those after the first `asked`, as far as the caches have room for them.
    pub(crate) fn of(caches: &Caches, bytes: &[u8], asked: usize) -> IdlePrefetch {
        let room = caches.idle_prefetch_bytes().min(bytes.len());
        IdlePrefetch {
            first: bytes.as_ptr().wrapping_add(asked),
            lines: room.saturating_sub(asked) / LINE,
            into: caches.prefetch_hint,
        }
    }

    /// This thread asks for it from now on whenever it waits, instead of what it wanted before.
    pub(crate) fn note(self) {
        IDLE_PREFETCH.set(self);
    }

    /// Asks for some of it; `false` when nothing is left.
    fn ask(&mut self) -> bool {
        let into = self.into;
        (0..IdlePrefetch::AT_ONCE)
            .map_while(|_| self.next())
            .map(|line| prefetch_line(line, into))
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
        if !wanted.ask() {
            spin_loop();
        }
        word = look();
    }
    IDLE_PREFETCH.set(wanted);
    word
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn caches(second: usize, prefetch_hint: PrefetchHint) -> Caches {
        Caches { l2: second, prefetch_hint, ..Caches::default() }
    }

    #[test]
    fn a_line_is_asked_for_twice_or_beyond_the_end() {
        let bytes = [0u8; 100 * LINE];
        for (second, asked, want) in [
            (usize::MAX, 0, 0..100),
            (usize::MAX, 4 * LINE, 4..100),
            (usize::MAX, 200 * LINE, 0..0),
            (64 * LINE, 4 * LINE, 4..16),
            (64 * LINE, 16 * LINE, 0..0),
            (0, 0, 0..0),
        ] {
            for into in [PrefetchHint::AllLevels, PrefetchHint::L2Only] {
                let mut wanted = IdlePrefetch::of(&caches(second, into), &bytes, asked);
                let found: Vec<_> = std::iter::from_fn(|| wanted.next()).collect();
                let want: Vec<_> = want.clone().map(|i| bytes[i * LINE..].as_ptr()).collect();
                assert_eq!(found, want, "{second} bytes of cache, {asked} asked for");
            }
        }
        let mut first = IdlePrefetch::of(&caches(usize::MAX, PrefetchHint::L1Only), &bytes, 0);
        assert_eq!(first.next(), None, "the first level has no room");
    }

    #[test]
    fn who_waits_misses_the_word_or_asks_anew() {
        let bytes = [0u8; 100 * LINE];
        IdlePrefetch::of(&caches(usize::MAX, PrefetchHint::AllLevels), &bytes, 0).note();
        let looks = Cell::new(0);
        let look = || looks.replace(looks.get() + 1);
        let left = || IDLE_PREFETCH.get().lines;
        assert_eq!(spin_until(10, look, |word| word == 0), 0);
        assert_eq!((looks.get(), left()), (1, 100), "nothing is asked for without waiting");
        assert_eq!(spin_until(10, look, |word| word == 5), 5);
        assert_eq!((looks.get(), left()), (6, 92));
        assert_eq!(spin_until(3, look, |_| false), 9);
        assert_eq!((looks.get(), left()), (10, 86));
        assert_eq!(spin_until(1000, look, |word| word == 500), 500);
        assert_eq!(left(), 0);
        assert_eq!(spin_until(0, look, |_| false), 501);
    }
}

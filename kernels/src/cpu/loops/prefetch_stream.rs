//! Asking for weights some time before they are read. All of it is hints: an address need not exist.

use crate::cpu::caches::Caches;
use crate::cpu::simd::prefetch::PrefetchHint;

/// Most bytes between what is read and what is asked for: what memory delivers to a thread while it
/// fetches one line, with some to spare.
pub(crate) const PREFETCH_DISTANCE_MAX: usize = 12_288;

/// What is known of the time after a run of tiles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextTiles<'a> {
    /// Tiles after the run that are most likely read next.
    pub(crate) rest: usize,
    /// What is most likely read then.
    pub(crate) next: Option<&'a [u8]>,
    /// Bytes between what is read and what is asked for.
    distance: usize,
    /// As [`Caches::prefetch_hint`].
    prefetch_hint: PrefetchHint,
}

impl<'a> NextTiles<'a> {
    /// As far ahead as half of what a thread has of the first-level cache, where lines may wait.
    pub(crate) fn new(caches: &Caches, (rest, next): (usize, Option<&'a [u8]>)) -> NextTiles<'a> {
        let distance = (caches.l1 / 2).min(PREFETCH_DISTANCE_MAX);
        NextTiles { rest, next, distance, prefetch_hint: caches.prefetch_hint }
    }
}

/// What is asked for while a run of tiles is read: what lies some way behind what is read, and near the
/// end of the run what is read after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefetchStream {
    /// Of the run.
    end: *const u8,
    /// From there to what is read next.
    jump: usize,
    distance: usize,
    /// As [`Caches::prefetch_hint`].
    pub(crate) prefetch_hint: PrefetchHint,
}

impl PrefetchStream {
    /// For a run of tiles that ends there, with those that follow it, and is read in steps of so many
    /// bytes.
    pub(crate) fn new(end: *const u8, next_tiles: &NextTiles<'_>, step: usize) -> PrefetchStream {
        let start = next_tiles.next.map_or(end, <[u8]>::as_ptr);
        let jump = start.addr().wrapping_sub(end.addr());
        let distance = next_tiles.distance / step * step;
        PrefetchStream { end, jump, distance, prefetch_hint: next_tiles.prefetch_hint }
    }

    /// What to ask for when what lies `at` bytes after the start of a tile is read; where T tiles of
    /// `stride` bytes are read side by side, of each. AfterBlock each of them lies one that is being read too,
    /// after these what comes next.
    #[cfg_attr(
        not(any(test, target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "plain Rust asks for nothing")
    )]
    #[inline(always)]
    pub(crate) fn of<const T: usize>(
        self,
        tile: *const u8,
        (at, stride): (usize, usize),
    ) -> *const u8 {
        let at = at + self.distance / T;
        let interleaved = if T > 1 && at >= stride { (T - 1) * stride } else { 0 };
        let at = tile.wrapping_add(at + interleaved);
        if at >= self.end { at.wrapping_byte_add(self.jump) } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines asked for while `tiles` of some bytes each, side by side T at a time, are read.
    fn asked<const T: usize>(
        tiles: usize,
        stride: usize,
        ahead: PrefetchStream,
        run: &[u8],
    ) -> Vec<usize> {
        let mut asked = Vec::new();
        for first in (0..tiles).step_by(T) {
            for at in (0..stride).step_by(64) {
                for tile in first..first + T {
                    asked.push(ahead.of::<T>(run[tile * stride..].as_ptr(), (at, stride)).addr());
                }
            }
        }
        asked.sort_unstable();
        asked
    }

    #[test]
    fn a_line_is_asked_for_twice_or_never() {
        const D: usize = PREFETCH_DISTANCE_MAX;
        let run = vec![0u8; 6 * 2 * D];
        let other = vec![0u8; 4 * D];
        let next_tiles =
            NextTiles::new(&Caches { l1: 4 * D, ..Caches::default() }, (0, Some(&other)));
        let lines = |from: &[u8]| -> Vec<usize> {
            from.chunks(64).map(|line| line.as_ptr().addr()).collect()
        };
        for stride in [2 * D, D + 64, D] {
            let run = &run[..6 * stride];
            let ahead = PrefetchStream::new(run.as_ptr_range().end, &next_tiles, 128);
            let one = asked::<1>(6, stride, ahead, run);
            let mut want = [lines(&run[D..]), lines(&other[..D])].concat();
            want.sort_unstable();
            assert_eq!(one, want, "tiles of {stride}");
            // Nobody asks for the beginnings of the first two, and of what follows, those of two are
            // asked for.
            let (two, half) = (asked::<2>(6, stride, ahead, run), D / 2);
            let first = [&run[half..stride], &run[stride + half..]].map(lines).concat();
            let after = [&other[..half], &other[stride..stride + half]].map(lines).concat();
            let mut want = [first, after].concat();
            want.sort_unstable();
            assert_eq!(two, want, "pairs of tiles of {stride}");
        }
    }

    #[test]
    fn a_small_cache_is_filled_with_what_is_asked_for() {
        for (first, step, distance) in [(32 << 10, 288, 12_096), (16 << 10, 64, 8192), (0, 64, 0)] {
            let next_tiles = NextTiles::new(&Caches { l1: first, ..Caches::default() }, (0, None));
            let line = [0u8; 64];
            let ahead = PrefetchStream::new(line.as_ptr_range().end, &next_tiles, step);
            let found = ahead.of::<1>(line.as_ptr(), (0, 64)).addr() - line.as_ptr().addr();
            assert_eq!(found, distance, "{first} bytes in steps of {step}");
        }
    }
}

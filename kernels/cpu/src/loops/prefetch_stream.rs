//! Prefetches weights a fixed distance ahead of the tile being read. Addresses need not exist.

use crate::caches::Caches;
use crate::simd::prefetch::PrefetchHint;

/// Largest prefetch distance in bytes: what memory delivers to a thread during the latency of one
/// line, with a margin.
pub(crate) const PREFETCH_DISTANCE_MAX: usize = 12_288;

/// Data that a thread will most likely read after a run of tiles, and the prefetch distance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextTiles<'a> {
    /// Tiles directly after the run that the thread reads next.
    pub(crate) rest: usize,
    /// Data that it reads after those.
    pub(crate) next: Option<&'a [u8]>,
    /// Prefetch distance in bytes.
    distance: usize,
    /// As [`Caches::prefetch_hint`].
    prefetch_hint: PrefetchHint,
}

/// Data that a thread will most likely read after a run of tiles: `rest` more tiles directly after it, then
/// `next`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextRead<'a> {
    pub(crate) rest: usize,
    pub(crate) next: Option<&'a [u8]>,
}

impl<'a> NextTiles<'a> {
    /// The distance is half of the thread's first-level cache, at most [`PREFETCH_DISTANCE_MAX`].
    pub(crate) fn new(caches: &Caches, NextRead { rest, next }: NextRead<'a>) -> NextTiles<'a> {
        let distance = (caches.l1 / 2).min(PREFETCH_DISTANCE_MAX);
        NextTiles { rest, next, distance, prefetch_hint: caches.prefetch_hint }
    }
}

/// Prefetches a fixed distance ahead of the position in a run of tiles; near the end of the run,
/// the start of what is read next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefetchStream {
    /// End of the run.
    end: *const u8,
    /// From the end of the run to what is read next, in bytes.
    jump: usize,
    distance: usize,
    /// As [`Caches::prefetch_hint`].
    pub(crate) prefetch_hint: PrefetchHint,
}

impl PrefetchStream {
    /// For a run of tiles that ends at `end` and is read `step` bytes at a time.
    pub(crate) fn new(end: *const u8, next_tiles: &NextTiles<'_>, step: usize) -> PrefetchStream {
        let start = next_tiles.next.map_or(end, <[u8]>::as_ptr);
        let jump = start.addr().wrapping_sub(end.addr());
        let distance = next_tiles.distance / step * step;
        PrefetchStream { end, jump, distance, prefetch_hint: next_tiles.prefetch_hint }
    }

    /// The prefetch distance in bytes.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "plain Rust does not prefetch")
    )]
    pub(crate) fn distance(self) -> usize {
        self.distance
    }

    /// The address to prefetch when byte `at` of a tile is read. T tiles of `stride` bytes are read
    /// side by side, so the addresses after a tile's end belong to the T tiles that follow the
    /// block.
    #[cfg_attr(
        not(any(test, target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "plain Rust does not prefetch")
    )]
    #[inline(always)]
    pub(crate) fn address<const T: usize>(
        self,
        tile: *const u8,
        at: usize,
        stride: usize,
    ) -> *const u8 {
        let at = at + self.distance / T;
        let skipped = if T > 1 && at >= stride { (T - 1) * stride } else { 0 };
        let at = tile.wrapping_add(at + skipped);
        if at >= self.end { at.wrapping_byte_add(self.jump) } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorted addresses that are prefetched while `tiles` tiles are read, T side by side.
    fn prefetched<const T: usize>(
        tiles: usize,
        stride: usize,
        stream: PrefetchStream,
        run: &[u8],
    ) -> Vec<usize> {
        let mut prefetched = Vec::new();
        for first in (0..tiles).step_by(T) {
            for at in (0..stride).step_by(64) {
                for tile in first..first + T {
                    prefetched.push(
                        stream.address::<T>(run[tile * stride..].as_ptr(), at, stride).addr(),
                    );
                }
            }
        }
        prefetched.sort_unstable();
        prefetched
    }

    #[test]
    fn every_line_is_prefetched_once() {
        const D: usize = PREFETCH_DISTANCE_MAX;
        let run = vec![0u8; 6 * 2 * D];
        let other = vec![0u8; 4 * D];
        let next_tiles = NextTiles::new(
            &Caches { l1: 4 * D, ..Caches::default() },
            NextRead { rest: 0, next: Some(&other) },
        );
        let lines = |from: &[u8]| -> Vec<usize> {
            from.chunks(64).map(|line| line.as_ptr().addr()).collect()
        };
        for stride in [2 * D, D + 64, D] {
            let run = &run[..6 * stride];
            let stream = PrefetchStream::new(run.as_ptr_range().end, &next_tiles, 128);
            let one = prefetched::<1>(6, stride, stream, run);
            let mut want = [lines(&run[D..]), lines(&other[..D])].concat();
            want.sort_unstable();
            assert_eq!(one, want, "tiles of {stride}");
            // The starts of the first two tiles are not prefetched; the starts of the next two are.
            let (two, half) = (prefetched::<2>(6, stride, stream, run), D / 2);
            let first = [&run[half..stride], &run[stride + half..]].map(lines).concat();
            let after = [&other[..half], &other[stride..stride + half]].map(lines).concat();
            let mut want = [first, after].concat();
            want.sort_unstable();
            assert_eq!(two, want, "pairs of tiles of {stride}");
        }
    }

    #[test]
    fn the_prefetch_distance_is_at_most_half_of_the_cache() {
        for (first, step, distance) in [(32 << 10, 288, 12_096), (16 << 10, 64, 8192), (0, 64, 0)] {
            let next_tiles =
                NextTiles::new(&Caches { l1: first, ..Caches::default() }, NextRead::default());
            let line = [0u8; 64];
            let stream = PrefetchStream::new(line.as_ptr_range().end, &next_tiles, step);
            let found = stream.address::<1>(line.as_ptr(), 0, 64).addr() - line.as_ptr().addr();
            assert_eq!(found, distance, "{first} bytes in steps of {step}");
        }
    }
}

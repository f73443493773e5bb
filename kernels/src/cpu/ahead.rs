//! Asking for weights some time before they are read.

/// Bytes between what is read and what is asked for: what memory delivers to a thread while it
/// fetches one line, with some to spare. Asked for into the first-level cache, of which it is a half
/// at most.
const AHEAD: usize = 16_384;

/// What is asked for while a run of tiles is read: each line once, in order, and near the end of the
/// run what is read after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Of the run.
    end: *const u8,
    /// From there to what is read next.
    jump: usize,
}

impl Ahead {
    /// For a run of tiles that ends there.
    pub(crate) fn new(end: *const u8, next: Option<&[u8]>) -> Ahead {
        let jump = next.map_or(0, |next| next.as_ptr().addr().wrapping_sub(end.addr()));
        Ahead { end, jump }
    }

    /// What to ask for when the line at this address is read; an address that need not exist.
    #[inline(always)]
    pub(crate) fn of(self, at: *const u8) -> *const u8 {
        self.after(at.wrapping_add(AHEAD))
    }

    /// As [`of`](Ahead::of), of byte `at` of a tile of `stride` bytes, where T tiles are read side by
    /// side: after each of them lies one that is being read too, after these what comes next.
    #[cfg_attr(
        not(any(test, target_arch = "x86_64")),
        expect(dead_code, reason = "only AVX-512 reads tiles side by side")
    )]
    #[inline(always)]
    pub(crate) fn of_several<const T: usize>(
        self,
        tile: *const u8,
        (at, stride): (usize, usize),
    ) -> *const u8 {
        let at = at + AHEAD / T;
        let beside = if at >= stride { (T - 1) * stride } else { 0 };
        self.after(tile.wrapping_add(at + beside))
    }

    /// An address of the run, or of what follows it.
    #[inline(always)]
    fn after(self, at: *const u8) -> *const u8 {
        if at >= self.end { at.wrapping_byte_add(self.jump) } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines asked for while `tiles` of some bytes each, side by side T at a time, are read.
    fn asked<const T: usize>(tiles: usize, stride: usize, ahead: Ahead, run: &[u8]) -> Vec<usize> {
        let mut asked = Vec::new();
        for first in (0..tiles).step_by(T) {
            for at in (0..stride).step_by(64) {
                for tile in first..first + T {
                    let tile = run[tile * stride..].as_ptr();
                    asked.push(ahead.of_several::<T>(tile, (at, stride)).addr());
                }
            }
        }
        asked.sort_unstable();
        asked
    }

    #[test]
    fn a_line_is_asked_for_twice_or_never() {
        let run = vec![0u8; 6 * 2 * AHEAD];
        let other = vec![0u8; 4 * AHEAD];
        let lines = |from: &[u8]| -> Vec<usize> {
            from.chunks(64).map(|line| line.as_ptr().addr()).collect()
        };
        for stride in [2 * AHEAD, AHEAD + 64, AHEAD] {
            let run = &run[..6 * stride];
            let ahead = Ahead::new(run.as_ptr_range().end, Some(&other));
            let one = asked::<1>(6, stride, ahead, run);
            let mut want = [lines(&run[AHEAD..]), lines(&other[..AHEAD])].concat();
            want.sort_unstable();
            assert_eq!(one, want, "tiles of {stride}");
            // Nobody asks for the beginnings of the first two, and of what follows, those of two are
            // asked for.
            let (two, half) = (asked::<2>(6, stride, ahead, run), AHEAD / 2);
            let first = [&run[half..stride], &run[stride + half..]].map(lines).concat();
            let after = [&other[..half], &other[stride..stride + half]].map(lines).concat();
            let mut want = [first, after].concat();
            want.sort_unstable();
            assert_eq!(two, want, "pairs of tiles of {stride}");
        }
    }
}

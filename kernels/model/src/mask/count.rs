//! Counts of the positions that rows see, in closed form.

use super::{BlockList, Mask};

impl Mask {
    /// Sum over the rows at positions `start … start + rows − 1` of the keys that each sees, if these are
    /// the last rows of their sequence.
    pub fn seen_positions(&self, start: u64, rows: u64) -> u64 {
        let (start, end) = (u128::from(start), u128::from(start) + u128::from(rows));
        let total = match self {
            Mask::Causal => ramps(start..end, u128::MAX),
            Mask::Full => (end - start) * end,
            Mask::Around(most) => {
                // Keys up to a row, and as many after it as before the row at its place counted from the end.
                let up_to = (*most as u128).saturating_add(1);
                ramps(start..end, up_to) + ramps(0..end - start, up_to) - (end - start)
            }
            Mask::Window(window) => ramps(start..end, *window as u128),
            Mask::Dilated { count, stride } => {
                let (count, stride) = (*count as u128, *stride as u128);
                dilated_before(end, count, stride) - dilated_before(start, count, stride)
            }
            Mask::Blocks { blocks, window } => {
                spans(blocks, start..end).map(|span| span.seen(*window)).sum()
            }
        };
        u64::try_from(total).unwrap_or(u64::MAX)
    }

    /// Number of keys that at least one of the rows at positions `start … start + rows − 1` sees.
    pub fn read_positions(&self, start: u64, rows: u64) -> u64 {
        if rows == 0 {
            return 0;
        }
        let (first, rows) = (u128::from(start), u128::from(rows));
        let end = first + rows;
        let total = match self {
            Mask::Causal | Mask::Full => end,
            Mask::Around(most) => end - first.saturating_sub(*most as u128),
            Mask::Window(window) => end - (first + 1).saturating_sub(*window as u128),
            Mask::Dilated { count, stride } => {
                let (count, stride) = (*count as u128, *stride as u128);
                if rows >= stride {
                    end - first.saturating_sub((count - 1) * stride)
                } else {
                    let whole = count.min(first / stride + 1);
                    let cut = if whole < count { end.saturating_sub(whole * stride) } else { 0 };
                    whole * rows + cut
                }
            }
            Mask::Blocks { blocks, window } => {
                let mut keys: Vec<_> =
                    spans(blocks, first..end).filter_map(|span| span.keys(*window)).collect();
                keys.sort_unstable();
                let mut total = 0;
                let mut after = 0;
                for (from, to) in keys {
                    total += to.saturating_sub(from.max(after));
                    after = after.max(to);
                }
                total
            }
        };
        u64::try_from(total).unwrap_or(u64::MAX)
    }
}

/// Sum of min(p + 1, most) over the positions.
fn ramps(positions: std::ops::Range<u128>, most: u128) -> u128 {
    ramp(positions.end + 1, most) - ramp(positions.start + 1, most)
}

/// Sum of min(x, most) over x < n.
fn ramp(n: u128, most: u128) -> u128 {
    let growing = n.min(most);
    let sum = (growing * growing.saturating_sub(1)) / 2;
    if n > growing { sum + (n - growing) * most } else { sum }
}

/// Sum of min(count, ⌊p / stride⌋ + 1) over the positions p < n.
fn dilated_before(n: u128, count: u128, stride: u128) -> u128 {
    let steps = (n / stride).min(count);
    let rest = n - steps * stride;
    stride * (steps * (steps + 1) / 2) + rest * (steps + 1).min(count)
}

/// Rows of a listed block that are in a span, with the keys of the block that they see.
#[derive(Clone, Copy, Debug)]
struct BlockSpan {
    rows: (u128, u128),
    keys: (u128, u128),
}

fn spans(blocks: &BlockList, rows: std::ops::Range<u128>) -> impl Iterator<Item = BlockSpan> + '_ {
    let len = blocks.block_len() as u128;
    blocks.listed().iter().filter_map(move |(row, key)| {
        let (row, key) = (u128::from(*row) * len, u128::from(*key) * len);
        let within = (row.max(rows.start), (row + len).min(rows.end));
        (within.0 < within.1).then_some(BlockSpan { rows: within, keys: (key, key + len) })
    })
}

impl BlockSpan {
    /// Pairs of a row and a key that it sees.
    fn seen(self, window: Option<usize>) -> u128 {
        let window = window.map_or(u128::MAX, |window| window as u128);
        // Keys up to `back` before each row.
        let up_to = |back: u128| {
            let len = self.keys.1 - self.keys.0;
            let at = |pos: u128| (pos + 1).saturating_sub(self.keys.0.saturating_add(back));
            ramp(at(self.rows.1), len) - ramp(at(self.rows.0), len)
        };
        up_to(0) - up_to(window)
    }

    /// Keys that any of the rows sees, which are consecutive.
    fn keys(self, window: Option<usize>) -> Option<(u128, u128)> {
        let back = window.map_or(0, |window| (self.rows.0 + 1).saturating_sub(window as u128));
        let keys = (self.keys.0.max(back), self.keys.1.min(self.rows.1));
        (keys.0 < keys.1).then_some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_equal_counts_of_the_definition() {
        let text = [
            "causal",
            "window=1",
            "window=5",
            "window=40",
            "dilated=1x1",
            "dilated=3x4",
            "dilated=2x30",
            "dilated=9x2",
            "block-sparse=5:0-0,1-0,2-1,2-2,3-7,4-0,4-4",
            "block-sparse=1:0-0,7-3,7-2,9-9",
            "block-sparse=5:0-0,1-0,2-1,2-2,3-7,4-0,4-4;window=7",
            "block-sparse=16:0-0,1-0,1-1,2-1;window=9",
        ];
        for mask in text.map(|text| text.parse::<Mask>().expect(text)) {
            for start in 0..40 {
                for rows in 0..40 {
                    let all = start..start + rows;
                    let seen = |key: &usize| all.clone().any(|pos| mask.sees(pos, *key));
                    let read = (0..start + rows).filter(seen).count();
                    let pairs =
                        all.clone().map(|pos| (0..=pos).filter(|k| mask.sees(pos, *k)).count());
                    let (at, pairs) = ((start as u64, rows as u64), pairs.sum::<usize>());
                    let what = format!("{mask} {at:?}");
                    assert_eq!(mask.seen_positions(at.0, at.1), pairs as u64, "{what}");
                    assert_eq!(mask.read_positions(at.0, at.1), read as u64, "{what}");
                }
            }
        }
    }

    #[test]
    fn all_rows_of_a_sequence_see_all_keys_under_the_full_mask() {
        assert_eq!((Mask::Full.seen_positions(0, 7), Mask::Full.read_positions(0, 7)), (49, 7));
        assert!((0..7).all(|pos| (0..7).all(|key| Mask::Full.sees(pos, key))));
    }

    #[test]
    fn closed_forms_of_masks_that_see_later_keys_equal_counts() {
        for mask in [Mask::Full, Mask::Around(0), Mask::Around(3), Mask::Around(40)] {
            for end in 1..30_usize {
                for start in 0..end {
                    let all = start..end;
                    let read = (0..end).filter(|key| all.clone().any(|pos| mask.sees(pos, *key)));
                    let pairs =
                        all.clone().map(|pos| (0..end).filter(|k| mask.sees(pos, *k)).count());
                    let (at, rows) = (start as u64, (end - start) as u64);
                    let (pairs, read) = (pairs.sum::<usize>() as u64, read.count() as u64);
                    let counted = (mask.seen_positions(at, rows), mask.read_positions(at, rows));
                    let read = if mask == Mask::Full { end as u64 } else { read };
                    assert_eq!(counted, (pairs, read), "{mask} {at}+{rows}");
                }
            }
        }
    }

    #[test]
    fn bits_and_bands_of_masks_that_see_later_keys_equal_the_definition() {
        for mask in [Mask::Full, Mask::Around(0), Mask::Around(5), Mask::Around(17)] {
            let sequence = 45;
            for (first, end) in [(0, 45), (7, 9), (30, 45), (44, 45)] {
                let keys_end = mask.keys_end(end, sequence);
                let sees = |pos: usize, key: usize| key < sequence && mask.sees(pos, key);
                assert!((keys_end..60).all(|key| (first..end).all(|pos| !sees(pos, key))));
                for (pos, key) in (first..end).flat_map(|pos| (0..60).map(move |key| (pos, key))) {
                    let wanted =
                        (0..16).fold(0, |bits, i| bits | u16::from(sees(pos, key + i)) << i);
                    assert_eq!(mask.bits(pos, key, keys_end), wanted, "{mask} {pos} {key}");
                }
                for (from, to) in (0..46).flat_map(|from| (from + 1..46).map(move |to| (from, to)))
                {
                    let all = (first..end).all(|pos| (from..to).all(|key| sees(pos, key)));
                    let found = mask.sees_all(&(first..end), &(from..to), keys_end);
                    assert_eq!(found, all, "{mask} {first}..{end} {from}..{to}");
                }
            }
        }
    }

    #[test]
    fn a_mask_within_a_window_sees_what_both_see() {
        for text in
            ["causal", "around=4", "window=6", "dilated=4x3", "block-sparse=4:0-0,1-0,2-1,2-2,3-0"]
        {
            let mask: Mask = text.parse().expect(text);
            for window in 1..18 {
                let both = mask.within(Some(window)).within(Some(13));
                for (pos, key) in (0..20).flat_map(|pos| (0..20).map(move |key| (pos, key))) {
                    let in_window = key <= pos && key + window.min(13) > pos;
                    let want = mask.sees(pos, key) && in_window;
                    assert_eq!(both.sees(pos, key), want, "{text} within {window}: {pos} {key}");
                }
            }
            assert_eq!(mask.within(None), mask);
        }
    }

    #[test]
    fn local_and_global_blocks_are_listed_once() {
        let list = BlockList::local_and_global(64, 2, 1, 4).expect("a list");
        assert_eq!(
            list.listed(),
            [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 2), (3, 3)]
        );
        assert_eq!(list.positions(), 256);
    }
}

//! Which keys the rows of attention see.

use super::Mask;
use std::ops::Range;

impl Mask {
    /// The row at `pos` and all later rows see no key before this one.
    pub fn first_key(&self, pos: usize) -> usize {
        match self {
            Mask::Causal | Mask::Full => 0,
            Mask::Around(most) => pos.saturating_sub(*most),
            Mask::Window(window) => (pos + 1).saturating_sub(*window),
            Mask::Dilated { count, stride } => {
                pos.saturating_sub((*count - 1).saturating_mul(*stride))
            }
            // A later block may list an earlier one.
            Mask::Blocks { window, .. } => {
                window.map_or(0, |window| (pos + 1).saturating_sub(window))
            }
        }
    }

    /// End of the keys that any of the rows before position `end` sees, in a sequence of `sequence` keys.
    pub fn keys_end(&self, end: usize, sequence: usize) -> usize {
        match self {
            Mask::Full => sequence,
            Mask::Around(most) => end.saturating_add(*most).min(sequence),
            _ => end,
        }
    }

    /// Whether every row sees every key, of which all before `keys_end` may be seen. May return `false` for
    /// masks that are not bands.
    pub fn sees_all(&self, rows: &Range<usize>, keys: &Range<usize>, keys_end: usize) -> bool {
        let last = match self {
            Mask::Full => return keys.end <= keys_end,
            Mask::Around(most) => keys_end.min(rows.start.saturating_add(*most).saturating_add(1)),
            Mask::Causal | Mask::Window(_) => rows.start + 1,
            Mask::Dilated { .. } | Mask::Blocks { .. } => return false,
        };
        keys.end <= last && self.first_key(rows.end - 1) <= keys.start
    }

    /// Which of the 16 keys from `key` on the row at `pos` sees. A mask that sees later keys sees none from
    /// `keys_end` on.
    pub fn bits(&self, pos: usize, key: usize, keys_end: usize) -> u16 {
        match self {
            Mask::Full => return key_bits(key, 0..keys_end),
            Mask::Around(most) => {
                let end = pos.saturating_add(*most).saturating_add(1).min(keys_end);
                return key_bits(key, self.first_key(pos)..end);
            }
            _ => {}
        }
        let causal = key_bits(key, 0..pos + 1);
        if causal == 0 {
            return 0;
        }
        match self {
            Mask::Causal | Mask::Full | Mask::Around(_) => causal,
            Mask::Window(_) => causal & key_bits(key, self.first_key(pos)..pos + 1),
            Mask::Dilated { count, stride } => {
                let sees = |key: usize| {
                    key <= pos
                        && (pos - key).is_multiple_of(*stride)
                        && (pos - key) / stride < *count
                };
                (0..16).fold(0, |bits, i| bits | u16::from(sees(key + i)) << i)
            }
            Mask::Blocks { blocks: list, .. } => {
                let (len, listed) = (list.block_len(), list.listed());
                let row = u32::try_from(pos / len).unwrap_or(u32::MAX);
                let blocks = key / len..=(key + 15) / len;
                let seen = blocks.filter(|block| {
                    let block = u32::try_from(*block).unwrap_or(u32::MAX);
                    listed.binary_search(&(row, block)).is_ok()
                });
                key_bits(key, self.first_key(pos)..pos + 1)
                    & seen
                        .fold(0, |bits, block| bits | key_bits(key, block * len..(block + 1) * len))
            }
        }
    }
}

/// Which of the 16 keys from `key` on are in `keys`.
pub fn key_bits(key: usize, keys: Range<usize>) -> u16 {
    let low = keys.start.saturating_sub(key).min(16);
    let high = keys.end.saturating_sub(key).min(16);
    let below = |n: usize| u16::try_from((1u32 << n) - 1).unwrap_or(u16::MAX);
    below(high) & !below(low)
}

//! Attention masks.

use crate::mask::Mask;
use std::ops::Range;

/// Which keys a row sees, by its position; a row never sees keys after its own, except under
/// [`AttentionMask::Full`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttentionMask<'a> {
    /// All keys up to the row's own.
    #[default]
    Causal,
    /// All keys up to the last row's of the sequence.
    Full,
    /// Sliding window: this many keys, ending with the row's own.
    Window(usize),
    /// The row's own key and every `stride`-th before it, `count` in all.
    Dilated {
        /// Keys that a row sees.
        count: usize,
        /// Distance of the keys.
        stride: usize,
    },
    /// Block-sparse: a row sees the key blocks that are listed for its own block.
    Blocks {
        /// Positions per block.
        len: usize,
        /// (block of the row, block of the keys), ascending.
        listed: &'a [(u32, u32)],
        /// Of these, only this many keys ending with the row's own; `None` for all.
        window: Option<usize>,
    },
}

impl<'a> From<&'a Mask> for AttentionMask<'a> {
    fn from(mask: &'a Mask) -> AttentionMask<'a> {
        match mask {
            Mask::Causal => AttentionMask::Causal,
            Mask::Full => AttentionMask::Full,
            Mask::Window(window) => AttentionMask::Window(*window),
            Mask::Dilated { count, stride } => {
                AttentionMask::Dilated { count: *count, stride: *stride }
            }
            Mask::Blocks { blocks, window } => AttentionMask::Blocks {
                len: blocks.block_len(),
                listed: blocks.listed(),
                window: *window,
            },
        }
    }
}

impl AttentionMask<'_> {
    /// Whether no size is zero and lists are sorted.
    pub(super) fn is_valid(&self) -> bool {
        match self {
            AttentionMask::Causal | AttentionMask::Full => true,
            AttentionMask::Window(window) => *window > 0,
            AttentionMask::Dilated { count, stride } => *count > 0 && *stride > 0,
            AttentionMask::Blocks { len, listed, window } => {
                *len > 0 && *window != Some(0) && listed.is_sorted_by(|a, b| a < b)
            }
        }
    }

    /// The row at `pos` and all later rows see no key before this one.
    pub(super) fn first_key(&self, pos: usize) -> usize {
        match self {
            AttentionMask::Causal | AttentionMask::Full => 0,
            AttentionMask::Window(window) => (pos + 1).saturating_sub(*window),
            AttentionMask::Dilated { count, stride } => {
                pos.saturating_sub((*count - 1).saturating_mul(*stride))
            }
            // A later block may list an earlier one.
            AttentionMask::Blocks { window, .. } => {
                window.map_or(0, |window| (pos + 1).saturating_sub(window))
            }
        }
    }

    /// End of the keys that any of the rows before position `end` sees, in a sequence of `sequence` keys.
    pub(super) fn keys_end(&self, end: usize, sequence: usize) -> usize {
        if *self == AttentionMask::Full { sequence } else { end }
    }

    /// Whether every row sees every key, of which all before `keys_end` may be seen. May return `false` for
    /// masks that are not bands.
    pub(super) fn sees_all(
        &self,
        rows: &Range<usize>,
        keys: &Range<usize>,
        keys_end: usize,
    ) -> bool {
        if *self == AttentionMask::Full {
            return keys.end <= keys_end;
        }
        let band = matches!(self, AttentionMask::Causal | AttentionMask::Window(_));
        band && keys.end <= rows.start + 1 && self.first_key(rows.end - 1) <= keys.start
    }

    /// Which of the 16 keys from `key` on the row at `pos` sees. Under the full mask these are all before
    /// `keys_end`.
    pub(super) fn bits(&self, pos: usize, key: usize, keys_end: usize) -> u16 {
        if *self == AttentionMask::Full {
            return key_bits(key, 0..keys_end);
        }
        let causal = key_bits(key, 0..pos + 1);
        if causal == 0 {
            return 0;
        }
        match self {
            AttentionMask::Causal | AttentionMask::Full => causal,
            AttentionMask::Window(_) => causal & key_bits(key, self.first_key(pos)..pos + 1),
            AttentionMask::Dilated { count, stride } => {
                let sees = |key: usize| {
                    key <= pos
                        && (pos - key).is_multiple_of(*stride)
                        && (pos - key) / stride < *count
                };
                (0..16).fold(0, |bits, i| bits | u16::from(sees(key + i)) << i)
            }
            AttentionMask::Blocks { len, listed, .. } => {
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
pub(super) fn key_bits(key: usize, keys: Range<usize>) -> u16 {
    let low = keys.start.saturating_sub(key).min(16);
    let high = keys.end.saturating_sub(key).min(16);
    let below = |n: usize| u16::try_from((1u32 << n) - 1).unwrap_or(u16::MAX);
    below(high) & !below(low)
}

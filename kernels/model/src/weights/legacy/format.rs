//! Versions of the formats, and their block layouts.

use std::fmt;

use crate::binary16;
use crate::formats::DType;

/// Format and version of a file older than GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LegacyVersion {
    /// Without version and token scores.
    Ggml,
    /// GGMF version 1: token scores.
    Ggmf,
    /// GGJT version 1: tensor data aligned to 32 bytes.
    Ggjt1,
    /// GGJT version 2: nibbles of a block in two halves.
    Ggjt2,
    /// GGJT version 3: scales of Q4_0, Q4_1 and Q8_0 in binary16.
    Ggjt3,
}

impl fmt::Display for LegacyVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LegacyVersion::Ggml => "GGML",
            LegacyVersion::Ggmf => "GGMF v1",
            LegacyVersion::Ggjt1 => "GGJT v1",
            LegacyVersion::Ggjt2 => "GGJT v2",
            LegacyVersion::Ggjt3 => "GGJT v3",
        })
    }
}

/// Magic numbers: the letters as a number, most significant first.
pub(super) const GGML: u32 = 0x6767_6d6c;
pub(super) const GGMF: u32 = 0x6767_6d66;
pub(super) const GGJT: u32 = 0x6767_6a74;

impl LegacyVersion {
    pub(super) fn has_magic(magic: u32) -> bool {
        [GGML, GGMF, GGJT].contains(&magic)
    }

    /// Whether each token has a score.
    pub(super) fn has_scores(self) -> bool {
        self > LegacyVersion::Ggml
    }

    /// Alignment of tensor data, in bytes.
    pub(super) fn alignment(self) -> u64 {
        if self >= LegacyVersion::Ggjt1 { 32 } else { 1 }
    }
}

/// How blocks of a tensor are stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) dtype: DType,
    /// Scale and minimum are binary32 instead of binary16.
    wide_scales: bool,
    /// Byte j has values 2j and 2j + 1 instead of j and j + 16.
    pairs: bool,
}

impl Layout {
    /// The layout of a type number; `None` if GGUF has no such blocks.
    pub(super) fn of(version: LegacyVersion, id: u32) -> Option<Layout> {
        let dtype = DType::from_gguf(id)?;
        let (wide_scales, pairs) = match dtype {
            DType::F32 | DType::F16 => (false, false),
            DType::Q4_0 | DType::Q4_1 => {
                (version < LegacyVersion::Ggjt3, version < LegacyVersion::Ggjt2)
            }
            DType::Q8_0 => (version < LegacyVersion::Ggjt3, false),
            DType::Q5_0 | DType::Q5_1 if version >= LegacyVersion::Ggjt2 => (false, false),
            DType::Q2K | DType::Q3K | DType::Q4K | DType::Q5K | DType::Q6K
                if version >= LegacyVersion::Ggjt3 =>
            {
                (false, false)
            }
            _ => return None,
        };
        Some(Layout { dtype, wide_scales, pairs })
    }

    /// Whether blocks are stored as in GGUF.
    pub(super) fn is_current(self) -> bool {
        !self.wide_scales && !self.pairs
    }

    /// Scales and minimums of a block of a format whose layout has changed.
    fn scales(self) -> usize {
        if self.dtype == DType::Q4_1 { 2 } else { 1 }
    }

    /// Bytes of a block in the file.
    pub(super) fn block_bytes(self) -> usize {
        self.dtype.block_bytes() + if self.wide_scales { 2 * self.scales() } else { 0 }
    }

    /// Appends the blocks of `old` to `new`, in today's layout.
    ///
    /// # Errors
    /// A scale that binary16 cannot hold.
    pub(super) fn to_current(self, old: &[u8], new: &mut Vec<u8>) -> Result<(), f32> {
        for block in old.chunks_exact(self.block_bytes()) {
            let mut rest = block;
            for _ in 0..self.scales() {
                if !self.wide_scales {
                    let (scale, after) = rest.split_at(2);
                    new.extend_from_slice(scale);
                    rest = after;
                } else if let Some((scale, after)) = rest.split_first_chunk() {
                    let scale = f32::from_le_bytes(*scale);
                    let half = binary16::from_f32(scale);
                    if !binary16::to_f32(half).is_finite() {
                        return Err(scale);
                    }
                    new.extend_from_slice(&half.to_le_bytes());
                    rest = after;
                }
            }
            match self.pairs {
                true => new.extend(split_pairs(rest)),
                false => new.extend_from_slice(rest),
            }
        }
        Ok(())
    }
}

/// Nibbles in today's order: byte j has values j and j + 16.
fn split_pairs(pairs: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let value = |i: usize| (pairs[i / 2] >> (4 * (i % 2))) & 15;
    (0..pairs.len()).map(move |j| value(j) | (value(j + pairs.len()) << 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of scale 0.5 (and minimum −2) whose value i is i mod 16.
    fn current(dtype: DType) -> Vec<u8> {
        let mut block = 0x3800u16.to_le_bytes().to_vec();
        if dtype == DType::Q4_1 {
            block.extend(0xc000u16.to_le_bytes());
        }
        block.extend((0..16u8).map(|j| j | (j << 4)));
        block
    }

    #[test]
    fn each_layout_becomes_the_block_of_today() {
        for dtype in [DType::Q4_0, DType::Q4_1] {
            let scales: &[f32] = if dtype == DType::Q4_1 { &[0.5, -2.0] } else { &[0.5] };
            for version in [LegacyVersion::Ggml, LegacyVersion::Ggjt1, LegacyVersion::Ggjt2] {
                let layout = Layout::of(version, dtype.gguf_id()).expect("a layout");
                let mut old: Vec<u8> = scales.iter().flat_map(|s| s.to_le_bytes()).collect();
                match version {
                    LegacyVersion::Ggjt2 => old.extend((0..16u8).map(|j| j | (j << 4))),
                    _ => old.extend((0..16u8).map(|j| (2 * j % 16) | ((2 * j + 1) % 16) << 4)),
                }
                assert_eq!(old.len(), layout.block_bytes());
                let mut new = Vec::new();
                layout.to_current(&old, &mut new).expect("scales that fit");
                assert_eq!(new, current(dtype), "{dtype} of {version}");
            }
        }
        let layout = Layout::of(LegacyVersion::Ggjt2, 8).expect("a layout");
        let mut new = Vec::new();
        let old = [&0.5f32.to_le_bytes()[..], &[7; 32]].concat();
        layout.to_current(&old, &mut new).expect("a scale that fits");
        assert_eq!(new, [&0x3800u16.to_le_bytes()[..], &[7; 32]].concat());
    }

    #[test]
    fn a_scale_beyond_binary16_is_refused() {
        let layout = Layout::of(LegacyVersion::Ggjt1, 2).expect("a layout");
        for scale in [1e6, f32::INFINITY, f32::NAN, -65520.0] {
            let old = [&scale.to_le_bytes()[..], &[0; 16]].concat();
            assert!(layout.to_current(&old, &mut Vec::new()).is_err(), "{scale}");
        }
    }

    #[test]
    fn formats_without_a_place_in_gguf_have_no_layout() {
        let rows =
            [(LegacyVersion::Ggjt1, 6), (LegacyVersion::Ggjt2, 12), (LegacyVersion::Ggjt3, 4)];
        for (version, id) in rows {
            assert_eq!(Layout::of(version, id), None, "{id} of {version}");
        }
    }
}

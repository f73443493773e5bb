//! A block of a quantised format: its integers and scales.

use super::Quantised;
use crate::binary16;

/// Most values of a block.
pub const LEN_MAX: usize = 256;

/// The integers of a block, in the order of its values. Formats with shorter blocks use the first ones.
pub type Integers = [u8; LEN_MAX];

/// Values that an integer's scale is for, and how scales are stored. Groups have 32 values, halves of them 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scales {
    /// None: values are floats.
    None,
    /// A binary16 scale for each group. A block has one, for all of its groups.
    Plain,
    /// A binary16 scale and a binary16 minimum for each group, which is a block.
    Minimum,
    /// For each block of 8 groups a binary16 scale and a binary16 minimum, and for each group an unsigned factor of 6 bits of
    /// either. The minimum is subtracted.
    Super,
    /// For each block of 8 groups a binary16 scale, and for each half of a group a signed factor of 8 bits.
    Halves,
    /// For each block of 8 groups a binary16 scale and a binary16 minimum, and for each half of a group an unsigned factor of
    /// 4 bits of either. The minimum is subtracted.
    SuperHalves,
    /// For each block of 8 groups a binary16 scale, and for each group a signed factor of 8 bits.
    Signed,
    /// For each group, which is a block, a power of two: [`power`] of a byte.
    Power,
    /// For each half of a group a float of 7 bits: [`minifloat`] of a byte.
    Minifloats,
}

impl Scales {
    /// Groups of a block.
    pub const fn groups(self) -> usize {
        match self {
            Scales::None | Scales::Plain | Scales::Minimum | Scales::Power | Scales::Minifloats => {
                1
            }
            Scales::Super | Scales::Halves | Scales::SuperHalves | Scales::Signed => 8,
        }
    }

    /// Whether the format has minimums.
    pub const fn has_minimum(self) -> bool {
        match self {
            Scales::Minimum | Scales::Super | Scales::SuperHalves => true,
            Scales::None
            | Scales::Plain
            | Scales::Halves
            | Scales::Signed
            | Scales::Power
            | Scales::Minifloats => false,
        }
    }

    /// Whether halves of groups have scales of their own.
    pub const fn has_halves(self) -> bool {
        matches!(self, Scales::Halves | Scales::SuperHalves | Scales::Minifloats)
    }

    /// Scales of a block.
    pub const fn factors(self) -> usize {
        self.groups() * 32 / self.span()
    }

    /// Values that share a scale.
    pub const fn span(self) -> usize {
        if self.has_halves() { 16 } else { 32 }
    }
}

/// The scales of a block as they are stored; what a format does not have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockScales {
    /// The scale: a binary16, or the byte of a [`power`].
    pub scale: u16,
    /// The minimum, as a binary16.
    pub minimum: u16,
    /// Factors of the scale, by group or by half of a group; those that are signed in two's complement. Or the bytes of
    /// [minifloats](minifloat), by half of a group.
    pub factors: [u8; 16],
    /// Factors of the minimum, by group or by half of a group.
    pub minimums: [u8; 16],
}

impl BlockScales {
    /// With the binary16 scale at an offset of a stored block, and nothing else.
    #[inline(always)]
    pub(super) fn at(stored: &[u8], at: usize) -> BlockScales {
        BlockScales { scale: half_bits(stored, at), ..BlockScales::default() }
    }
}

/// One block, unpacked: `value[i] = scale[i / span] · q[i] + min[i / span]`.
pub struct Block {
    /// The integers, or codes.
    pub q: Integers,
    /// Scale of each group.
    pub scale: [f32; 16],
    /// Minimum of each group.
    pub min: [f32; 16],
}

impl Default for Block {
    fn default() -> Block {
        Block { q: [0; LEN_MAX], scale: [0.0; 16], min: [0.0; 16] }
    }
}

impl Block {
    /// Converts the scales of a block of a format.
    #[inline(always)]
    pub fn set_scales<F: Quantised>(&mut self, stored: &BlockScales) {
        let (d, m) = (binary16::to_f32(stored.scale) * F::UNIT, binary16::to_f32(stored.minimum));
        let zero = F::ZERO_POINT as f32;
        match F::SCALES {
            Scales::None => {}
            Scales::Plain => {
                let groups = const { F::LEN / 32 };
                self.scale[..groups].fill(d);
                self.min[..groups].fill(-zero * d);
            }
            Scales::Minimum => (self.scale[0], self.min[0]) = (d, m),
            Scales::Super | Scales::SuperHalves => {
                for g in 0..16 {
                    self.scale[g] = d * f32::from(stored.factors[g]);
                    self.min[g] = -(m * f32::from(stored.minimums[g]));
                }
            }
            Scales::Halves | Scales::Signed => {
                for (g, factor) in stored.factors.iter().enumerate() {
                    self.scale[g] = d * f32::from(factor.cast_signed());
                    self.min[g] = -zero * self.scale[g];
                }
            }
            Scales::Power => {
                self.scale[0] = power(stored.scale as u8);
                self.min[0] = -zero * self.scale[0];
            }
            Scales::Minifloats => {
                let halves = const { F::LEN / 16 };
                for (g, factor) in stored.factors[..halves].iter().enumerate() {
                    self.scale[g] = minifloat(*factor);
                    self.min[g] = -zero * self.scale[g];
                }
            }
        }
    }
}

/// 2^(exponent − 128), which is half of an E8M0 scale of the OCP's microscaling formats.
#[inline(always)]
pub fn power(exponent: u8) -> f32 {
    let exponent = u32::from(exponent);
    // The two smallest powers are subnormal.
    let subnormal = 0x0020_0000 << exponent.min(1);
    f32::from_bits((exponent.saturating_sub(1) << 23).max(subnormal))
}

/// Half of the float in the low 7 bits of a byte: 3 bits of mantissa below 4 of an exponent with the bias 7, without infinity and NaN.
/// That is half of a positive UE4M3 scale of NVFP4.
#[inline(always)]
pub fn minifloat(byte: u8) -> f32 {
    let exponent = u32::from(byte >> 3 & 15).max(1);
    let mantissa = byte & 7 | u8::from(byte & 0x78 != 0) << 3;
    // 2^(exponent − 11).
    f32::from(mantissa) * f32::from_bits((exponent + 116) << 23)
}

/// The bits of a little-endian binary16 in stored bytes.
///
/// # Panics
/// When there are no two bytes.
#[inline(always)]
pub fn half_bits(stored: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([stored[at], stored[at + 1]])
}

/// 16 bytes as 16 low, then 16 high halves.
#[inline(always)]
pub(super) fn nibbles(stored: &[u8], q: &mut [u8]) {
    if let (Some(s), Some(q)) = (stored.first_chunk::<16>(), q.first_chunk_mut::<32>()) {
        for i in 0..16 {
            q[i] = s[i] & 15;
            q[16 + i] = s[i] >> 4;
        }
    }
}

/// Adds the fifth bits of 32 integers, which are 4 bytes.
#[inline(always)]
pub(super) fn fifth_bits(stored: &[u8], q: &mut Integers) {
    if let (Some(s), Some(q)) = (stored.first_chunk::<4>(), q.first_chunk_mut::<32>()) {
        let bits = u32::from_le_bytes(*s);
        for (i, q) in q.iter_mut().enumerate() {
            *q |= ((bits >> i & 1) as u8) << 4;
        }
    }
}

/// 128 bytes as 8 groups: each 32 bytes hold one in their low halves, then one in the high ones.
#[inline(always)]
pub(super) fn group_nibbles(stored: &[u8], q: &mut Integers) {
    for (from, to) in stored.as_chunks::<32>().0.iter().zip(q.as_chunks_mut::<64>().0) {
        for i in 0..32 {
            to[i] = from[i] & 15;
            to[32 + i] = from[i] >> 4;
        }
    }
}

/// 64 bytes as the low two bits of 8 groups: each 32 bytes hold 4 of them, from the lowest bits on.
#[inline(always)]
pub(super) fn two_bits(stored: &[u8], q: &mut Integers) {
    for (from, to) in stored.as_chunks::<32>().0.iter().zip(q.as_chunks_mut::<128>().0) {
        for (j, to) in to.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for i in 0..32 {
                to[i] = from[i] >> (2 * j) & 3;
            }
        }
    }
}

/// The scales of a Q4_K or Q5_K block: two binary16, then 8 factors of each with 6 bits in 12 bytes. The first 4 are the low 6
/// bits of bytes; the last 4 have their upper 2 bits in the top of those bytes.
#[inline(always)]
pub(super) fn super_scales(stored: &[u8]) -> BlockScales {
    let mut all = BlockScales {
        scale: half_bits(stored, 0),
        minimum: half_bits(stored, 2),
        ..BlockScales::default()
    };
    if let Some(s) = stored[4..].first_chunk::<12>() {
        for j in 0..4 {
            (all.factors[j], all.minimums[j]) = (s[j] & 63, s[j + 4] & 63);
            all.factors[j + 4] = s[j + 8] & 15 | (s[j] >> 6) << 4;
            all.minimums[j + 4] = s[j + 8] >> 4 | (s[j + 4] >> 6) << 4;
        }
    }
    all
}

//! Formats whose blocks can be made of integers and scales, and parts that they share.

use super::Quantised;
use super::block::{BlockScales, Integers, LEN_MAX};

/// A format of blocks that are made of integers and scales: the inverse of how they are unpacked.
pub trait Storable: Quantised {
    /// Bits of the factors of scales, in formats that have any.
    const FACTOR_BITS: u32 = 0;

    /// Stores the integers, or the codes, and the scales of a block in `to`, which has [`BYTES`](Quantised::BYTES) bytes.
    fn store(q: &Integers, scales: &BlockScales, to: &mut [u8]);

    /// As [`store`](Storable::store), in bytes of their own.
    fn stored(q: impl IntoIterator<Item = u8>, scales: &BlockScales) -> Vec<u8> {
        let mut integers = [0; LEN_MAX];
        integers.iter_mut().zip(q).for_each(|(to, q)| *to = q);
        let mut to = vec![0; Self::BYTES];
        Self::store(&integers, scales, &mut to);
        to
    }
}

/// Puts a binary16 at an offset.
pub(super) fn put_half(bits: u16, to: &mut [u8], at: usize) {
    to[at..at + 2].copy_from_slice(&bits.to_le_bytes());
}

/// The low 4 bits of 32 integers, as [`nibbles`](super::block::nibbles) reads them.
pub(super) fn put_nibbles(q: &[u8], to: &mut [u8]) {
    for (i, to) in to[..16].iter_mut().enumerate() {
        *to = q[i] & 15 | (q[16 + i] & 15) << 4;
    }
}

/// The fifth bits of 32 integers, as [`fifth_bits`](super::block::fifth_bits) reads them.
pub(super) fn put_fifth_bits(q: &[u8], to: &mut [u8]) {
    let bits = q[..32].iter().enumerate();
    let bits = bits.fold(0, |bits, (i, q)| bits | u32::from(q >> 4 & 1) << i);
    to[..4].copy_from_slice(&bits.to_le_bytes());
}

/// The low 4 bits of 8 groups, as [`group_nibbles`](super::block::group_nibbles) reads them.
pub(super) fn put_group_nibbles(q: &Integers, to: &mut [u8]) {
    for (q, to) in q.as_chunks::<64>().0.iter().zip(to.as_chunks_mut::<32>().0) {
        for (i, to) in to.iter_mut().enumerate() {
            *to = q[i] & 15 | (q[32 + i] & 15) << 4;
        }
    }
}

/// A bit of each integer of 8 groups: bit g of byte i is that of value i of group g.
pub(super) fn put_group_bits(q: &Integers, bit: u32, to: &mut [u8]) {
    for (i, to) in to[..32].iter_mut().enumerate() {
        *to = (0..8).fold(0, |byte, g| byte | (q[32 * g + i] >> bit & 1) << g);
    }
}

/// The low two bits of 8 groups, as [`two_bits`](super::block::two_bits) reads them.
pub(super) fn put_two_bits(q: &Integers, to: &mut [u8]) {
    for (q, to) in q.as_chunks::<128>().0.iter().zip(to.as_chunks_mut::<32>().0) {
        for (i, to) in to.iter_mut().enumerate() {
            *to = (0..4).fold(0, |byte, j| byte | (q[32 * j + i] & 3) << (2 * j));
        }
    }
}

/// Scales as [`super_scales`](super::block::super_scales) reads them.
pub(super) fn put_super_scales(scales: &BlockScales, to: &mut [u8]) {
    put_half(scales.scale, to, 0);
    put_half(scales.minimum, to, 2);
    let (factors, minimums) = (&scales.factors, &scales.minimums);
    for j in 0..4 {
        to[4 + j] = factors[j] | factors[j + 4] >> 4 << 6;
        to[8 + j] = minimums[j] | minimums[j + 4] >> 4 << 6;
        to[12 + j] = factors[j + 4] & 15 | (minimums[j + 4] & 15) << 4;
    }
}

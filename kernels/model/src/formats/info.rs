//! What is known of a format at run time.

use super::block::{Block, Scales};
use super::{ActivationBlocks, Float, Places, Quantised};

/// What is known of a format.
#[derive(Debug)]
pub struct FormatInfo {
    pub(super) name: &'static str,
    pub(super) gguf_id: u32,
    pub(super) block_len: usize,
    pub(super) block_bytes: usize,
    pub(super) zeros: Option<&'static [u8]>,
    /// Floats, or blocks of integers.
    pub kind: FormatKind,
    /// Value `i` of a stored block, by the reference.
    pub value: fn(&[u8], usize) -> f32,
    /// Quantises a block of values by the simplest rule.
    pub quantize: fn(&[f32]) -> Vec<u8>,
}

/// What a format stores.
#[derive(Debug)]
pub enum FormatKind {
    /// Floats, with the function that converts stored ones.
    Floats(fn(&[u8], &mut [f32])),
    /// Blocks of integers.
    Blocks(QuantisedInfo),
}

/// What is known of a format of blocks.
#[derive(Clone, Copy, Debug)]
pub struct QuantisedInfo {
    /// As [`Quantised::BITS`].
    pub bits: usize,
    /// As [`Quantised::TABLE`].
    pub table: Option<&'static [i8; 16]>,
    /// As [`Quantised::SCALES`].
    pub scales: Scales,
    /// As [`Quantised::UNIT`].
    pub unit: f32,
    /// As [`Quantised::ZERO_POINT`].
    pub zero_point: i32,
    /// As [`Quantised::ACTIVATIONS`].
    pub activations: ActivationBlocks,
    /// As [`Quantised::PLACES`].
    pub places: Places,
    /// Unpacks a stored block.
    pub unpack: fn(&[u8], &mut Block),
}

impl FormatInfo {
    pub(super) const fn of_floats<const N: usize, F: Float<N>>() -> FormatInfo {
        FormatInfo {
            name: F::NAME,
            gguf_id: F::GGUF_ID,
            block_len: 1,
            block_bytes: N,
            zeros: None,
            kind: FormatKind::Floats(|stored, out| {
                for (out, stored) in out.iter_mut().zip(stored.as_chunks::<N>().0) {
                    *out = F::value(*stored);
                }
            }),
            value: |stored, _| stored.first_chunk().map_or(f32::NAN, |stored| F::naive(*stored)),
            quantize: |x| x.iter().flat_map(|x| F::store(*x)).collect(),
        }
    }

    pub(super) const fn of_blocks<F: Quantised>() -> FormatInfo {
        // Unpackers that use vectors rely on it.
        const { assert!(F::PLACES.end() <= F::BYTES && F::PLACES.values() == F::LEN) };
        // Kernels look for a unit of these only.
        const { assert!(F::UNIT == 1.0 || matches!(F::SCALES, Scales::Signed | Scales::Halves)) };
        FormatInfo {
            name: F::NAME,
            gguf_id: F::GGUF_ID,
            block_len: F::LEN,
            block_bytes: F::BYTES,
            zeros: F::ZEROS,
            kind: FormatKind::Blocks(QuantisedInfo {
                bits: F::BITS,
                table: F::TABLE,
                scales: F::SCALES,
                unit: F::UNIT,
                zero_point: F::ZERO_POINT,
                activations: F::ACTIVATIONS,
                places: F::PLACES,
                unpack: unpack::<F>,
            }),
            value: F::value,
            quantize: F::quantize,
        }
    }
}

/// The values of a table as unsigned integers, 128 above them.
pub const fn unsigned(table: &[i8; 16]) -> [u8; 16] {
    let (mut to, mut i) = ([0; 16], 0);
    while i < to.len() {
        to[i] = table[i] as u8 ^ 0x80;
        i += 1;
    }
    to
}

fn unpack<F: Quantised>(stored: &[u8], block: &mut Block) {
    F::integers(stored, &mut block.q);
    if let Some(table) = F::TABLE {
        let table = unsigned(table);
        block.q[..F::LEN].iter_mut().for_each(|q| *q = table[usize::from(*q & 15)]);
    }
    block.set_scales::<F>(&F::scales(stored));
}

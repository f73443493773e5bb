//! Weights in the order in which kernels read them.
//!
//! Output channels are in panels of [`PANEL`]; a matrix has zero channels up to a multiple of
//! [`CHANNELS`]. A panel has a record of 32-bit words for each block of its rows. Within a record,
//! what belongs to the 16 channels lies side by side, so that a vector of 16 lanes, or 16 neighbouring
//! work-items, read neighbouring memory. The record of a float is the float. That of a block follows from the format's bits and
//! scales; its parts, in order, each `[index][channel]`:
//!
//! | part | words of a run of 32 values, for each channel |
//! | --- | --- |
//! | quants | 4 words of 8 × 4 bits; with 8 bits, 8 words of 4 signed bytes |
//! | high bits | with 5 bits, 1 word of 32 × 1 bit; with 6 bits, 2 words of 16 × 2 bits |
//!
//! | scales | bytes of a block, for each channel |
//! | --- | --- |
//! | `Plain` | f16 d |
//! | `Minimum` | f16 d, f16 m |
//! | `Super` | 8 × (u8 factor of d, u8 factor of dmin); f16 d, f16 dmin |
//! | `Halves` | 16 × i8; f16 d |
//!
//! Other formats have no decoder of their own. Each of their runs has a record with 8 words of 4 unsigned bytes, then for each
//! half of the run an f32 scale, then for each half an f32 minimum. It takes more memory, but any format fits.
//!
//! On a GPU, the quants of each run of 32 values are `[channel][index]` instead: an item loads all words of its
//! run at once.
//!
//! A word holds its values in ascending order from the lowest bits on. 8-bit and 16-bit parts are
//! stored in words as on a little-endian machine.

mod record;

use std::ops::Range;

use lapwing_model::device::Packing;
use lapwing_model::formats::block::{LEN_MAX, half_bits};
use lapwing_model::formats::{Block, DType, Quantised, Scales, with_format};

use record::Record;
pub(super) use record::{ANY, PANEL, decoder};

/// Output channels that a kernel may compute together; matrices are padded to a multiple.
pub(super) const CHANNELS: usize = 32;

/// The order of the quants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunOrder {
    /// A word of each channel, then the next one of each.
    ByWord,
    /// All words of a channel, then those of the next one.
    ByChannel,
}

/// The bytes that matrices take on OpenCL devices. Formats without a decoder of their own take more than in a file: MXFP4, for example, 48
/// bytes for 32 values in place of 17.
pub const PACKING: Packing = Packing::new(|dtype, rows, cols| {
    Stored { dtype, bytes: &[], rows, cols }.packed_bytes() as u64
});

/// Words of one block of each channel of a panel.
pub(super) fn block_words(dtype: DType) -> usize {
    let of_floats = || dtype.block_bytes() * PANEL / size_of::<u32>();
    Record::of(dtype).map_or_else(of_floats, |record| record.of_block * record.words())
}

/// Panels of a matrix, those of padding included.
pub(super) fn panels(rows: usize) -> usize {
    rows.div_ceil(CHANNELS) * (CHANNELS / PANEL)
}

/// A matrix `[rows, cols]` as in a GGUF file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    pub(super) dtype: DType,
    pub(super) bytes: &'a [u8],
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Stored<'_> {
    /// Bytes of a row.
    ///
    /// # Panics
    /// If a row is not whole blocks, or there are not `rows` rows.
    fn row_bytes(&self) -> usize {
        let row = self.dtype.row_bytes(self.cols).filter(|row| *row > 0);
        assert!(
            row.and_then(|row| row.checked_mul(self.rows)) == Some(self.bytes.len()),
            "{} bytes are no {} matrix [{}, {}]",
            self.bytes.len(),
            self.dtype,
            self.rows,
            self.cols
        );
        row.unwrap_or(1)
    }

    /// Words of a packed panel.
    pub(super) fn panel_words(&self) -> usize {
        self.cols / self.dtype.block_len() * block_words(self.dtype)
    }

    /// Bytes of the packed matrix.
    pub(super) fn packed_bytes(&self) -> usize {
        panels(self.rows) * self.panel_words() * size_of::<u32>()
    }

    /// Packs some panels.
    ///
    /// # Panics
    /// If `bytes` are not a matrix of that shape.
    pub(super) fn pack(&self, panels: Range<usize>, order: RunOrder) -> Vec<u32> {
        let mut words = self.by_word(panels);
        if let (RunOrder::ByChannel, Some(record)) = (order, Record::of(self.dtype)) {
            let len = record.quants;
            for words in words.chunks_exact_mut(record.words()) {
                for run in words[..record.high_at()].chunks_exact_mut(len * PANEL) {
                    let by_word = run.to_vec();
                    for (at, word) in run.iter_mut().enumerate() {
                        *word = by_word[at % len * PANEL + at / len];
                    }
                }
            }
        }
        words
    }

    /// Packs some panels, the quants by word.
    fn by_word(&self, panels: Range<usize>) -> Vec<u32> {
        let (row_bytes, panel_words) = (self.row_bytes(), self.panel_words());
        let block_bytes = self.dtype.block_bytes();
        let mut words = vec![0; panels.len() * panel_words];
        for (panel, words) in panels.zip(words.chunks_exact_mut(panel_words)) {
            let rows = panel * PANEL..self.rows.min((panel + 1) * PANEL);
            for (channel, row) in rows.enumerate() {
                let row = &self.bytes[row * row_bytes..][..row_bytes];
                let records = words.chunks_exact_mut(block_words(self.dtype));
                for (block, record) in row.chunks_exact(block_bytes).zip(records) {
                    match self.dtype {
                        DType::F32 => record[channel] = u32_at(block, 0),
                        DType::F16 | DType::Bf16 => put_u16(record, channel, half_bits(block, 0)),
                        dtype if decoder(dtype) == ANY => put_any(dtype, block, channel, record),
                        dtype => with_format!(dtype, put_block(block, channel, record)),
                    }
                }
            }
        }
        words
    }
}

/// Puts a block of one channel into the records of formats that have no decoder of their own.
fn put_any(dtype: DType, block: &[u8], channel: usize, to: &mut [u32]) {
    let (Some(format), Some(record)) = (dtype.quantised(), Record::of(dtype)) else { return };
    let mut values = Block::default();
    (format.unpack)(block, &mut values);
    let span = format.scales.span();
    for (run, to) in to.chunks_exact_mut(record.words()).enumerate() {
        let q = &values.q[32 * run..][..32];
        for (word, four) in q.as_chunks::<4>().0.iter().enumerate() {
            to[word * PANEL + channel] = u32::from_le_bytes(*four);
        }
        for half in 0..2 {
            let at = (32 * run + 16 * half) / span;
            to[(8 + half) * PANEL + channel] = values.scale[at].to_bits();
            to[(10 + half) * PANEL + channel] = values.min[at].to_bits();
        }
    }
}

/// Puts a block of one channel into its record.
fn put_block<F: Quantised>(block: &[u8], channel: usize, to: &mut [u32]) {
    let record = const { Record::new(F::LEN, F::BITS, F::SCALES, F::TABLE.is_some()) };
    let mut q = [0; LEN_MAX];
    F::integers(block, &mut q);
    for (run, q) in q[..F::LEN].as_chunks::<32>().0.iter().enumerate() {
        let word = |at: usize| at * PANEL + channel;
        for at in 0..record.quants {
            to[word(run * record.quants + at)] = match F::BITS {
                // Signed bytes.
                8 => joined(q, 4 * at, 8) ^ 0x8080_8080,
                _ => joined(q, 8 * at, 4),
            };
        }
        let high = &mut to[record.high_at()..];
        let bits = q.map(|q| q >> 4);
        for at in 0..record.high {
            let bits_of_each = F::BITS - 4;
            high[word(run * record.high + at)] = joined(&bits, 32 / record.high * at, bits_of_each);
        }
    }
    put_scales::<F>(block, channel, &mut to[record.scales_at()..]);
}

/// The word of as many integers as it has room for, from index `from` on, of which the low `bits` count.
fn joined(q: &[u8; 32], from: usize, bits: usize) -> u32 {
    let low = (1 << bits) - 1;
    let values = q[from..].iter().take(32 / bits).enumerate();
    values.map(|(i, q)| (u32::from(*q) & low) << (i * bits)).sum()
}

fn put_scales<F: Quantised>(block: &[u8], channel: usize, to: &mut [u32]) {
    let stored = F::scales(block);
    match F::SCALES {
        // Others have a decoder of bytes.
        Scales::None
        | Scales::SuperHalves
        | Scales::Signed
        | Scales::Power
        | Scales::Minifloats => {}
        Scales::Plain => put_u16(to, channel, stored.scale),
        Scales::Minimum => {
            put_u16(to, channel, stored.scale);
            put_u16(to, PANEL + channel, stored.minimum);
        }
        Scales::Super => {
            for j in 0..8 {
                put_u8(to, 2 * j * PANEL + channel, stored.factors[j]);
                put_u8(to, (2 * j + 1) * PANEL + channel, stored.minimums[j]);
            }
            let to = &mut to[4 * PANEL..];
            put_u16(to, channel, stored.scale);
            put_u16(to, PANEL + channel, stored.minimum);
        }
        Scales::Halves => {
            for (j, factor) in stored.factors.iter().enumerate() {
                put_u8(to, j * PANEL + channel, *factor);
            }
            put_u16(&mut to[4 * PANEL..], channel, stored.scale);
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Puts a binary16 at the 16-bit index `at`, where zeros are.
fn put_u16(words: &mut [u32], at: usize, bits: u16) {
    words[at / 2] |= u32::from(bits) << (at % 2 * 16);
}

/// Puts a byte at the index `at`, where zeros are.
fn put_u8(words: &mut [u32], at: usize, byte: u8) {
    words[at / 4] |= u32::from(byte) << (at % 4 * 8);
}

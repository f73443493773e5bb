//! Weights in the order in which kernels read them.
//!
//! Output channels are in panels of [`PANEL`]; a matrix has zero channels up to a multiple of
//! [`CHANNELS`]. A panel has a record of 32-bit words for each block of its rows. Within a record,
//! what belongs to the 16 channels lies side by side, so that a vector of 16 lanes, or 16 neighbouring
//! work-items, read neighbouring memory. The parts of a record, in order, each `[index][channel]`:
//!
//! | format | quants | high bits | scales per run | scales per block |
//! | --- | --- | --- | --- | --- |
//! | F32 | f32 | | | |
//! | F16, BF16 | 16 bits | | | |
//! | Q4_0, Q4_1 | 4 words of 8 × 4 bits | | | f16 d (, m) |
//! | Q5_0, Q5_1 | 4 words of 8 × 4 bits | 1 word of 32 × 1 bit | | f16 d (, m) |
//! | Q8_0 | 8 words of 4 × 8 bits | | | f16 d |
//! | Q4_K | 8 × 4 words of 8 × 4 bits | | 8 × (u8 scale, u8 minimum) | f16 d, dmin |
//! | Q5_K | 8 × 4 words of 8 × 4 bits | 8 words of 32 × 1 bit | 8 × (u8 scale, u8 minimum) | f16 d, dmin |
//! | Q6_K | 8 × 4 words of 8 × 4 bits | 8 × 2 words of 16 × 2 bits | 16 × i8 | f16 d |
//!
//! On a GPU, the quants of each run of 32 values are `[channel][index]` instead: an item loads all words of its
//! run at once.
//!
//! A word holds its values in ascending order from the lowest bits on. 8-bit and 16-bit parts are
//! stored in words as on a little-endian machine.

use std::ops::Range;

use crate::quant::DType;

/// Output channels of a panel.
pub(super) const PANEL: usize = 16;

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

/// Words of the quants of a run of 32 values, and runs of a block; none in formats without blocks.
fn run_words(dtype: DType) -> Option<(usize, usize)> {
    match dtype {
        DType::F32 | DType::F16 | DType::Bf16 => None,
        DType::Q4_0 | DType::Q4_1 | DType::Q5_0 | DType::Q5_1 => Some((4, 1)),
        DType::Q8_0 => Some((8, 1)),
        DType::Q4K | DType::Q5K | DType::Q6K => Some((4, 8)),
    }
}

/// Words of a record: one block of each channel of a panel.
pub(super) fn record_words(dtype: DType) -> usize {
    let words_of_each = match dtype {
        DType::F32 => 1.0,
        DType::F16 | DType::Bf16 => 0.5,
        DType::Q4_0 => 4.0 + 0.5,
        DType::Q4_1 => 4.0 + 1.0,
        DType::Q5_0 => 5.0 + 0.5,
        DType::Q5_1 => 5.0 + 1.0,
        DType::Q8_0 => 8.0 + 0.5,
        DType::Q4K => 32.0 + 4.0 + 1.0,
        DType::Q5K => 40.0 + 4.0 + 1.0,
        DType::Q6K => 48.0 + 4.0 + 0.5,
    };
    (words_of_each * PANEL as f64) as usize
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
        self.cols / self.dtype.block_len() * record_words(self.dtype)
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
        if let (RunOrder::ByChannel, Some((len, runs))) = (order, run_words(self.dtype)) {
            for record in words.chunks_exact_mut(record_words(self.dtype)) {
                for run in record[..runs * len * PANEL].chunks_exact_mut(len * PANEL) {
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
                let records = words.chunks_exact_mut(record_words(self.dtype));
                for (block, record) in row.chunks_exact(block_bytes).zip(records) {
                    put_block(self.dtype, block, channel, record);
                }
            }
        }
        words
    }
}

/// Puts a block of one channel into a record.
fn put_block(dtype: DType, block: &[u8], channel: usize, record: &mut [u32]) {
    match dtype {
        DType::F32 => record[channel] = u32_at(block, 0),
        DType::F16 | DType::Bf16 => put_u16(record, channel, block),
        DType::Q4_0 => put_small(block, 2, None, channel, record),
        DType::Q4_1 => put_small(block, 4, None, channel, record),
        DType::Q5_0 => put_small(block, 6, Some(2), channel, record),
        DType::Q5_1 => put_small(block, 8, Some(4), channel, record),
        DType::Q8_0 => {
            for word in 0..8 {
                record[word * PANEL + channel] = u32_at(block, 2 + 4 * word);
            }
            put_u16(&mut record[8 * PANEL..], channel, block);
        }
        DType::Q4K => {
            put_k_nibbles(&block[16..], channel, record);
            put_k_scales(block, channel, &mut record[32 * PANEL..]);
        }
        DType::Q5K => {
            put_k_nibbles(&block[48..], channel, record);
            for run in 0..8 {
                let bits = (0..32).map(|j| u32::from(block[16 + j] >> run & 1) << j);
                record[(32 + run) * PANEL + channel] = bits.sum();
            }
            put_k_scales(block, channel, &mut record[40 * PANEL..]);
        }
        DType::Q6K => put_q6(block, channel, record),
    }
}

/// A block of 32 values in 4 or 5 bits; `high` is where the fifth bits are.
fn put_small(block: &[u8], quants: usize, high: Option<usize>, channel: usize, record: &mut [u32]) {
    put_run(&block[quants..], false, channel, record);
    put_run(&block[quants..], true, channel, &mut record[2 * PANEL..]);
    let mut at = 4 * PANEL;
    if let Some(high) = high {
        record[at + channel] = u32_at(block, high);
        at += PANEL;
    }
    let scales = high.unwrap_or(quants) / 2;
    for scale in 0..scales {
        put_u16(&mut record[at..], scale * PANEL + channel, &block[2 * scale..]);
    }
}

/// The low or high nibbles of 16 bytes, as two words.
fn put_run(bytes: &[u8], is_high: bool, channel: usize, record: &mut [u32]) {
    for (word, bytes) in bytes.as_chunks::<8>().0.iter().take(2).enumerate() {
        record[word * PANEL + channel] = nibbles(*bytes, is_high);
    }
}

/// The low or high nibbles of eight bytes, in their order.
fn nibbles(bytes: [u8; 8], is_high: bool) -> u32 {
    let x = u64::from_le_bytes(bytes) >> if is_high { 4 } else { 0 };
    let x = x & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

/// 8 runs of 32 values: each 32 bytes hold a run as low nibbles, then one as high ones.
fn put_k_nibbles(quants: &[u8], channel: usize, record: &mut [u32]) {
    for run in 0..8 {
        let bytes = &quants[run / 2 * 32..][..32];
        for (half, bytes) in bytes.chunks_exact(16).enumerate() {
            put_run(bytes, run % 2 == 1, channel, &mut record[(4 * run + 2 * half) * PANEL..]);
        }
    }
}

/// Scales and minimums of a Q4_K or Q5_K block: 6 bits each in the file.
fn put_k_scales(block: &[u8], channel: usize, record: &mut [u32]) {
    let s = &block[4..16];
    for j in 0..8 {
        let (scale, min) = match j {
            0..4 => (s[j] & 63, s[j + 4] & 63),
            _ => (s[j + 4] & 15 | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4),
        };
        put_u8(record, 2 * j * PANEL + channel, scale);
        put_u8(record, (2 * j + 1) * PANEL + channel, min);
    }
    let record = &mut record[4 * PANEL..];
    put_u16(record, channel, block);
    put_u16(record, PANEL + channel, &block[2..]);
}

fn put_q6(block: &[u8], channel: usize, record: &mut [u32]) {
    for run in 0..8 {
        let (half, quarter) = (run / 4, run % 4);
        let low = &block[half * 64 + quarter % 2 * 32..][..32];
        for (part, low) in low.chunks_exact(16).enumerate() {
            put_run(low, quarter >= 2, channel, &mut record[(4 * run + 2 * part) * PANEL..]);
        }
        let high = &block[128 + half * 32..][..32];
        for (word, high) in high.chunks_exact(16).enumerate() {
            let bits = high.iter().enumerate();
            let bits = bits.map(|(j, b)| u32::from(b >> (2 * quarter) & 3) << (2 * j));
            record[(32 + 2 * run + word) * PANEL + channel] = bits.sum();
        }
    }
    let record = &mut record[48 * PANEL..];
    for j in 0..16 {
        put_u8(record, j * PANEL + channel, block[192 + j]);
    }
    put_u16(&mut record[4 * PANEL..], channel, &block[208..]);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Puts two bytes at the 16-bit index `at`, where zeros are.
fn put_u16(words: &mut [u32], at: usize, bytes: &[u8]) {
    words[at / 2] |= u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << (at % 2 * 16);
}

/// Puts a byte at the index `at`, where zeros are.
fn put_u8(words: &mut [u32], at: usize, byte: u8) {
    words[at / 4] |= u32::from(byte) << (at % 4 * 8);
}

//! Packing of weights.

use crate::pack::RunOrder::{ByChannel, ByWord};
use crate::pack::{ANY, CHANNELS, PACKING, PANEL, Stored, block_words, decoder, panels};
use half::{bf16, f16};
use lapwing_model::device::Packing;
use lapwing_model::formats::DType;
use lapwing_model::reference;

/// A record of 16 channels, read as documented.
struct Record<'a>(&'a [u32]);

impl Record<'_> {
    fn u16(&self, word: usize, index: usize) -> u16 {
        (self.0[word + index / 2] >> (index % 2 * 16)) as u16
    }

    fn f16(&self, word: usize, index: usize) -> f32 {
        f16::from_bits(self.u16(word, index)).to_f32()
    }

    fn u8(&self, word: usize, index: usize) -> u8 {
        (self.0[word + index / 4] >> (index % 4 * 8)) as u8
    }

    /// Value `i` of `width` bits, of a channel, in words from `word` on.
    fn bits(&self, word: usize, width: usize, i: usize, c: usize) -> u32 {
        let each = 32 / width;
        self.0[word + i / each * PANEL + c] >> (i % each * width) & ((1 << width) - 1)
    }

    fn value(&self, dtype: DType, i: usize, c: usize) -> f32 {
        let low = || self.bits(0, 4, i, c);
        let five = |high: usize| (low() + 16 * self.bits(high, 1, i, c)) as f32;
        let k = |at: usize, q: f32| {
            let (scale, min) = (2 * (i / 32) * PANEL + c, (2 * (i / 32) + 1) * PANEL + c);
            let scale = self.f16(at + 64, c) * f32::from(self.u8(at, scale));
            scale * q - self.f16(at + 64, PANEL + c) * f32::from(self.u8(at, min))
        };
        match dtype {
            DType::F32 => f32::from_bits(self.0[c]),
            DType::F16 => self.f16(0, c),
            DType::Bf16 => bf16::from_bits(self.u16(0, c)).to_f32(),
            DType::Q4_0 => self.f16(64, c) * (low() as f32 - 8.0),
            DType::Q4_1 => self.f16(64, c) * low() as f32 + self.f16(64, PANEL + c),
            DType::Q5_0 => self.f16(80, c) * (five(64) - 16.0),
            DType::Q5_1 => self.f16(80, c) * five(64) + self.f16(80, PANEL + c),
            DType::Q8_0 => self.f16(128, c) * f32::from(self.bits(0, 8, i, c) as u8 as i8),
            DType::Q4K => k(512, low() as f32),
            DType::Q5K => k(640, five(512)),
            DType::Q6K => {
                let q = low() + 16 * self.bits(512, 2, i, c);
                let scale = self.u8(768, i / 16 * PANEL + c) as i8;
                self.f16(832, c) * f32::from(scale) * (q as f32 - 32.0)
            }
            // Formats without a decoder of their own.
            _ => {
                let (run, i) = (Record(&self.0[i / 32 * 192..]), i % 32);
                let [scale, min] =
                    [128, 160].map(|at| f32::from_bits(run.0[at + i / 16 * PANEL + c]));
                scale * run.bits(0, 8, i, c) as f32 + min
            }
        }
    }
}

#[test]
fn packed_values_are_those_of_the_file_and_padding_is_zero() {
    for dtype in DType::ALL {
        for (rows, blocks) in [(1, 1), (15, 2), (16, 1), (17, 3), (33, 2), (64, 1)] {
            let cols = blocks * dtype.block_len();
            let values = super::noise(7 + rows as u32, rows * cols);
            let bytes = reference::quantize(dtype, &values);
            let stored = Stored { dtype, bytes: &bytes, rows, cols };
            let words = stored.pack(0..panels(rows), ByWord);
            assert_eq!(words.len() * 4, stored.packed_bytes(), "{dtype} [{rows}, {cols}]");
            let wanted = reference::dequantize(dtype, &bytes);
            for row in 0..rows.next_multiple_of(CHANNELS) {
                let panel = &words[row / PANEL * stored.panel_words()..];
                for col in 0..cols {
                    let record = &panel[col / dtype.block_len() * block_words(dtype)..];
                    let found = Record(record).value(dtype, col % dtype.block_len(), row % PANEL);
                    let wanted = if row < rows { wanted[row * cols + col] } else { 0.0 };
                    // A scale · integer + minimum is rounded once more than the value.
                    let error = if decoder(dtype) == ANY { 1e-6 } else { 0.0 };
                    assert!(
                        (found - wanted).abs() <= error,
                        "{dtype} {row} {col}: {found}, not {wanted}"
                    );
                }
            }
        }
    }
}

#[test]
fn panels_packed_one_by_one_are_those_packed_together() {
    let (dtype, rows, cols) = (DType::Q4K, 70, 512);
    let bytes = reference::quantize(dtype, &super::noise(3, rows * cols));
    let stored = Stored { dtype, bytes: &bytes, rows, cols };
    let one_by_one: Vec<u32> =
        (0..panels(rows)).flat_map(|p| stored.pack(p..p + 1, ByWord)).collect();
    assert!(one_by_one == stored.pack(0..panels(rows), ByWord));
}

#[test]
fn the_words_of_a_run_by_channel_are_those_by_word_and_nothing_else_moves() {
    // Words of quants of a run, runs of a block, and the words after them.
    let formats = [
        (DType::F16, [0, 0, 8]),
        (DType::Q4_0, [4, 1, 8]),
        (DType::Q5_1, [4, 1, 32]),
        (DType::Q8_0, [8, 1, 8]),
        (DType::Q4K, [4, 8, 80]),
        (DType::Q6K, [4, 8, 328]),
        (DType::Iq4Nl, [8, 1, 64]),
    ];
    for (dtype, [len, runs, rest]) in formats {
        let (rows, cols) = (40, dtype.block_len() * 3);
        let bytes: Vec<u8> =
            (0..rows * dtype.row_bytes(cols).unwrap()).map(|i| (i * 7 % 251) as u8).collect();
        let stored = Stored { dtype, bytes: &bytes, rows, cols };
        let [by_word, by_channel] =
            [ByWord, ByChannel].map(|order| stored.pack(0..panels(rows), order));
        let record = block_words(dtype);
        assert_eq!(record, len * runs * PANEL + rest, "{dtype}");
        for (at, word) in by_word.iter().enumerate() {
            let (from, at) = (at / record * record, at % record);
            let to = match at < len * runs * PANEL {
                true => {
                    let (run, at) = (at / (len * PANEL), at % (len * PANEL));
                    run * len * PANEL + at % PANEL * len + at / PANEL
                }
                false => at,
            };
            assert_eq!(by_channel[from + to], *word, "{dtype}: word {at} of a record");
        }
    }
}

/// What a device says of its memory is what it takes there.
#[test]
fn a_matrix_takes_as_many_bytes_as_its_packing_says() {
    for dtype in DType::ALL {
        let (rows, cols) = (70, 2 * dtype.block_len().max(32));
        let bytes = vec![0; rows * dtype.row_bytes(cols).unwrap()];
        let stored = Stored { dtype, bytes: &bytes, rows, cols };
        let words = stored.pack(0..panels(rows), ByWord);
        assert_eq!(PACKING.bytes(dtype, rows, cols), 4 * words.len() as u64, "{dtype}");
    }
    // 48 bytes for 32 values, of which a file has 17.
    assert_eq!(PACKING.bytes(DType::Mxfp4, 64, 64), 64 * 2 * 48);
    assert_eq!(Packing::FILE.bytes(DType::Mxfp4, 64, 64), 64 * 2 * 17);
}

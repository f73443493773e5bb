//! Records of packed blocks.

use lapwing_model::formats::{DType, Scales};

/// Output channels of a panel.
pub(crate) const PANEL: usize = 16;

/// The decoder in formats.cl of formats that have none of their own.
pub(crate) const ANY: u32 = 255;

/// The decoder of a format in formats.cl: its number in GGUF files, or [`ANY`].
pub(crate) fn decoder(dtype: DType) -> u32 {
    let has_own = dtype
        .quantised()
        .is_none_or(|format| format.table.is_none() && has_decoder(format.bits, format.scales));
    if has_own { dtype.gguf_id() } else { ANY }
}

/// Whether a format of blocks has a decoder of its own. No format with a table has one.
const fn has_decoder(bits: usize, scales: Scales) -> bool {
    matches!(
        (bits, scales),
        (4 | 5, Scales::Plain | Scales::Minimum | Scales::Super)
            | (8, Scales::Plain)
            | (6, Scales::Halves)
    )
}

/// The record of a block, or of a run where a format has no decoder of its own, in words for each channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Records of a block.
    pub(super) of_block: usize,
    /// Runs of 32 values.
    pub(super) runs: usize,
    /// Of the quants of a run.
    pub(super) quants: usize,
    /// Of the high bits of a run.
    pub(super) high: usize,
    /// Bytes of all scales.
    scale_bytes: usize,
}

impl Record {
    /// The records of blocks of `len` values.
    pub(super) const fn new(len: usize, bits: usize, scales: Scales, has_table: bool) -> Record {
        let quants = if bits == 8 { 8 } else { 4 };
        let (high, scale_bytes) = match scales {
            _ if has_table || !has_decoder(bits, scales) => {
                return Record { of_block: len / 32, runs: 1, quants: 8, high: 0, scale_bytes: 16 };
            }
            Scales::Plain => (bits - quants, 2),
            Scales::Minimum => (bits - quants, 4),
            Scales::Super => (bits - quants, 20),
            _ => (bits - quants, 18),
        };
        Record { of_block: 1, runs: len / 32, quants, high, scale_bytes }
    }

    /// The records of a format of blocks; `None` for floats.
    pub(super) fn of(dtype: DType) -> Option<Record> {
        let format = dtype.quantised()?;
        let has_table = format.table.is_some();
        Some(Record::new(dtype.block_len(), format.bits, format.scales, has_table))
    }

    /// Words of the record, for all channels of a panel.
    pub(super) fn words(self) -> usize {
        self.scales_at() + self.scale_bytes * PANEL / size_of::<u32>()
    }

    /// Where the high bits are.
    pub(super) fn high_at(self) -> usize {
        self.runs * self.quants * PANEL
    }

    /// Where the scales are.
    pub(super) fn scales_at(self) -> usize {
        self.runs * (self.quants + self.high) * PANEL
    }
}

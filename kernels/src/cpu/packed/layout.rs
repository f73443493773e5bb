//! Memory layout of a tile.

use crate::quant::DType;

/// Output channels (rows of a weight matrix) per tile.
pub(crate) const TILE: usize = 16;
/// Columns per group, whatever the format's own block size is.
pub(crate) const GROUP: usize = 32;
/// Bytes of a line: 16 channels × 4 columns, one byte each.
pub(crate) const LINE: usize = 64;
/// Groups of a super-block, which share a scale: panels end only between super-blocks.
pub(crate) const SUPER_GROUPS: usize = 8;
/// Tiles start at cache lines.
const ALIGN: usize = 64;

/// How the scales and minimums of 16 channels are stored. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scales {
    /// None: float values.
    None,
    /// Per group: 16 binary16 scales.
    Plain,
    /// Per group: 16 binary16 scales, 16 binary16 minimums.
    Minimum,
    /// Per 8 groups: 16 binary16 super-scales, 16 binary16 super-minimums, `[8][16]` 6-bit
    /// scales in bytes, `[8][16]` 6-bit minimums in bytes.
    Super,
    /// Per 8 groups: `[16][16]` signed 8-bit scales of half groups, 16 binary16 super-scales.
    Halves,
}

impl Scales {
    /// Bytes per super-block of 8 groups, or per group where there is none.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Scales::None => 0,
            Scales::Plain => 2 * TILE,
            Scales::Minimum => 4 * TILE,
            Scales::Super => 20 * TILE,
            Scales::Halves => 18 * TILE,
        }
    }

    /// Groups that share one record of scales.
    pub(crate) const fn groups(self) -> usize {
        if matches!(self, Scales::Super | Scales::Halves) { 8 } else { 1 }
    }

    /// Whether the format has minimums.
    pub(crate) fn has_minimum(self) -> bool {
        matches!(self, Scales::Minimum | Scales::Super)
    }
}

/// Sizes of a tile, in bytes: the values of 16 channels, then their scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dtype: DType,
    /// Values per channel (k).
    pub(crate) cols: usize,
    /// Lines of [`LINE`] bytes per group; a quad is 4 columns. First come 4 lines of nibbles (low
    /// half of a byte: quad j; high half: quad j + 4). Then comes one line of fifth bits (bit j:
    /// quad j), or two lines of the upper two bits (bits 2i of line h: quad 4h + i). With 8 bits,
    /// line j is quad j. 0 for float formats.
    pub(crate) lines: usize,
    pub(crate) kind: Scales,
    /// Bytes of values per tile.
    pub(crate) values: usize,
    /// Bytes per tile, including the padding to a whole cache line.
    pub(crate) tile: usize,
}

impl Layout {
    pub(crate) fn new(dtype: DType, cols: usize) -> Layout {
        let (lines, kind) = match dtype {
            DType::F32 | DType::F16 | DType::Bf16 => (0, Scales::None),
            DType::Q4_0 => (4, Scales::Plain),
            DType::Q4_1 => (4, Scales::Minimum),
            DType::Q5_0 => (5, Scales::Plain),
            DType::Q5_1 => (5, Scales::Minimum),
            DType::Q8_0 => (8, Scales::Plain),
            DType::Q4K => (4, Scales::Super),
            DType::Q5K => (5, Scales::Super),
            DType::Q6K => (6, Scales::Halves),
        };
        let groups = cols / GROUP;
        let values = match kind {
            Scales::None => cols * TILE * dtype.block_bytes(),
            _ => groups * lines * LINE,
        };
        let scales = groups / kind.groups() * kind.bytes();
        let tile = (values + scales).next_multiple_of(ALIGN);
        Layout { dtype, cols, lines, kind, values, tile }
    }

    /// Groups of 32 columns per channel.
    pub(crate) fn groups(&self) -> usize {
        self.cols / GROUP
    }

    /// Bytes of a matrix of `rows` channels.
    pub(crate) fn bytes(&self, rows: usize) -> usize {
        rows.div_ceil(TILE) * self.tile
    }
}

/// Zero point: how far the unsigned integers of a format without minimums are above their values.
pub(crate) fn zero_point(dtype: DType) -> i32 {
    match dtype {
        DType::Q4_0 => 8,
        DType::Q5_0 => 16,
        DType::Q6K => 32,
        DType::Q8_0 => 128,
        _ => 0,
    }
}

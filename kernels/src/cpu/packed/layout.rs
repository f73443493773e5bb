//! Where everything lies in a tile.

use crate::quant::DType;

/// Output channels (rows of a weight matrix) per tile.
pub(crate) const TILE: usize = 16;
/// Columns per group of lines, whatever the format's own blocks are.
pub(crate) const GROUP: usize = 32;
/// Bytes of a line: 16 features × 4 columns of one byte.
pub(crate) const LINE: usize = 64;
/// Groups of a super-block, which share a scale: no panel ends among them.
pub(crate) const SUPER_GROUPS: usize = 8;
/// Tiles start at cache lines.
const ALIGN: usize = 64;

/// How scales and minimums of 16 features are stored. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scales {
    /// Float values have none.
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

    /// Groups that share them.
    pub(crate) const fn groups(self) -> usize {
        if matches!(self, Scales::Super | Scales::Halves) { 8 } else { 1 }
    }

    /// Whether the format has minimums.
    pub(crate) fn has_minimum(self) -> bool {
        matches!(self, Scales::Minimum | Scales::Super)
    }
}

/// Sizes of the parts of a tile: the values of 16 features, then their scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dtype: DType,
    /// Values per feature (k).
    pub(crate) cols: usize,
    /// Lines of [`LINE`] bytes per group: first 4 of nibbles (low half of a byte: quad j of
    /// the group, high half: quad j + 4; a quad is 4 columns), then one of fifth bits (bit j:
    /// quad j), or two of the upper two bits (bits 2i of line h: quad 4h + i). With 8 bits, line
    /// j is quad j. 0 for float formats.
    pub(crate) lines: usize,
    pub(crate) kind: Scales,
    /// Bytes of values per tile.
    pub(crate) values: usize,
    /// Bytes per tile, with what fills the last cache line.
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

    /// Groups of 32 columns.
    pub(crate) fn groups(&self) -> usize {
        self.cols / GROUP
    }

    /// Bytes of a matrix of `rows` features.
    pub(crate) fn bytes(&self, rows: usize) -> usize {
        rows.div_ceil(TILE) * self.tile
    }
}

/// What the unsigned integers of a format without a minimum are above the stored ones.
pub(crate) fn zero_point(dtype: DType) -> i32 {
    match dtype {
        DType::Q4_0 => 8,
        DType::Q5_0 => 16,
        DType::Q6K => 32,
        DType::Q8_0 => 128,
        _ => 0,
    }
}

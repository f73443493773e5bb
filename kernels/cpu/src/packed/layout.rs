//! Memory layout of a tile.

use lapwing_model::formats::{DType, Scales, unsigned};
use std::ops::Range;

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

/// Bytes of the scales and minimums of 16 channels, for as many groups as share them ([`Scales::groups`]). They are, `[16]`
/// each:
///
/// | scales | in order |
/// | --- | --- |
/// | `Plain` | binary16 scales |
/// | `Minimum` | binary16 scales, binary16 minimums |
/// | `Super` | binary16 scales, binary16 minimums, `[8]` bytes of factors of the scales, `[8]` of the minimums |
/// | `Halves` | `[16]` signed bytes of factors, binary16 scales |
/// | `SuperHalves` | binary16 scales, binary16 minimums, `[16]` bytes of factors: of the scales in their low halves, of the minimums in the high ones |
/// | `Signed` | `[8]` signed bytes of factors, binary16 scales |
/// | `Power` | bytes of powers |
/// | `Minifloats` | `[2]` bytes of minifloats |
pub(crate) const fn scale_bytes(kind: Scales) -> usize {
    match kind {
        Scales::None => 0,
        Scales::Plain => 2 * TILE,
        Scales::Minimum => 4 * TILE,
        Scales::Super => 20 * TILE,
        Scales::Halves => 18 * TILE,
        Scales::SuperHalves => 20 * TILE,
        Scales::Signed => 10 * TILE,
        Scales::Power => TILE,
        Scales::Minifloats => 2 * TILE,
    }
}

/// Sizes of a tile, in bytes: the values of 16 channels, then their scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) dtype: DType,
    /// Values per channel (k).
    pub(crate) cols: usize,
    /// Lines of [`LINE`] bytes per group, one for each bit of an integer; a quad is 4 columns. First come 4 lines of nibbles (low
    /// half of a byte: quad j; high half: quad j + 4). Then comes one line of fifth bits (bit j:
    /// quad j), or two lines of the upper two bits (bits 2i of line h: quad 4h + i). With 8 bits, line j is quad j. 0 for float formats.
    ///
    /// With 2 or 3 bits, a mask alone yields most quads of the last half of a group, all shifted by as much: by 4 or 3 bits. With 2
    /// bits, the first line has quads 0, 1, 4 and 5 from its lowest bits on, the second has quads 2, 3, 6 and 7. With 3 bits, line
    /// j < 3 has quads j and 4 + j. The upper two bits of the first line are the lower two of quad 3, those of the last line the
    /// lower two of quad 7, and those of the second line the third bit of either.
    pub(crate) lines: usize,
    /// What codes stand for, 128 above it.
    pub(crate) table: Option<[u8; 16]>,
    pub kind: Scales,
    /// What the scales of blocks are multiplied by ([`Quantised::UNIT`](lapwing_model::formats::Quantised::UNIT)).
    pub(crate) unit: f32,
    /// Bytes of values per tile.
    pub(crate) values: usize,
    /// Bytes per tile, including the padding to a whole cache line.
    pub(crate) tile: usize,
}

impl Layout {
    pub(crate) fn new(dtype: DType, cols: usize) -> Layout {
        let format = dtype.quantised();
        let (lines, kind) = format.map_or((0, Scales::None), |format| (format.bits, format.scales));
        let table = format.and_then(|format| format.table).map(unsigned);
        let unit = format.map_or(1.0, |format| format.unit);
        let groups = cols / GROUP;
        let values = match kind {
            Scales::None => cols * TILE * dtype.block_bytes(),
            _ => groups * lines * LINE,
        };
        let scales = groups / kind.groups() * scale_bytes(kind);
        let tile = (values + scales).next_multiple_of(ALIGN);
        Layout { dtype, cols, lines, table, kind, unit, values, tile }
    }

    /// Groups of 32 columns per channel.
    pub(crate) fn groups(&self) -> usize {
        self.cols / GROUP
    }

    /// Tiles of a matrix of `rows` channels.
    pub(crate) fn tiles(rows: usize) -> Range<usize> {
        0..rows.div_ceil(TILE)
    }

    /// Bytes of a matrix of `rows` channels.
    pub(crate) fn bytes(&self, rows: usize) -> usize {
        Layout::tiles(rows).len() * self.tile
    }
}

/// Zero point: how far the unsigned integers of a format are above their values; 0 for floats and formats with minimums.
pub(crate) fn zero_point(dtype: DType) -> i32 {
    dtype.quantised().map_or(0, |format| format.zero_point)
}

//! Packs stored rows into tiles.

use super::error::PackError;
use super::source::{Requantizer, Source};
use crate::context::Cpu;
use crate::matrix::StoredRows;
use crate::packed::layout::{GROUP, LINE, Layout, TILE, scale_bytes};
use lapwing_model::formats::{Quantised, Scales, with_format};
use lapwing_model::requant::Requant;
use lapwing_model::sync::{Mutex, lock};
use lapwing_model::weights::TensorReadError;
use std::cell::RefCell;
use std::ops::Range;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Bytes that a thread reads from a file at a time, unless a tile has more: few reads, of bytes that
/// stay in a cache until they are packed.
pub(super) const READ_BYTES: usize = 128 << 10;

/// Buffers of a thread.
#[derive(Default)]
struct Scratch {
    /// Rows that were read from a file.
    stored: Vec<u8>,
    /// Unpacked values of a tile, one byte each.
    bytes: Vec<u8>,
    requantizer: Requantizer,
}

/// Why rows cannot be packed.
#[derive(Clone, Debug)]
pub(super) enum TileError {
    /// A row cannot be represented in the requested format.
    NotFinite { row: usize, format: Requant },
    /// Rows cannot be read.
    Read(TensorReadError),
}

impl TileError {
    /// The error of the matrix with this number.
    pub(super) fn of(self, matrix: usize) -> PackError {
        match self {
            TileError::NotFinite { row, format } => PackError::NotFinite { matrix, row, format },
            TileError::Read(error) => PackError::Read(error),
        }
    }
}

/// Packs some tiles of a matrix in parallel into `to`, which must be zeroed and have as many bytes as its layout says.
/// After an error, the contents of `to` are meaningless; the error is that of the first row that
/// cannot be represented, unless rows cannot be read.
///
/// # Panics
/// When `to` has another size.
pub(super) fn pack(
    ctx: &Cpu,
    source: &Source<'_>,
    some: Range<usize>,
    to: &mut [u8],
) -> Result<(), TileError> {
    let (rows, layout) = (source.rows(), source.layout());
    assert_eq!(to.len(), some.len() * layout.tile, "not the packed size");
    let at_once = (READ_BYTES / (TILE * source.row_bytes())).max(1);
    let per_task = some.len().div_ceil(ctx.pool().threads() * 4).max(1);
    let failed = Mutex::new(None);
    ctx.pool().chunks_mut(to, per_task * layout.tile, |task, to| {
        let mut scratch = SCRATCH.take();
        for (i, to) in to.chunks_mut(at_once * layout.tile).enumerate() {
            let start = (some.start + task * per_task + i * at_once) * TILE;
            let end = rows.min(start + to.len() / layout.tile * TILE);
            if let Err(error) = tiles(ctx, source, start..end, to, &mut scratch) {
                worse(&mut lock(&failed), error);
                break;
            }
        }
        SCRATCH.set(scratch);
    });
    let failed = lock(&failed).take();
    failed.map_or(Ok(()), Err)
}

/// Packs the rows of a few tiles.
fn tiles(
    ctx: &Cpu,
    source: &Source<'_>,
    rows: Range<usize>,
    to: &mut [u8],
    scratch: &mut Scratch,
) -> Result<(), TileError> {
    let layout = source.layout();
    let Scratch { stored, bytes, requantizer } = scratch;
    let all = source.view(rows.clone(), stored).map_err(TileError::Read)?;
    for (i, to) in to.chunks_exact_mut(layout.tile).enumerate() {
        let stored = all.view(i * TILE..all.rows.min((i + 1) * TILE));
        let Some(format) = source.requant() else {
            tile(ctx, &stored, &layout, to, bytes);
            continue;
        };
        let view = requantizer.rows(&stored, format, layout.cols);
        let wrong = |row| TileError::NotFinite { row: rows.start + i * TILE + row, format };
        tile(ctx, &view.map_err(wrong)?, &layout, to, bytes);
    }
    Ok(())
}

/// Keeps the error that [`pack`] returns.
fn worse(kept: &mut Option<TileError>, error: TileError) {
    let row = |error: &TileError| match error {
        TileError::NotFinite { row, .. } => Some(*row),
        TileError::Read(_) => None,
    };
    if kept.as_ref().is_none_or(|kept| row(&error) < row(kept)) {
        *kept = Some(error);
    }
}

/// Packs up to 16 rows.
fn tile(ctx: &Cpu, view: &StoredRows<'_>, layout: &Layout, to: &mut [u8], bytes: &mut Vec<u8>) {
    let (values, scales) = to.split_at_mut(layout.values);
    match layout.kind {
        Scales::None if layout.dtype.block_bytes() == 2 => floats::<2>(view, values),
        Scales::None => floats::<4>(view, values),
        _ => {
            bytes.clear();
            bytes.resize(layout.cols * TILE, 0);
            (ctx.kernels().unpack_tile)(view, bytes);
            clear_absent(view.rows, bytes);
            join(layout.lines, bytes, values);
            with_format!(layout.dtype, copy_scales(view, scales));
        }
    }
}

/// Sets the bytes `[k/4][16][4]` of absent rows to 0. Scales of 0 do not hide what is there in formats whose scales are never 0.
fn clear_absent(rows: usize, bytes: &mut [u8]) {
    if rows < TILE {
        bytes.chunks_exact_mut(LINE).for_each(|line| line[4 * rows..].fill(0));
    }
}

/// `[k][16]` values of `BYTES` bytes.
fn floats<const BYTES: usize>(view: &StoredRows<'_>, to: &mut [u8]) {
    /// Columns per block: their part of the tile stays in the first-level cache.
    const COLUMNS: usize = 64;
    for (block, to) in to.chunks_mut(COLUMNS * TILE * BYTES).enumerate() {
        for r in 0..view.rows {
            let from = &view.bytes[r * view.row_bytes + block * COLUMNS * BYTES..];
            let lines = to.as_chunks_mut::<BYTES>().0.iter_mut().skip(r).step_by(TILE);
            for (to, from) in lines.zip(from.as_chunks::<BYTES>().0) {
                *to = *from;
            }
        }
    }
}

/// Packs byte values `[k/4][16][4]` into the lines that [`Layout::lines`] describes.
fn join(lines: usize, bytes: &[u8], to: &mut [u8]) {
    let groups = bytes.as_chunks::<{ GROUP * TILE }>().0.iter();
    for (from, to) in groups.zip(to.chunks_exact_mut(lines * LINE)) {
        let (from, to) = (from.as_chunks::<LINE>().0, to.as_chunks_mut::<LINE>().0);
        if lines == 8 {
            to.copy_from_slice(from);
            continue;
        }
        if lines < 4 {
            few_bits(from, to);
            continue;
        }
        let (nibbles, high) = to.split_at_mut(4);
        for (j, to) in nibbles.iter_mut().enumerate() {
            for i in 0..LINE {
                to[i] = from[j][i] & 15 | from[j + 4][i] << 4;
            }
        }
        match high {
            [fifth] => {
                for (j, from) in from.iter().enumerate() {
                    for i in 0..LINE {
                        fifth[i] |= (from[i] >> 4 & 1) << j;
                    }
                }
            }
            _ => {
                for (high, from) in high.iter_mut().zip(from.as_chunks::<4>().0) {
                    for (j, from) in from.iter().enumerate() {
                        for i in 0..LINE {
                            high[i] |= (from[i] >> 4 & 3) << (2 * j);
                        }
                    }
                }
            }
        }
    }
}

/// Packs the integers of a group, of 2 or 3 bits.
fn few_bits(from: &[[u8; LINE]], to: &mut [[u8; LINE]]) {
    for (j, from) in from.iter().enumerate() {
        let last = j / 4;
        for (i, q) in from.iter().enumerate() {
            match (to.len(), j % 4) {
                (2, part) => to[part / 2][i] |= (q & 3) << (4 * last + 2 * (part % 2)),
                (_, 3) => {
                    to[2 * last][i] |= q << 6;
                    to[1][i] |= (q >> 2 & 1) << (6 + last);
                }
                (_, part) => to[part][i] |= (q & 7) << (3 * last),
            }
        }
    }
}

/// Puts the scales of rows where [`scale_bytes`] says.
fn copy_scales<F: Quantised>(view: &StoredRows<'_>, to: &mut [u8]) {
    for r in 0..view.rows {
        let row = &view.bytes[r * view.row_bytes..][..view.row_bytes];
        // A block may have several groups with one scale.
        let records = const { F::LEN / (32 * F::SCALES.groups()) };
        let parts = to.chunks_exact_mut(records * scale_bytes(F::SCALES));
        for (stored, to) in row.chunks_exact(F::BYTES).zip(parts) {
            let stored = F::scales(stored);
            let mut two = |at: usize, value: u16| {
                to[at + 2 * r..][..2].copy_from_slice(&value.to_le_bytes());
            };
            match F::SCALES {
                Scales::None => {}
                Scales::Plain => (0..records).for_each(|i| two(2 * TILE * i, stored.scale)),
                Scales::Minimum => {
                    two(0, stored.scale);
                    two(2 * TILE, stored.minimum);
                }
                Scales::Super => {
                    two(0, stored.scale);
                    two(2 * TILE, stored.minimum);
                    for g in 0..8 {
                        to[(4 + g) * TILE + r] = stored.factors[g];
                        to[(12 + g) * TILE + r] = stored.minimums[g];
                    }
                }
                Scales::SuperHalves => {
                    two(0, stored.scale);
                    two(2 * TILE, stored.minimum);
                    for (h, factor) in stored.factors.iter().enumerate() {
                        to[(4 + h) * TILE + r] = factor | stored.minimums[h] << 4;
                    }
                }
                Scales::Halves => {
                    two(16 * TILE, stored.scale);
                    for (g, factor) in stored.factors.iter().enumerate() {
                        to[g * TILE + r] = *factor;
                    }
                }
                Scales::Signed => {
                    two(8 * TILE, stored.scale);
                    for (g, factor) in stored.factors[..8].iter().enumerate() {
                        to[g * TILE + r] = *factor;
                    }
                }
                Scales::Power => to[r] = stored.scale as u8,
                Scales::Minifloats => {
                    for (h, scale) in stored.factors[..2 * records].iter().enumerate() {
                        to[h * TILE + r] = *scale;
                    }
                }
            }
        }
    }
}

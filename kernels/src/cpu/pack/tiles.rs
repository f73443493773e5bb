//! Packs stored rows into tiles.

use super::source::{Requantizer, Source};
use crate::cpu::context::Cpu;
use crate::cpu::loops::unpack;
use crate::cpu::matrix::StoredRows;
use crate::cpu::packed::layout::{GROUP, LINE, Layout, Scales, TILE};
use crate::requant::Requant;
use crate::sync::{AtomicUsize, Ordering};
use std::cell::RefCell;
use std::ops::Range;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Buffers of a thread for one tile.
#[derive(Default)]
struct Scratch {
    /// Unpacked values, one byte each.
    bytes: Vec<u8>,
    requantizer: Requantizer,
}

/// A row that cannot be represented in the requested format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotFinite {
    pub(super) row: usize,
    pub(super) format: Requant,
}

/// Packs a range of rows of a matrix, the first of which starts a tile, in parallel into `to`,
/// which must be zeroed and have `layout.bytes(rows.len())` bytes. After an error, the contents of
/// `to` are meaningless.
///
/// # Panics
/// When `to` has another size.
pub(super) fn pack(
    ctx: &Cpu,
    (source, rows): (&Source<'_>, Range<usize>),
    layout: &Layout,
    to: &mut [u8],
) -> Result<(), NotFinite> {
    assert_eq!(to.len(), layout.bytes(rows.len()), "not the packed size");
    let tiles = rows.len().div_ceil(TILE);
    let per_task = tiles.div_ceil(ctx.pool().threads() * 4).max(1);
    let wrong = AtomicUsize::new(usize::MAX);
    ctx.pool().chunks_mut(to, per_task * layout.tile, |task, to| {
        let mut scratch = SCRATCH.take();
        let Scratch { bytes, requantizer } = &mut scratch;
        for (i, to) in to.chunks_exact_mut(layout.tile).enumerate() {
            let start = rows.start + (task * per_task + i) * TILE;
            let stored = source.matrix.view(start..rows.end.min(start + TILE));
            let Some(format) = source.requant else {
                tile(ctx, (&stored, layout), to, bytes);
                continue;
            };
            match requantizer.rows(&stored, (format, layout.cols)) {
                Ok(view) => tile(ctx, (&view, layout), to, bytes),
                Err(row) => {
                    wrong.fetch_min(start + row, Ordering::Relaxed);
                }
            }
        }
        SCRATCH.set(scratch);
    });
    match (source.requant, wrong.load(Ordering::Relaxed)) {
        (Some(format), row) if row != usize::MAX => Err(NotFinite { row, format }),
        _ => Ok(()),
    }
}

/// Packs up to 16 rows.
fn tile(ctx: &Cpu, (view, layout): (&StoredRows<'_>, &Layout), to: &mut [u8], bytes: &mut Vec<u8>) {
    let (values, scales) = to.split_at_mut(layout.values);
    match layout.kind {
        Scales::None if layout.dtype.block_bytes() == 2 => floats::<2>(view, values),
        Scales::None => floats::<4>(view, values),
        _ => {
            bytes.clear();
            bytes.resize(layout.cols * TILE, 0);
            (ctx.kernels().unpack_tile)(view, bytes);
            join(layout.lines, bytes, values);
            copy_scales(view, layout, scales);
        }
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

fn copy_scales(view: &StoredRows<'_>, layout: &Layout, to: &mut [u8]) {
    let bytes = layout.dtype.block_bytes();
    let used = view.row_bytes;
    for r in 0..view.rows {
        let row = &view.bytes[r * view.row_bytes..][..used];
        let parts = to.chunks_exact_mut(layout.kind.bytes());
        for (stored, to) in row.chunks_exact(bytes).zip(parts) {
            let mut two = |at: usize, from: usize| {
                to[at + 2 * r] = stored[from];
                to[at + 2 * r + 1] = stored[from + 1];
            };
            match layout.kind {
                Scales::None => {}
                Scales::Plain => two(0, 0),
                Scales::Minimum => {
                    two(0, 0);
                    two(2 * TILE, 2);
                }
                Scales::Super => {
                    two(0, 0);
                    two(2 * TILE, 2);
                    let (scales, minimums) = unpack::k_scales(&stored[4..16]);
                    for g in 0..8 {
                        to[(4 + g) * TILE + r] = scales[g];
                        to[(12 + g) * TILE + r] = minimums[g];
                    }
                }
                Scales::Halves => {
                    two(16 * TILE, 208);
                    for (g, scale) in stored[192..208].iter().enumerate() {
                        to[g * TILE + r] = *scale;
                    }
                }
            }
        }
    }
}

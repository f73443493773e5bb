//! A task: some rows × some output channels, and the epilogue.

use super::blocking::panel_of;
use super::op::{Epilogue, GemmInput, Matmul, Product};
use crate::context::Cpu;
use crate::isa::kernels::Kernels;
use crate::loops::gemm_args::{GemmF32, GemmQ8, GemmScratch};
use crate::loops::prefetch_stream::{NextRead, NextTiles};
use crate::loops::quantize::{Q8Block, QuantScheme};
use crate::packed::PackedMatrix;
use crate::packed::layout::{GROUP, TILE};
use crate::packed::tile::FloatTiles;
use crate::pool::ColumnBlock;
use crate::quantize::Q8Rows;
use lapwing_model::aligned::Aligned;
use lapwing_model::formats::DType;
use std::ops::Range;

/// Values that are gated and then quantised at once: they stay in the first-level cache.
const QUANTIZE_VALUES: usize = 1024;

/// Fewest rows for which 16-bit weights are converted once instead of as they are read, where
/// conversions compete with multiplications. With fewer rows it costs at least what it saves.
const WIDENED_ROWS: usize = 72;

/// Buffers of a thread.
#[derive(Default)]
pub(super) struct Scratch {
    kernel: GemmScratch,
    out: Vec<f32>,
    up: Vec<f32>,
    done: Vec<f32>,
}

/// Rows of a task, and what its thread will most likely do next.
pub(super) struct Task<'a> {
    pub(super) rows: Range<usize>,
    /// The thread continues with the same rows up to this channel, which is not before the task's
    /// last.
    pub(super) until: usize,
    /// Data that it reads after that.
    pub(super) next: Option<&'a [u8]>,
}

/// A block of an output that is quantised on the fly.
pub(super) struct QuantizedBlock<'a> {
    pub(super) scheme: QuantScheme,
    pub(super) block: ColumnBlock<'a, Q8Block>,
}

/// Position of a task's channels in its rows of whole tiles.
#[derive(Clone)]
struct TaskRows {
    /// Values from one row to the next.
    stride: usize,
    /// The task's channels in the first row.
    first: Range<usize>,
}

impl TaskRows {
    fn row(&self, row: usize) -> Range<usize> {
        row * self.stride + self.first.start..row * self.stride + self.first.end
    }
}

/// A piece of a product.
struct Piece<'a> {
    rows: Range<usize>,
    /// Its output channels.
    at: Range<usize>,
    /// What its thread will most likely read after the channels' weights.
    read: NextRead<'a>,
}

impl Matmul<'_> {
    /// Computes a block of the output.
    pub(super) fn write(
        &self,
        ctx: &Cpu,
        task: Task<'_>,
        mut block: ColumnBlock<'_, f32>,
        scratch: &mut Scratch,
    ) {
        let at = block.start()..block.start() + block.width();
        let [out_rows, up_rows] = self.multiply(ctx, &task, at.clone(), scratch);
        let (rows, kernels) = (task.rows, ctx.kernels());
        let Scratch { out, up, .. } = scratch;
        for row in 0..rows.len() {
            let (line, to) = (&mut out[out_rows.row(row)], block.row_mut(row));
            match &self.epilogue {
                Epilogue::Store => to.copy_from_slice(line),
                Epilogue::AccumulateInto => (kernels.axpby)(to, line, 1.0, 1.0),
                Epilogue::AddResidual(residual) => {
                    let row = &residual[(rows.start + row) * self.weight.len()..];
                    (kernels.add)(line, &row[at.clone()], to);
                }
                Epilogue::Gated { gating, .. } => {
                    (kernels.gated)(*gating, line, &up[up_rows.row(row)], to);
                }
                Epilogue::Curve(curve) => (kernels.curve)(*curve, line, to),
            }
        }
    }

    /// Computes a block of the output and quantises it, as [`Kernels::quantize`] does whole rows.
    /// The block's channels are whole tiles.
    pub(super) fn write_quantized(
        &self,
        ctx: &Cpu,
        task: Task<'_>,
        QuantizedBlock { scheme, mut block }: QuantizedBlock<'_>,
        scratch: &mut Scratch,
    ) {
        let at = block.start() * GROUP..(block.start() + block.width()) * GROUP;
        let width = at.len();
        for TaskRows { stride, first } in self.multiply(ctx, &task, at.clone(), scratch) {
            assert!(first == (0..stride), "channels {at:?} are not whole tiles");
        }
        let (rows, kernels) = (task.rows, ctx.kernels());
        let Scratch { out, up, done, .. } = scratch;
        let step = (QUANTIZE_VALUES / width).max(1);
        done.resize(step * width, 0.0);
        for first in (0..rows.len()).step_by(step) {
            let some = first..rows.len().min(first + step);
            let values = &out[some.start * width..some.end * width];
            let done = &mut done[..values.len()];
            match &self.epilogue {
                Epilogue::AccumulateInto => unreachable!("blocks cannot be added to"),
                Epilogue::Store => done.copy_from_slice(values),
                Epilogue::AddResidual(residual) => {
                    let lines = values.chunks_exact(width).zip(done.chunks_exact_mut(width));
                    for (row, (line, done)) in some.clone().zip(lines) {
                        let row = &residual[(rows.start + row) * self.weight.len()..];
                        (kernels.add)(line, &row[at.clone()], done);
                    }
                }
                Epilogue::Gated { gating, .. } => {
                    let up = &up[some.start * width..some.end * width];
                    (kernels.gated)(*gating, values, up, done);
                }
                Epilogue::Curve(curve) => (kernels.curve)(*curve, values, done),
            }
            for (row, done) in some.zip(done.chunks_exact(width)) {
                (kernels.quantize)(done, scheme, block.row_mut(row));
            }
        }
    }

    /// Multiplies into `scratch.out`, and a gated epilogue's other product into `scratch.up`; `at` are
    /// output channels of the matmul. Returns where they are in both.
    fn multiply(
        &self,
        ctx: &Cpu,
        task: &Task<'_>,
        at: Range<usize>,
        scratch: &mut Scratch,
    ) -> [TaskRows; 2] {
        let Scratch { kernel, out, up, .. } = scratch;
        let start = self.weight.range().start;
        let Task { ref rows, until, next } = *task;
        let rest = (start + until).div_ceil(TILE) - (start + at.end).div_ceil(TILE);
        let piece = |rest, next| Piece {
            rows: rows.clone(),
            at: at.clone(),
            read: NextRead { rest, next },
        };
        let product = self.product();
        let Epilogue::Gated { up: other, .. } = &self.epilogue else {
            let rows = product.multiply(ctx, &piece(rest, next), kernel, out);
            return [rows.clone(), rows];
        };
        let of_up = Some(other.weight.bytes_from(at.start));
        let of_next = if rest > 0 { Some(self.weight.bytes_from(at.end)) } else { next };
        [
            product.multiply(ctx, &piece(0, of_up), kernel, out),
            other.multiply(ctx, &piece(0, of_next), kernel, up),
        ]
    }
}

impl Product<'_> {
    /// Computes a piece as whole tiles; returns where it is in `out`.
    fn multiply(
        &self,
        ctx: &Cpu,
        piece: &Piece<'_>,
        scratch: &mut GemmScratch,
        out: &mut Vec<f32>,
    ) -> TaskRows {
        let Piece { rows, at, read } = piece;
        let start = self.weight.range().start;
        let channels = start + at.start..start + at.end;
        let tiles = channels.start / TILE..channels.end.div_ceil(TILE);
        let lead = channels.start % TILE;
        let task_rows = TaskRows { stride: tiles.len() * TILE, first: lead..lead + at.len() };
        let weight = self.weight.packed();
        Tiles { ctx, x: self.x, rows: rows.clone(), tiles }.multiply(weight, *read, scratch, out);
        if let GemmInput::Q8(x) = self.x
            && x.has_shifts()
        {
            let sums = &weight.channel_sums()[channels];
            for (row, source) in rows.clone().enumerate() {
                let (line, shift) = (&mut out[task_rows.row(row)], x.shift(source));
                line.iter_mut().zip(sums).for_each(|(to, sum)| *to += shift * sum);
            }
        }
        if let Some(factor) = self.weight.factor() {
            (0..rows.len())
                .for_each(|row| (ctx.kernels().scale)(&mut out[task_rows.row(row)], factor));
        }
        let Some(bias) = self.bias else { return task_rows };
        for row in 0..rows.len() {
            let line = &mut out[task_rows.row(row)];
            line.iter_mut().zip(&bias[at.clone()]).for_each(|(to, bias)| *to += bias);
        }
        task_rows
    }
}

/// Dequantises tiles to f32.
fn dequantized<'a>(
    kernels: &Kernels,
    weight: &PackedMatrix,
    tiles: Range<usize>,
    to: &'a mut Aligned<u8>,
) -> FloatTiles<'a> {
    let (cols, count) = (weight.cols(), tiles.len());
    let stride = cols * TILE * DType::F32.block_bytes();
    to.room(count * stride);
    for (tile, to) in tiles.zip(to.chunks_exact_mut(stride)) {
        (kernels.dequantize_tile)(&weight.tile(tile), to);
    }
    FloatTiles { dtype: DType::F32, cols, count, stride, bytes: &to[..count * stride] }
}

/// Some rows × some tiles.
struct Tiles<'a> {
    ctx: &'a Cpu,
    x: GemmInput<'a>,
    rows: Range<usize>,
    tiles: Range<usize>,
}

impl Tiles<'_> {
    /// Writes `[rows][16 per tile]` to the start of `out`; the thread will most likely read `read`
    /// after these tiles.
    fn multiply(
        &self,
        weight: &PackedMatrix,
        read: NextRead<'_>,
        scratch: &mut GemmScratch,
        out: &mut Vec<f32>,
    ) {
        let (rows, tiles) = (self.rows.len(), self.tiles.clone());
        let len = rows * tiles.len() * TILE;
        if out.len() < len {
            out.resize(len, 0.0);
        }
        let out = &mut out[..len];
        let kernels = self.ctx.kernels();
        let caches = self.ctx.caches();
        let next_tiles = NextTiles::new(&caches, read);
        match self.x {
            GemmInput::Q8(Q8Rows { blocks, groups, .. }) => {
                let x = &blocks[self.rows.start * groups..self.rows.end * groups];
                let panel = panel_of(self.ctx.panel_groups(), groups);
                let job = GemmQ8 { weight, tiles, x, rows, panel, next_tiles };
                (kernels.gemm_q8)(&job, out, scratch);
            }
            GemmInput::F32(x) => {
                let (k, stride, dtype) = (weight.cols(), tiles.len() * TILE, weight.dtype());
                let x = &x[self.rows.start * k..self.rows.end * k];
                let many = rows >= WIDENED_ROWS;
                let is_float = QuantScheme::of_format(dtype).is_none();
                if is_float && (dtype == DType::F32 || !many) {
                    let tiles = weight.float_tiles(tiles);
                    let job = GemmF32 { tiles, x, rows, stride, next_tiles };
                    return (kernels.gemm_f32)(&job, out);
                }
                // No stored weights follow the dequantised ones in memory.
                let rest = (read.rest > 0).then(|| weight.tile(tiles.end).values);
                let next_tiles =
                    NextTiles::new(&caches, NextRead { rest: 0, next: rest.or(read.next) });
                // Many rows read few tiles repeatedly, which stay in the cache.
                let at_once = if many { kernels.shape.float_tiles } else { tiles.len().max(1) };
                for first in tiles.clone().step_by(at_once) {
                    let some = first..tiles.end.min(first + at_once);
                    let out = &mut out[(first - tiles.start) * TILE..];
                    let tiles = dequantized(kernels, weight, some, &mut scratch.widened);
                    let job = GemmF32 { tiles, x, rows, stride, next_tiles };
                    (kernels.gemm_f32)(&job, out);
                }
            }
        }
    }
}

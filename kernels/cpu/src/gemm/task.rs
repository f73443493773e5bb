//! A task: some rows × some output channels, and the epilogue.

use super::blocking::panel_of;
use super::op::{Epilogue, GemmInput, Matmul};
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
        let task_rows = self.multiply(ctx, &task, at.clone(), scratch);
        let rows = task.rows;
        let Scratch { out, up, .. } = scratch;
        for row in 0..rows.len() {
            let (line, to) = (&mut out[task_rows.row(row)], block.row_mut(row));
            match &self.epilogue {
                Epilogue::Store => to.copy_from_slice(line),
                Epilogue::AccumulateInto => (ctx.kernels().axpby)(to, line, 1.0, 1.0),
                Epilogue::AddResidual(residual) => {
                    let row = &residual[(rows.start + row) * self.weight.len()..];
                    (ctx.kernels().add)(line, &row[at.clone()], to);
                }
                Epilogue::GatedActivation { activation, .. } => {
                    (ctx.kernels().gated)(*activation, line, &up[task_rows.row(row)], to);
                }
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
        let task_rows = self.multiply(ctx, &task, at.clone(), scratch);
        let rows = task.rows;
        assert!(task_rows.first == (0..task_rows.stride), "channels {at:?} are not whole tiles");
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
                        (ctx.kernels().add)(line, &row[at.clone()], done);
                    }
                }
                Epilogue::GatedActivation { activation, .. } => {
                    let up = &up[some.start * width..some.end * width];
                    (ctx.kernels().gated)(*activation, values, up, done);
                }
            }
            for (row, done) in some.zip(done.chunks_exact(width)) {
                (ctx.kernels().quantize)(done, scheme, block.row_mut(row));
            }
        }
    }

    /// Multiplies into `scratch.out`, with the bias, and a gated epilogue's other matmul into
    /// `scratch.up`; `at` are output channels of the matmul.
    fn multiply(
        &self,
        ctx: &Cpu,
        task: &Task<'_>,
        at: Range<usize>,
        scratch: &mut Scratch,
    ) -> TaskRows {
        let Scratch { kernel, out, up, .. } = scratch;
        let start = self.weight.range().start;
        let channels = start + at.start..start + at.end;
        let tiles = channels.start / TILE..channels.end.div_ceil(TILE);
        let lead = channels.start % TILE;
        let task_rows = TaskRows { stride: tiles.len() * TILE, first: lead..lead + at.len() };
        let Task { ref rows, until, next } = *task;
        let count = rows.len();
        let rest = (start + until).div_ceil(TILE) - tiles.end;
        let job = Tiles { ctx, x: self.x, rows: rows.clone(), tiles };
        let mut matmul = |(weight, read), bias: Option<&[f32]>, out: &mut Vec<f32>| {
            job.multiply(weight, read, kernel, out);
            if let GemmInput::Q8(x) = self.x
                && x.has_shifts()
            {
                let sums = &weight.channel_sums()[channels.clone()];
                for row in 0..count {
                    let (line, shift) = (&mut out[task_rows.row(row)], x.shift(rows.start + row));
                    line.iter_mut().zip(sums).for_each(|(to, sum)| *to += shift * sum);
                }
            }
            let Some(bias) = bias else { return };
            for row in 0..count {
                let line = &mut out[task_rows.row(row)];
                line.iter_mut().zip(&bias[at.clone()]).for_each(|(to, bias)| *to += bias);
            }
        };
        let Epilogue::GatedActivation { up: weight, bias, .. } = &self.epilogue else {
            matmul((self.weight.packed(), NextRead { rest, next }), self.bias, out);
            return task_rows;
        };
        let of_up = Some(weight.bytes_from(at.start));
        let of_next = if rest > 0 { Some(self.weight.bytes_from(at.end)) } else { next };
        matmul((self.weight.packed(), NextRead { rest: 0, next: of_up }), self.bias, out);
        matmul((weight.packed(), NextRead { rest: 0, next: of_next }), *bias, up);
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

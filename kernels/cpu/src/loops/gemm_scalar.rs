//! Matmuls of packed tiles in plain Rust, for machines without a faster instruction set.

use crate::loops::gemm_args::{GemmF32, GemmQ8, GemmScratch};
use crate::loops::quantize::Q8Block;
use crate::packed::group::Group;
use crate::packed::layout::TILE;
use lapwing_model::formats::{DType, Float, bfloat16, float16, float32};

/// One row's input to the sums of a group.
struct Step<'a> {
    x: &'a Q8Block,
    /// Scale of the activations; 1 for blocks of 256, whose scale is multiplied last.
    d: f32,
    /// Initial value of the integer sums; 0 for formats with minimums.
    start: [i32; 2],
    /// Factors of the minimums; `None` for formats without them.
    sums: Option<[f32; 2]>,
    halves: bool,
}

/// Multiplies quantised tiles, in the same order of sums for any number of rows: per group, `sum +=
/// scale·d·(start + Σ q·x)`, then `sum += min·s`. Super-blocks are summed separately and then
/// multiplied with their d. Every group is unpacked once for all rows.
pub(crate) fn gemm_q8(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
    job.check(out);
    let layout = job.weight.layout();
    let (groups, kind) = (layout.groups(), layout.kind);
    let stride = job.tiles.len();
    let is_super = kind.groups() == 8;
    let mut group = Group::new();
    out.fill(0.0);
    scratch.partial.clear();
    scratch.partial.resize(job.rows, [0.0; TILE]);
    let lines = out.as_chunks_mut::<TILE>().0;
    for (t, tile) in job.tiles.clone().enumerate() {
        let tile = job.weight.tile(tile);
        for g in 0..groups {
            group.read(&tile, g);
            let rows = job.x.chunks_exact(groups).zip(&mut scratch.partial);
            for ((x, partial), sum) in rows.zip(lines.iter_mut().skip(t).step_by(stride)) {
                let mut step = Step {
                    x: &x[g],
                    d: x[g].d,
                    start: match (kind.has_minimum(), kind.has_halves()) {
                        (true, _) => [0; 2],
                        (false, true) => x[g].start,
                        (false, false) => [x[g].start[0] + x[g].start[1], 0],
                    },
                    sums: kind.has_minimum().then(|| match kind.has_halves() {
                        true => [0, 1].map(|half| x[g].half_sum(half)),
                        false => [x[g].s, 0.0],
                    }),
                    halves: kind.has_halves(),
                };
                if !is_super {
                    add(&group, &step, sum);
                    continue;
                }
                step.d = 1.0;
                add(&group, &step, partial);
                if g % 8 == 7 {
                    for lane in 0..TILE {
                        sum[lane] += partial[lane] * x[g].d;
                    }
                    *partial = [0.0; TILE];
                }
            }
        }
    }
}

/// Adds one group to 16 sums.
fn add(group: &Group, step: &Step<'_>, sum: &mut [f32; TILE]) {
    let quads = step.x.q.as_chunks::<4>().0;
    let parts = if step.halves { 2 } else { 1 };
    let len = 8 / parts;
    for part in 0..parts {
        let mut dot = [step.start[part]; TILE];
        for (line, four) in group.q.iter().zip(quads).skip(part * len).take(len) {
            for (dot, q) in dot.iter_mut().zip(line.as_chunks::<4>().0) {
                for (q, x) in q.iter().zip(four) {
                    *dot += i32::from(*q) * i32::from(*x);
                }
            }
        }
        for ((sum, dot), scale) in sum.iter_mut().zip(dot).zip(&group.scale[part]) {
            *sum += dot as f32 * (scale * step.d);
        }
        if let Some(sums) = step.sums {
            for (sum, min) in sum.iter_mut().zip(&group.min[part]) {
                *sum += min * sums[part];
            }
        }
    }
}

/// Multiplies float tiles; every sum runs over the columns in order.
pub(crate) fn gemm_f32(job: &GemmF32<'_>, out: &mut [f32]) {
    job.check(out);
    match job.tiles.dtype {
        DType::F32 => values(job, out, float32::F32::value),
        DType::F16 => values(job, out, float16::F16::value),
        DType::Bf16 => values(job, out, bfloat16::Bf16::value),
        dtype => unreachable!("{dtype} is no format of floats"),
    }
}

fn values<const BYTES: usize>(
    job: &GemmF32<'_>,
    out: &mut [f32],
    decode: impl Fn([u8; BYTES]) -> f32,
) {
    /// Columns per block: their f32 values stay in the first-level cache for all rows.
    const COLUMNS: usize = 128;
    let (k, stride) = (job.tiles.cols, job.stride / TILE);
    let mut block = [[0.0; TILE]; COLUMNS];
    let lines = out.as_chunks_mut::<TILE>().0;
    for t in 0..job.tiles.count {
        let stored = job.tiles.tile(t).as_chunks::<BYTES>().0;
        for (b, stored) in stored.chunks(COLUMNS * TILE).enumerate() {
            for (to, from) in block.as_flattened_mut().iter_mut().zip(stored) {
                *to = decode(*from);
            }
            let block = &block[..stored.len() / TILE];
            let rows = job.x.chunks_exact(k).zip(lines.iter_mut().skip(t).step_by(stride));
            for (x, sum) in rows {
                let mut acc = if b == 0 { [0.0; TILE] } else { *sum };
                for (x, line) in x[b * COLUMNS..].iter().zip(block) {
                    for lane in 0..TILE {
                        acc[lane] += x * line[lane];
                    }
                }
                *sum = acc;
            }
        }
    }
}

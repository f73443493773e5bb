//! The tile: 16 weight rows side by side, so that one vector holds one value of each row and no
//! sum runs across a vector; and its product in plain Rust.

use crate::aligned::Aligned;
use crate::cpu::packed::{Group, Packed, Scales};
use crate::cpu::prefetch_stream::{NextTiles, PrefetchStream};
use crate::cpu::quantize::QuantScheme;
use crate::quant::DType;
use std::ops::Range;

/// Weight rows per tile.
pub(crate) const TILE: usize = 16;

/// Up to [`TILE`] whole rows of a weight matrix, as stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredRows<'a> {
    pub(crate) dtype: DType,
    /// Starts at the first of the rows.
    pub(crate) bytes: &'a [u8],
    pub(crate) row_bytes: usize,
    /// At most [`TILE`].
    pub(crate) rows: usize,
}

/// 32 quantised activations of a row: `value = d · q`, each q within ±127.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Q8Block {
    pub(crate) q: [i8; 32],
    pub(crate) d: f32,
    /// Factor of the weights' minimums: the sum of the values; with blocks of 256 the sum of the
    /// integers, since their scale is multiplied last.
    pub(crate) s: f32,
    /// What the integer sums start with: −offset · Σq for weights that are stored above their
    /// values, over the whole block, or with blocks of 256 over each half.
    pub(crate) start: [i32; 2],
}

/// Rows of quantised activations times some tiles.
#[derive(Clone, Debug)]
pub(crate) struct GemmQ8<'a> {
    pub(crate) weight: &'a Packed,
    pub(crate) tiles: Range<usize>,
    /// `[rows][k/32]`.
    pub(crate) x: &'a [Q8Block],
    pub(crate) rows: usize,
    /// Groups that are unpacked at once for many rows: a multiple of 8, or all.
    pub(crate) panel: usize,
    /// What will most likely be read after these tiles.
    pub(crate) next_tiles: NextTiles<'a>,
}

/// Tiles of float values, one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatTiles<'a> {
    /// A float format.
    pub(crate) dtype: DType,
    /// k.
    pub(crate) cols: usize,
    /// Number of tiles.
    pub(crate) count: usize,
    /// From a tile to the next, in bytes.
    pub(crate) stride: usize,
    /// Each begins with `[k][16]` values.
    pub(crate) bytes: &'a [u8],
}

impl<'a> FloatTiles<'a> {
    /// The `[k][16]` values of a tile.
    ///
    /// # Panics
    /// When there is no such tile.
    pub(crate) fn tile(&self, index: usize) -> &'a [u8] {
        &self.bytes[index * self.stride..][..self.cols * TILE * self.dtype.block_bytes()]
    }
}

/// Rows of f32 activations times tiles of floats.
#[derive(Clone, Debug)]
pub(crate) struct GemmF32<'a> {
    pub(crate) tiles: FloatTiles<'a>,
    /// `[rows][k]`.
    pub(crate) x: &'a [f32],
    pub(crate) rows: usize,
    /// Values from one row of the result to the next: a multiple of 16, at least 16 per tile.
    pub(crate) stride: usize,
    /// As in [`GemmQ8`].
    pub(crate) next_tiles: NextTiles<'a>,
}

impl GemmQ8<'_> {
    /// What to ask for while the tiles are read, of which there is one at least, in steps of so many
    /// bytes.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "plain Rust asks for nothing")
    )]
    pub(crate) fn prefetch_stream(&self, step: usize) -> PrefetchStream {
        let last = self.weight.tile(self.tiles.end + self.next_tiles.rest - 1);
        PrefetchStream::new(last.scales.as_ptr_range().end, &self.next_tiles, step)
    }

    /// Checks everything that a kernel's pointer arithmetic relies on: `x` has `rows` rows of
    /// k/32 blocks, and `out` `[rows][16 per tile]` values. That the tiles exist is checked where
    /// they are taken.
    ///
    /// # Panics
    /// When they do not fit each other.
    pub(crate) fn check(&self, out: &[f32]) {
        assert!(self.weight.layout().kind != Scales::None, "float weights");
        assert_eq!(self.x.len(), self.rows * self.weight.layout().groups(), "activations");
        assert_eq!(out.len(), self.rows * self.tiles.len() * TILE, "out");
        let is_whole = self.panel >= self.weight.layout().groups();
        assert!(self.panel > 0, "an empty panel");
        assert!(is_whole || self.panel.is_multiple_of(8), "a panel of {}", self.panel);
    }
}

impl GemmF32<'_> {
    /// As [`GemmQ8::prefetch_stream`].
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "plain Rust asks for nothing")
    )]
    pub(crate) fn prefetch_stream(&self, step: usize) -> PrefetchStream {
        let rest = self.next_tiles.rest * self.tiles.stride;
        PrefetchStream::new(
            self.tiles.bytes.as_ptr_range().end.wrapping_add(rest),
            &self.next_tiles,
            step,
        )
    }

    /// As [`GemmQ8::check`]; `x` has `rows` rows of k values, and those of `out` are `stride` apart.
    ///
    /// # Panics
    /// When they do not fit each other.
    pub(crate) fn check(&self, out: &[f32]) {
        assert!(QuantScheme::of_format(self.tiles.dtype).is_none(), "quantised weights");
        assert_eq!(self.x.len(), self.rows * self.tiles.cols, "activations");
        let (stride, width) = (self.stride, self.tiles.count * TILE);
        assert!(stride >= width && stride.is_multiple_of(TILE), "rows {stride} values apart");
        let len = self.rows.checked_sub(1).map_or(0, |before| before * stride + width);
        assert!(out.len() >= len, "out");
    }
}

/// Tiles unpacked for many rows, and sums of a super-block; kept between calls.
#[derive(Debug, Default)]
pub(crate) struct GemmScratch {
    /// Groups of two tiles.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "AVX-512 unpacks here"))]
    pub(crate) pairs: Vec<TilePairGroup>,
    /// Groups of one tile.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "vectors of 256 or 128 bits unpack here")
    )]
    pub(crate) groups: Vec<Group>,
    partial: Vec<[f32; TILE]>,
    /// Tiles widened to f32.
    pub(crate) widened: Aligned<u8>,
}

/// One group of two tiles, unpacked.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct TilePairGroup {
    /// `[8 quads][2 tiles][16 features][4 columns]`.
    pub(crate) q: [[[u8; 64]; 2]; 8],
    /// Of each tile.
    pub(crate) scale: [[f32; TILE]; 2],
    /// The minimums of each tile, or the scales of the second half group.
    pub(crate) second: [[f32; TILE]; 2],
}

/// `a · b + c`, fused when `FMA`.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// What a group adds to 16 sums.
struct Step<'a> {
    x: &'a Q8Block,
    /// Scale of the activations: 1 with blocks of 256, where it is multiplied last.
    d: f32,
    /// What the integer sums start with: 0 for a format with minimums.
    start: [i32; 2],
    halves: bool,
    has_minimum: bool,
}

/// The product of tiles in one order for any number of rows: per group, `sum += scale·d·(start +
/// Σ q·x)`, then `sum += min·s`; super-blocks are summed apart, then multiplied with their d.
/// In plain Rust; every group is unpacked once for all rows.
pub(crate) fn tiles(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
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
                    start: if kind.has_minimum() { [0; 2] } else { x[g].start },
                    halves: kind == Scales::Halves,
                    has_minimum: kind.has_minimum(),
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

/// One [`Step`].
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
    }
    if step.has_minimum {
        for (sum, min) in sum.iter_mut().zip(&group.min) {
            *sum += min * step.x.s;
        }
    }
}

/// The product of float tiles in plain Rust; every sum runs over the columns in order.
pub(crate) fn gemm_f32(job: &GemmF32<'_>, out: &mut [f32]) {
    job.check(out);
    match job.tiles.dtype {
        DType::F16 => values::<2>(job, out, |b| crate::binary16::to_f32(u16::from_le_bytes(b))),
        DType::Bf16 => values::<2>(job, out, crate::cpu::unpack::bf16),
        _ => values::<4>(job, out, f32::from_le_bytes),
    }
}

fn values<const BYTES: usize>(
    job: &GemmF32<'_>,
    out: &mut [f32],
    decode: impl Fn([u8; BYTES]) -> f32,
) {
    /// Columns at a time: their values stay in the first-level cache for all rows.
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

//! Many rows: two tiles are unpacked once, then multiplied with blocks of 6 rows, whose sums
//! stay in registers.

use super::formats::{At, Format, at};
use crate::cpu::tile::{ActBlock, KernelScratch, PairGroup, QuantJob, TILE};
use std::arch::x86_64::*;

/// Rows of a register block.
const ROWS: usize = 6;

/// # Safety
/// The machine has the features, and lengths are as [`QuantJob::check`] demands.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
pub(super) unsafe fn tiles<F: Format>(
    job: &QuantJob<'_>,
    out: &mut [f32],
    scratch: &mut KernelScratch,
) {
    const ZERO: PairGroup =
        PairGroup { q: [[[0; 64]; 2]; 8], scale: [[0.0; TILE]; 2], second: [[0.0; TILE]; 2] };
    let groups = job.weight.layout().groups();
    scratch.pairs.resize(groups, ZERO);
    let pairs = &mut scratch.pairs[..groups];
    let stride = job.tiles.len() * TILE;
    for t in (0..job.tiles.len()).step_by(2) {
        let two = job.tiles.len() - t > 1;
        let tile = |i: usize| at::<F>(&job.weight.tile(job.tiles.start + t + i));
        // SAFETY: both tiles have `groups` groups of the format.
        unsafe { unpack::<F>(tile(0), 0, pairs) };
        if two {
            // SAFETY: as above.
            unsafe { unpack::<F>(tile(1), 1, pairs) };
        }
        for row in (0..job.rows).step_by(ROWS) {
            let block = Block {
                pairs,
                x: &job.x[row * groups..],
                out: out[row * stride + t * TILE..].as_mut_ptr(),
                stride,
            };
            // SAFETY: there are as many rows of `groups` blocks left as R; row r has 16 or, with
            // two tiles, 32 values at `out + r·stride`.
            unsafe {
                match two {
                    true => block.of::<F, 2>(job.rows - row),
                    false => block.of::<F, 1>(job.rows - row),
                }
            }
        }
    }
}

/// Unpacks a tile as number `t` of the pair.
///
/// # Safety
/// The tile has the format and as many groups as `to`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
unsafe fn unpack<F: Format>(tile: At, t: usize, to: &mut [PairGroup]) {
    for (g, to) in to.iter_mut().enumerate() {
        // SAFETY: the group exists, by the caller; each line has 64 bytes, each scale 16 values.
        unsafe {
            for (w, to) in tile.lines::<F>(g).into_iter().zip(&mut to.q) {
                _mm512_storeu_si512(to[t].as_mut_ptr().cast(), w);
            }
            let [scale, second] = tile.scales::<F>(g);
            _mm512_storeu_ps(to.scale[t].as_mut_ptr(), scale);
            _mm512_storeu_ps(to.second[t].as_mut_ptr(), second);
        }
    }
}

/// Some rows times a pair of tiles.
struct Block<'a> {
    pairs: &'a [PairGroup],
    x: &'a [ActBlock],
    out: *mut f32,
    stride: usize,
}

impl Block<'_> {
    /// # Safety
    /// `x` has min(`rows`, 6) rows of as many blocks as there are groups; `out` has 16·T values
    /// at so many multiples of `stride`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn of<F: Format, const T: usize>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            match (F::GROUPS == 1, rows) {
                (true, 1) => self.plain::<F, T, 1>(),
                (true, 2) => self.plain::<F, T, 2>(),
                (true, 3) => self.plain::<F, T, 3>(),
                (true, 4) => self.plain::<F, T, 4>(),
                (true, 5) => self.plain::<F, T, 5>(),
                (true, _) => self.plain::<F, T, 6>(),
                (false, 1) => self.super_blocks::<F, T, 1>(),
                (false, 2) => self.super_blocks::<F, T, 2>(),
                (false, 3) => self.super_blocks::<F, T, 3>(),
                (false, 4) => self.super_blocks::<F, T, 4>(),
                (false, 5) => self.super_blocks::<F, T, 5>(),
                (false, _) => self.super_blocks::<F, T, 6>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::of`] for R rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn plain<F: Format, const T: usize, const R: usize>(&self) {
        let groups = self.pairs.len();
        let x = self.x.as_ptr();
        let mut acc = [[_mm512_setzero_ps(); T]; R];
        for (g, w) in self.pairs.iter().enumerate() {
            // SAFETY: row r < R has block g, by the caller.
            let x: [&ActBlock; R] = std::array::from_fn(|r| unsafe { &*x.add(r * groups + g) });
            let dot = dot::<F, T, R>(w, x, (0, 8));
            let (scale, min) = (load::<T>(&w.scale), load::<T>(&w.second));
            for r in 0..R {
                let (d, s) = (_mm512_set1_ps(x[r].d), _mm512_set1_ps(x[r].s));
                for t in 0..T {
                    let both = _mm512_mul_ps(scale[t], d);
                    let sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r][t]), both, acc[r][t]);
                    acc[r][t] = if F::MIN { _mm512_fmadd_ps(min[t], s, sum) } else { sum };
                }
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for (t, acc) in acc.iter().enumerate() {
                // SAFETY: the values are there, by the caller.
                unsafe { _mm512_storeu_ps(self.out.add(r * self.stride + t * TILE), *acc) };
            }
        }
    }

    /// The sums of earlier super-blocks wait in `out`.
    ///
    /// # Safety
    /// As [`Block::of`] for R rows, and there are whole super-blocks of 8 groups.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn super_blocks<F: Format, const T: usize, const R: usize>(&self) {
        let groups = self.pairs.len();
        for (b, pairs) in self.pairs.chunks_exact(8).enumerate() {
            // SAFETY: row r < R has the blocks of every group, by the caller.
            let block =
                |r: usize, g: usize| unsafe { &*self.x.as_ptr().add(r * groups + b * 8 + g) };
            let mut acc = [[_mm512_setzero_ps(); T]; R];
            for (g, w) in pairs.iter().enumerate() {
                let x: [&ActBlock; R] = std::array::from_fn(|r| block(r, g));
                if F::HALVES {
                    add::<T, R>(&mut acc, dot::<F, T, R>(w, x, (0, 4)), load::<T>(&w.scale));
                    add::<T, R>(&mut acc, dot::<F, T, R>(w, x, (4, 8)), load::<T>(&w.second));
                    continue;
                }
                add::<T, R>(&mut acc, dot::<F, T, R>(w, x, (0, 8)), load::<T>(&w.scale));
                let min = load::<T>(&w.second);
                for r in 0..R {
                    let s = _mm512_set1_ps(x[r].s);
                    for t in 0..T {
                        acc[r][t] = _mm512_fmadd_ps(min[t], s, acc[r][t]);
                    }
                }
            }
            for r in 0..R {
                let d = _mm512_set1_ps(block(r, 0).d);
                for t in 0..T {
                    // SAFETY: the values are there, by the caller.
                    unsafe {
                        let to = self.out.add(r * self.stride + t * TILE);
                        let sum = if b == 0 { _mm512_setzero_ps() } else { _mm512_loadu_ps(to) };
                        _mm512_storeu_ps(to, _mm512_fmadd_ps(acc[r][t], d, sum));
                    }
                }
            }
        }
    }
}

/// `acc += dot · scale`.
#[inline]
#[target_feature(enable = "avx512f")]
fn add<const T: usize, const R: usize>(
    acc: &mut [[__m512; T]; R],
    dot: [[__m512i; T]; R],
    scale: [__m512; T],
) {
    for r in 0..R {
        for t in 0..T {
            acc[r][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r][t]), scale[t], acc[r][t]);
        }
    }
}

/// The integer sums of quads `from .. to`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot<F: Format, const T: usize, const R: usize>(
    w: &PairGroup,
    x: [&ActBlock; R],
    (from, to): (usize, usize),
) -> [[__m512i; T]; R] {
    let mut dot = x.map(|x| match F::OFFSET {
        true => [_mm512_set1_epi32(x.start[from / 4]); T],
        false => [_mm512_setzero_si512(); T],
    });
    for j in from..to {
        // SAFETY: a line has 64 bytes.
        let lines: [__m512i; T] =
            std::array::from_fn(|t| unsafe { _mm512_load_si512(w.q[j][t].as_ptr().cast()) });
        for r in 0..R {
            let four = x[r].q.as_chunks::<4>().0[j].map(i8::cast_unsigned);
            let four = _mm512_set1_epi32(i32::from_le_bytes(four));
            for t in 0..T {
                dot[r][t] = _mm512_dpbusd_epi32(dot[r][t], lines[t], four);
            }
        }
    }
    dot
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<const T: usize>(from: &[[f32; TILE]; 2]) -> [__m512; T] {
    // SAFETY: each has 16 values.
    std::array::from_fn(|t| unsafe { _mm512_loadu_ps(from[t].as_ptr()) })
}

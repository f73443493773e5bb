//! Many rows: a panel of two tiles is unpacked once and multiplied with blocks of 6 rows, whose
//! sums stay in registers. Between panels, sums are stored in the output.

use super::ahead::Ahead;
use super::half_minimums::add_half_minimums;
use super::load_group::{TileStart, load, tile_start};
use crate::loops::formats::Format;
use crate::loops::gemm_args::{GemmQ8, GemmScratch, HalfMinimums, RowBlocks, TilePairGroup};
use crate::loops::quantize::Q8Block;
use crate::packed::layout::TILE;
use std::arch::x86_64::*;
use std::ops::Range;

/// Most rows of a register block, and its tiles.
pub(super) const ROWS: usize = 6;
pub(super) const TILES: usize = 2;

/// Adds the products of quads `$from .. $to` of group `$w` to `$dot`, which is all zero, for the
/// activation blocks at `$x`, `$groups` apart. A macro, because the sums must stay in registers.
macro_rules! dot {
    ($dot:ident, $F:ident, ($w:ident, $x:ident, $groups:ident), $from:literal, $to:literal) => {
        if $F::HAS_ZERO_POINT {
            for (r, dot) in $dot.iter_mut().enumerate() {
                *dot = [_mm512_set1_epi32($F::start(&*$x.add(r * $groups), $from)); T];
            }
        }
        for j in $from..$to {
            let mut lines = [_mm512_setzero_si512(); T];
            for t in 0..T {
                lines[t] = _mm512_load_si512($w.q[j][t].as_ptr().cast());
            }
            for (r, dot) in $dot.iter_mut().enumerate() {
                let four = (&raw const (*$x.add(r * $groups)).q).cast::<i32>().add(j);
                let four = _mm512_set1_epi32(*four);
                for t in 0..T {
                    dot[t] = _mm512_dpbusd_epi32(dot[t], lines[t], four);
                }
            }
        }
    };
}

/// `acc += dot · scale`, or with the activation blocks of rows `acc += dot · (scale · d)`.
macro_rules! add_scaled {
    ($acc:ident, $dot:ident, $scale:expr $(, ($x:ident, $groups:ident))?) => {
        for (_r, (acc, dot)) in $acc.iter_mut().zip(&$dot).enumerate() {
            for t in 0..T {
                let scale = load(&$scale[t]);
                $(let scale = _mm512_mul_ps(scale, _mm512_set1_ps((*$x.add(_r * $groups)).d));)?
                acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[t]), scale, acc[t]);
            }
        }
    };
}

/// # Safety
/// The machine has the features, and lengths are as [`GemmQ8::check`] demands.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")]
pub(super) unsafe fn gemm<F: Format>(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
    const ZERO: TilePairGroup =
        TilePairGroup { q: [[[0; 64]; 2]; 8], scale: [[0.0; TILE]; 2], second: [[0.0; TILE]; 2] };
    let groups = job.weight.layout().groups();
    let stride = job.tiles.len() * TILE;
    let rows_of = RowBlocks::new(job.rows, ROWS);
    for t in (0..job.tiles.len()).step_by(TILES) {
        let two = job.tiles.len() - t > 1;
        let tile = |i: usize| tile_start::<F>(&job.weight.tile(job.tiles.start + t + i));
        let after = job.tiles.start + (t + TILES).min(job.tiles.len());
        let next = match after < job.tiles.end + job.next_tiles.rest {
            true => Some(job.weight.tile(after).values),
            false => job.next_tiles.next,
        };
        let blocks = rows_of.count * groups.div_ceil(job.panel);
        let mut block_index = 0;
        for from in (0..groups).step_by(job.panel) {
            let panel = from..groups.min(from + job.panel);
            scratch.pairs.resize(panel.len(), ZERO);
            let minimums = if F::HALVES && F::MIN { panel.len() } else { 0 };
            scratch.half_minimums.resize(minimums, HalfMinimums::default());
            for t in 0..if two { 2 } else { 1 } {
                // SAFETY: both tiles have `groups` groups of the format.
                unsafe { unpack::<F>(tile(t), t, panel.clone(), scratch) };
            }
            for Range { start: row, end } in rows_of.all() {
                // Usually another pair of tiles. The first level has no room for it yet.
                let part = |i: usize| i * TILES * job.weight.layout().tile / blocks;
                let ahead =
                    next.map(|next| (next.as_ptr().wrapping_add(part(block_index)), part(1)));
                block_index += 1;
                let block = Block {
                    pairs: &scratch.pairs,
                    half_minimums: &scratch.half_minimums,
                    x: &job.x[row * groups + from..],
                    groups,
                    is_first: from == 0,
                    out: out[row * stride + t * TILE..].as_mut_ptr(),
                    stride,
                    ahead: Ahead::new(ahead, panel.len()),
                };
                // SAFETY: there are as many rows of `groups` blocks left as R, of which those of
                // the panel begin at `x`; row r has 16 or, with two tiles, 32 values at
                // `out + r·stride`.
                unsafe {
                    match two {
                        true => block.run::<F, TILES>(end - row),
                        false => block.run::<F, 1>(end - row),
                    }
                }
            }
        }
    }
}

/// Unpacks a range of groups as tile `t` of the pair.
///
/// # Safety
/// The tile has the format and the groups.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,f16c")]
unsafe fn unpack<F: Format>(tile: TileStart, t: usize, groups: Range<usize>, to: &mut GemmScratch) {
    for (g, to) in groups.clone().zip(&mut to.half_minimums) {
        // SAFETY: the group exists, by the caller; each minimum has 16 values.
        unsafe {
            for (half, min) in tile.half_minimums::<F>(g).into_iter().enumerate() {
                _mm512_storeu_ps(to[half][t].as_mut_ptr(), min);
            }
        }
    }
    for (g, to) in groups.zip(&mut to.pairs) {
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

/// A register block: some rows × a panel of a pair of tiles.
struct Block<'a> {
    /// Starts at a group that is a multiple of 8; the length is a multiple of 8 unless these are
    /// the last groups.
    pairs: &'a [TilePairGroup],
    /// Minimums of the halves of these groups, in formats that have them.
    half_minimums: &'a [HalfMinimums],
    /// Activation blocks of these groups; rows are `groups` apart.
    x: &'a [Q8Block],
    groups: usize,
    /// Whether the sums start at zero; otherwise they continue those in the output.
    is_first: bool,
    out: *mut f32,
    stride: usize,
    ahead: Ahead,
}

impl Block<'_> {
    /// # Safety
    /// `x` has min(`rows`, 6) rows, `groups` apart, of as many blocks as there are pairs; `out` has
    /// 16·T values at so many multiples of `stride`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn run<F: Format, const T: usize>(&self, rows: usize) {
        // SAFETY: by the caller.
        unsafe {
            if const { F::GROUPS == 1 } {
                return match rows {
                    1 => self.plain::<F, T, 1>(),
                    2 => self.plain::<F, T, 2>(),
                    3 => self.plain::<F, T, 3>(),
                    4 => self.plain::<F, T, 4>(),
                    5 => self.plain::<F, T, 5>(),
                    _ => self.plain::<F, T, 6>(),
                };
            }
            match rows {
                1 => self.super_blocks::<F, T, 1>(),
                2 => self.super_blocks::<F, T, 2>(),
                3 => self.super_blocks::<F, T, 3>(),
                4 => self.super_blocks::<F, T, 4>(),
                5 => self.super_blocks::<F, T, 5>(),
                _ => self.super_blocks::<F, T, 6>(),
            }
        }
    }

    /// # Safety
    /// As [`Block::run`] for R rows.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn plain<F: Format, const T: usize, const R: usize>(&self) {
        let groups = self.groups;
        let mut acc = [[_mm512_setzero_ps(); T]; R];
        if !self.is_first {
            for (r, acc) in acc.iter_mut().enumerate() {
                for (t, acc) in acc.iter_mut().enumerate() {
                    // SAFETY: the values are there, by the caller.
                    *acc = unsafe { _mm512_loadu_ps(self.out.add(r * self.stride + t * TILE)) };
                }
            }
        }
        for (g, w) in self.pairs.iter().enumerate() {
            self.ahead.prefetch(g);
            // SAFETY: row r < R has block g, by the caller.
            unsafe {
                let x = self.x.as_ptr().add(g);
                let mut dot = [[_mm512_setzero_si512(); T]; R];
                if F::HALVES {
                    dot!(dot, F, (w, x, groups), 0, 4);
                    add_scaled!(acc, dot, w.scale, (x, groups));
                    dot = [[_mm512_setzero_si512(); T]; R];
                    dot!(dot, F, (w, x, groups), 4, 8);
                    add_scaled!(acc, dot, w.second, (x, groups));
                    continue;
                }
                dot!(dot, F, (w, x, groups), 0, 8);
                add_scaled!(acc, dot, w.scale, (x, groups));
                if F::MIN {
                    for (r, acc) in acc.iter_mut().enumerate() {
                        let s = _mm512_set1_ps((*x.add(r * groups)).s);
                        for (acc, second) in acc.iter_mut().zip(&w.second) {
                            *acc = _mm512_fmadd_ps(load(second), s, *acc);
                        }
                    }
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

    /// Sums of earlier super-blocks are in `out`.
    ///
    /// # Safety
    /// As [`Block::run`] for R rows, and there are whole super-blocks of 8 groups.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    unsafe fn super_blocks<F: Format, const T: usize, const R: usize>(&self) {
        let groups = self.groups;
        for (b, pairs) in self.pairs.chunks_exact(8).enumerate() {
            let first = self.x.as_ptr().wrapping_add(b * 8);
            let mut acc = [[_mm512_setzero_ps(); T]; R];
            for (g, w) in pairs.iter().enumerate() {
                self.ahead.prefetch(8 * b + g);
                // SAFETY: row r < R has the blocks of every group, by the caller.
                unsafe {
                    let x = first.add(g);
                    let mut dot = [[_mm512_setzero_si512(); T]; R];
                    if F::HALVES {
                        dot!(dot, F, (w, x, groups), 0, 4);
                        add_scaled!(acc, dot, w.scale);
                        if F::MIN {
                            let minimums = &self.half_minimums[8 * b + g];
                            add_half_minimums(x, groups, minimums, 0, &mut acc);
                        }
                        dot = [[_mm512_setzero_si512(); T]; R];
                        dot!(dot, F, (w, x, groups), 4, 8);
                        add_scaled!(acc, dot, w.second);
                        if F::MIN {
                            let minimums = &self.half_minimums[8 * b + g];
                            add_half_minimums(x, groups, minimums, 1, &mut acc);
                        }
                        continue;
                    }
                    dot!(dot, F, (w, x, groups), 0, 8);
                    add_scaled!(acc, dot, w.scale);
                    for (r, acc) in acc.iter_mut().enumerate() {
                        let s = _mm512_set1_ps((*x.add(r * groups)).s);
                        for (acc, min) in acc.iter_mut().zip(&w.second) {
                            *acc = _mm512_fmadd_ps(load(min), s, *acc);
                        }
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                for (t, acc) in acc.iter().enumerate() {
                    // SAFETY: the row's blocks and the values are there, by the caller.
                    unsafe {
                        let d = _mm512_set1_ps((*first.add(r * groups)).d);
                        let to = self.out.add(r * self.stride + t * TILE);
                        let sum = match self.is_first && b == 0 {
                            true => _mm512_setzero_ps(),
                            false => _mm512_loadu_ps(to),
                        };
                        _mm512_storeu_ps(to, _mm512_fmadd_ps(*acc, d, sum));
                    }
                }
            }
        }
    }
}

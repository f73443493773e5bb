//! Many rows: a panel of two tiles is unpacked once and multiplied with blocks of 6 rows, whose
//! sums stay in registers. Between panels, sums are stored in the output.

mod block;

use super::ahead::Ahead;
use super::factors::{Factors, Units};
use super::load_group::{TileStart, tile_start};
use crate::loops::formats::Format;
use crate::loops::gemm_args::{GemmQ8, GemmScratch, HalfMinimums, RowBlocks, TilePairGroup};
use crate::packed::layout::TILE;
use block::Block;
use std::arch::x86_64::*;
use std::ops::Range;

/// Most rows of a register block, and its tiles.
pub(super) const ROWS: usize = 6;
pub(super) const TILES: usize = 2;

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
    let mut units = Units::none();
    for (i, (g, pair)) in groups.zip(&mut to.pairs).enumerate() {
        // SAFETY: the group exists, by the caller; each line has 64 bytes, each scale and minimum 16 values.
        unsafe {
            if F::GROUPS > 1 && g % F::GROUPS == 0 {
                units = tile.units::<F>(g);
            }
            for (w, to) in tile.lines::<F>(g).into_iter().zip(&mut pair.q) {
                _mm512_storeu_si512(to[t].as_mut_ptr().cast(), w);
            }
            let Factors { scale, min } = tile.factors::<F>(g, units);
            let second = if F::HALVES { scale[1] } else { min[0] };
            _mm512_storeu_ps(pair.scale[t].as_mut_ptr(), scale[0]);
            _mm512_storeu_ps(pair.second[t].as_mut_ptr(), second);
            if F::HALVES && F::MIN {
                for (to, min) in to.half_minimums[i].iter_mut().zip(min) {
                    _mm512_storeu_ps(to[t].as_mut_ptr(), min);
                }
            }
        }
    }
}

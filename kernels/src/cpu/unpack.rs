//! Stored blocks to unsigned integers with a scale and a minimum per group.

use crate::binary16;
use crate::cpu::tile::{F32Tile, QTile, RowsView, TILE};
use crate::quant::DType;

/// One block, unpacked: `value[i] = scale[i / group] · q[i] + min[i / group]`. Formats with
/// blocks of 32 use the first part only.
pub(crate) struct Block {
    pub(crate) q: [u8; 256],
    pub(crate) scale: [f32; 16],
    pub(crate) min: [f32; 16],
}

impl Block {
    pub(crate) fn new() -> Block {
        Block { q: [0; 256], scale: [0.0; 16], min: [0.0; 16] }
    }
}

/// Columns that share a scale, in a quantised format.
pub(crate) fn group_len(dtype: DType) -> usize {
    if dtype == DType::Q6K { 16 } else { 32 }
}

/// What the unsigned integers of a format without a minimum are above the stored ones.
pub(crate) fn offset(dtype: DType) -> i32 {
    match dtype {
        DType::Q4_0 => 8,
        DType::Q5_0 => 16,
        DType::Q6K => 32,
        DType::Q8_0 => 128,
        _ => 0,
    }
}

/// Unpacks whole rows. `view.cols` must be all the columns.
#[inline(always)]
pub(crate) fn tile(view: &RowsView<'_>, tile: &mut QTile) {
    tile.reshape(view.cols.len(), view.dtype);
    match view.dtype {
        DType::Q4_0 => blocks::<18, 32, 32>(view, tile, q4_0),
        DType::Q4_1 => blocks::<20, 32, 32>(view, tile, q4_1),
        DType::Q5_0 => blocks::<22, 32, 32>(view, tile, q5_0),
        DType::Q5_1 => blocks::<24, 32, 32>(view, tile, q5_1),
        DType::Q8_0 => blocks::<34, 32, 32>(view, tile, q8_0),
        DType::Q4K => blocks::<144, 256, 32>(view, tile, q4_k),
        DType::Q5K => blocks::<176, 256, 32>(view, tile, q5_k),
        DType::Q6K => blocks::<210, 256, 16>(view, tile, q6_k),
        DType::F32 | DType::F16 | DType::Bf16 => {}
    }
}

#[inline(always)]
fn blocks<const BYTES: usize, const LEN: usize, const GROUP: usize>(
    view: &RowsView<'_>,
    tile: &mut QTile,
    decode: impl Fn(&[u8; BYTES], &mut Block),
) {
    let mut block = Block::new();
    let groups = LEN / GROUP;
    let has_minimum = tile.offset() == 0;
    for (b, q) in tile.q.chunks_exact_mut(LEN * TILE).enumerate() {
        let scale = &mut tile.scale[b * groups * TILE..][..groups * TILE];
        let min = &mut tile.min[b * groups * TILE..][..groups * TILE];
        for r in 0..view.rows.min(TILE) {
            let at = r * view.row_bytes + b * BYTES;
            let Some(stored) = view.bytes.get(at..).and_then(|s| s.first_chunk()) else {
                return;
            };
            decode(stored, &mut block);
            let lines = q.as_chunks_mut::<{ TILE * 4 }>().0;
            for (line, four) in lines.iter_mut().zip(block.q.as_chunks::<4>().0) {
                line.as_chunks_mut::<4>().0[r] = *four;
            }
            for g in 0..groups {
                scale[g * TILE + r] = block.scale[g];
                if has_minimum {
                    min[g * TILE + r] = block.min[g];
                }
            }
        }
    }
}

/// Unpacks one stored block of `dtype`; `false` for float formats and short input.
pub(crate) fn one(dtype: DType, stored: &[u8], block: &mut Block) -> bool {
    fn with<const N: usize>(s: &[u8], b: &mut Block, f: fn(&[u8; N], &mut Block)) -> bool {
        s.first_chunk().map(|s| f(s, b)).is_some()
    }
    match dtype {
        DType::Q4_0 => with(stored, block, q4_0),
        DType::Q4_1 => with(stored, block, q4_1),
        DType::Q5_0 => with(stored, block, q5_0),
        DType::Q5_1 => with(stored, block, q5_1),
        DType::Q8_0 => with(stored, block, q8_0),
        DType::Q4K => with(stored, block, q4_k),
        DType::Q5K => with(stored, block, q5_k),
        DType::Q6K => with(stored, block, q6_k),
        DType::F32 | DType::F16 | DType::Bf16 => false,
    }
}

/// Scales and minimums of one stored block of `dtype`, which must be whole.
#[inline(always)]
pub(crate) fn head(dtype: DType, s: &[u8], b: &mut Block) {
    let f16_at = |at: usize| binary16::to_f32(u16::from_le_bytes([s[at], s[at + 1]]));
    match dtype {
        DType::Q4_0 | DType::Q5_0 | DType::Q8_0 => {
            let d = f16_at(0);
            (b.scale[0], b.min[0]) = (d, -(offset(dtype) as f32) * d);
        }
        DType::Q4_1 | DType::Q5_1 => (b.scale[0], b.min[0]) = (f16_at(0), f16_at(2)),
        DType::Q4K | DType::Q5K => k_scales(f16_at(0), f16_at(2), &s[4..16], b),
        DType::Q6K => {
            let d = f16_at(208);
            for (g, scale) in s[192..208].iter().enumerate() {
                b.scale[g] = d * f32::from(scale.cast_signed());
                b.min[g] = -32.0 * b.scale[g];
            }
        }
        DType::F32 | DType::F16 | DType::Bf16 => {}
    }
}

/// The 6-bit scales and minimums of a Q4_K or Q5_K super-block: the low 4 are whole bytes,
/// the high 4 have their upper 2 bits in the top of those.
#[inline(always)]
fn k_scales(d: f32, dmin: f32, s: &[u8], b: &mut Block) {
    let Some(s) = s.first_chunk::<12>() else {
        return;
    };
    for j in 0..4 {
        b.scale[j] = d * f32::from(s[j] & 63);
        b.min[j] = -(dmin * f32::from(s[j + 4] & 63));
        b.scale[j + 4] = d * f32::from(s[j + 8] & 15 | (s[j] >> 6) << 4);
        b.min[j + 4] = -(dmin * f32::from(s[j + 8] >> 4 | (s[j + 4] >> 6) << 4));
    }
}

/// `stored[from .. from + 16]` as 16 low, then 16 high nibbles.
#[inline(always)]
fn nibbles<const N: usize>(stored: &[u8; N], from: usize, b: &mut Block) {
    if let (Some(s), Some(q)) = (stored[from..].first_chunk::<16>(), b.q.first_chunk_mut::<32>()) {
        for i in 0..16 {
            q[i] = s[i] & 15;
            q[16 + i] = s[i] >> 4;
        }
    }
}

#[inline(always)]
fn fifth_bits<const N: usize>(stored: &[u8; N], from: usize, b: &mut Block) {
    if let (Some(s), Some(q)) = (stored[from..].first_chunk::<4>(), b.q.first_chunk_mut::<32>()) {
        let bits = u32::from_le_bytes(*s);
        for (i, q) in q.iter_mut().enumerate() {
            *q |= ((bits >> i & 1) as u8) << 4;
        }
    }
}

#[inline(always)]
fn q4_0(s: &[u8; 18], b: &mut Block) {
    nibbles(s, 2, b);
    head(DType::Q4_0, s, b);
}

#[inline(always)]
fn q4_1(s: &[u8; 20], b: &mut Block) {
    nibbles(s, 4, b);
    head(DType::Q4_1, s, b);
}

#[inline(always)]
fn q5_0(s: &[u8; 22], b: &mut Block) {
    nibbles(s, 6, b);
    fifth_bits(s, 2, b);
    head(DType::Q5_0, s, b);
}

#[inline(always)]
fn q5_1(s: &[u8; 24], b: &mut Block) {
    nibbles(s, 8, b);
    fifth_bits(s, 4, b);
    head(DType::Q5_1, s, b);
}

#[inline(always)]
fn q8_0(s: &[u8; 34], b: &mut Block) {
    if let (Some(s), Some(q)) = (s.last_chunk::<32>(), b.q.first_chunk_mut::<32>()) {
        for i in 0..32 {
            q[i] = s[i] ^ 0x80;
        }
    }
    head(DType::Q8_0, s, b);
}

#[inline(always)]
fn k_nibbles(stored: &[u8], q: &mut [u8; 256]) {
    for (from, to) in stored.as_chunks::<32>().0.iter().zip(q.as_chunks_mut::<64>().0) {
        for i in 0..32 {
            to[i] = from[i] & 15;
            to[32 + i] = from[i] >> 4;
        }
    }
}

#[inline(always)]
fn q4_k(s: &[u8; 144], b: &mut Block) {
    k_nibbles(&s[16..], &mut b.q);
    head(DType::Q4K, s, b);
}

#[inline(always)]
fn q5_k(s: &[u8; 176], b: &mut Block) {
    k_nibbles(&s[48..], &mut b.q);
    for (j, q) in b.q.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (q, high) in q.iter_mut().zip(&s[16..48]) {
            *q |= (high >> j & 1) << 4;
        }
    }
    head(DType::Q5K, s, b);
}

#[inline(always)]
fn q6_k(s: &[u8; 210], b: &mut Block) {
    for (half, q) in b.q.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let low = &s[half * 64..][..64];
        let high = &s[128 + half * 32..][..32];
        for i in 0..32 {
            q[i] = low[i] & 15 | (high[i] & 3) << 4;
            q[32 + i] = low[32 + i] & 15 | (high[i] >> 2 & 3) << 4;
            q[64 + i] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
            q[96 + i] = low[32 + i] >> 4 | (high[i] >> 6) << 4;
        }
    }
    head(DType::Q6K, s, b);
}

/// Unpacks `view.cols` of a float matrix; absent rows become zero.
#[inline(always)]
pub(crate) fn tile_f32(view: &RowsView<'_>, tile: &mut F32Tile) {
    tile.data.clear();
    tile.data.resize(view.cols.len() * TILE, 0.0);
    match view.dtype {
        DType::F32 => values::<4>(view, tile, f32::from_le_bytes),
        DType::F16 => values::<2>(view, tile, |b| binary16::to_f32(u16::from_le_bytes(b))),
        DType::Bf16 => values::<2>(view, tile, bf16),
        _ => {}
    }
}

#[inline(always)]
fn values<const BYTES: usize>(
    view: &RowsView<'_>,
    tile: &mut F32Tile,
    decode: impl Fn([u8; BYTES]) -> f32,
) {
    for r in 0..view.rows.min(TILE) {
        let row = &view.bytes[r * view.row_bytes..][..view.row_bytes];
        let stored = &row.as_chunks::<BYTES>().0[view.cols.clone()];
        for (line, stored) in tile.data.as_chunks_mut::<TILE>().0.iter_mut().zip(stored) {
            line[r] = decode(*stored);
        }
    }
}

/// Value of one little-endian bfloat16.
#[inline(always)]
pub(crate) fn bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

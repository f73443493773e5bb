//! Unpacks stored blocks to unsigned integers with a scale and a minimum per group.

use crate::binary16;
use crate::cpu::matrix::StoredRows;
use crate::cpu::packed::layout::{TILE, zero_point};
use crate::quant::DType;

/// One block, unpacked: `value[i] = scale[i / group] · q[i] + min[i / group]`. Formats with blocks
/// of 32 use only the first part.
struct Block {
    q: [u8; 256],
    scale: [f32; 16],
    min: [f32; 16],
}

impl Block {
    fn new() -> Block {
        Block { q: [0; 256], scale: [0.0; 16], min: [0.0; 16] }
    }
}

/// Columns that share a scale in a quantised format.
fn group_len(dtype: DType) -> usize {
    if dtype == DType::Q6K { 16 } else { 32 }
}

/// Unpacks whole rows into `to`, `[k/4][16 rows][4 columns]`; absent rows are left as they are.
#[inline(always)]
pub(crate) fn tile(view: &StoredRows<'_>, to: &mut [u8]) {
    match view.dtype {
        DType::Q4_0 => blocks::<18, 32>(view, to, q4_0),
        DType::Q4_1 => blocks::<20, 32>(view, to, q4_1),
        DType::Q5_0 => blocks::<22, 32>(view, to, q5_0),
        DType::Q5_1 => blocks::<24, 32>(view, to, q5_1),
        DType::Q8_0 => blocks::<34, 32>(view, to, q8_0),
        DType::Q4K => blocks::<144, 256>(view, to, q4_k),
        DType::Q5K => blocks::<176, 256>(view, to, q5_k),
        DType::Q6K => blocks::<210, 256>(view, to, q6_k),
        DType::F32 | DType::F16 | DType::Bf16 => {}
    }
}

#[inline(always)]
fn blocks<const BYTES: usize, const LEN: usize>(
    view: &StoredRows<'_>,
    to: &mut [u8],
    decode: impl Fn(&[u8; BYTES], &mut Block),
) {
    let mut block = Block::new();
    for (b, q) in to.chunks_exact_mut(LEN * TILE).enumerate() {
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
        }
    }
}

/// Unpacks one stored block; `false` for float formats and short input.
fn unpack_block(dtype: DType, stored: &[u8], block: &mut Block) -> bool {
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

/// Unpacks the blocks of stored rows one after another: integers, and scale and minimum of each group of
/// them, where a value is scale · integer + minimum. Nothing happens for float formats.
#[cfg(feature = "openvino")]
pub(crate) fn stored_blocks(
    dtype: DType,
    stored: &[u8],
    mut each: impl FnMut(&[u8], &[f32], &[f32]),
) {
    let (mut block, len) = (Block::new(), dtype.block_len());
    let groups = len / group_len(dtype);
    for stored in stored.chunks_exact(dtype.block_bytes()) {
        if unpack_block(dtype, stored, &mut block) {
            each(&block.q[..len], &block.scale[..groups], &block.min[..groups]);
        }
    }
}

/// Scales and minimums of one whole stored block.
#[inline(always)]
fn scales_of(dtype: DType, s: &[u8], b: &mut Block) {
    let f16_at = |at: usize| binary16::to_f32(u16::from_le_bytes([s[at], s[at + 1]]));
    match dtype {
        DType::Q4_0 | DType::Q5_0 | DType::Q8_0 => {
            let d = f16_at(0);
            (b.scale[0], b.min[0]) = (d, -(zero_point(dtype) as f32) * d);
        }
        DType::Q4_1 | DType::Q5_1 => (b.scale[0], b.min[0]) = (f16_at(0), f16_at(2)),
        DType::Q4K | DType::Q5K => {
            let (d, dmin, (scales, minimums)) = (f16_at(0), f16_at(2), k_scales(&s[4..16]));
            for g in 0..8 {
                b.scale[g] = d * f32::from(scales[g]);
                b.min[g] = -(dmin * f32::from(minimums[g]));
            }
        }
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

/// The 8 scales and 8 minimums, 6 bits each, from the 12 bytes of a Q4_K or Q5_K super-block. The
/// first 4 are the low 6 bits of bytes; the last 4 have their upper 2 bits in the top of those
/// bytes.
#[inline(always)]
pub(crate) fn k_scales(s: &[u8]) -> ([u8; 8], [u8; 8]) {
    let (mut scales, mut minimums) = ([0; 8], [0; 8]);
    if let Some(s) = s.first_chunk::<12>() {
        for j in 0..4 {
            (scales[j], minimums[j]) = (s[j] & 63, s[j + 4] & 63);
            scales[j + 4] = s[j + 8] & 15 | (s[j] >> 6) << 4;
            minimums[j + 4] = s[j + 8] >> 4 | (s[j + 4] >> 6) << 4;
        }
    }
    (scales, minimums)
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
    scales_of(DType::Q4_0, s, b);
}

#[inline(always)]
fn q4_1(s: &[u8; 20], b: &mut Block) {
    nibbles(s, 4, b);
    scales_of(DType::Q4_1, s, b);
}

#[inline(always)]
fn q5_0(s: &[u8; 22], b: &mut Block) {
    nibbles(s, 6, b);
    fifth_bits(s, 2, b);
    scales_of(DType::Q5_0, s, b);
}

#[inline(always)]
fn q5_1(s: &[u8; 24], b: &mut Block) {
    nibbles(s, 8, b);
    fifth_bits(s, 4, b);
    scales_of(DType::Q5_1, s, b);
}

#[inline(always)]
fn q8_0(s: &[u8; 34], b: &mut Block) {
    if let (Some(s), Some(q)) = (s.last_chunk::<32>(), b.q.first_chunk_mut::<32>()) {
        for i in 0..32 {
            q[i] = s[i] ^ 0x80;
        }
    }
    scales_of(DType::Q8_0, s, b);
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
    scales_of(DType::Q4K, s, b);
}

#[inline(always)]
fn q5_k(s: &[u8; 176], b: &mut Block) {
    k_nibbles(&s[48..], &mut b.q);
    for (j, q) in b.q.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (q, high) in q.iter_mut().zip(&s[16..48]) {
            *q |= (high >> j & 1) << 4;
        }
    }
    scales_of(DType::Q5K, s, b);
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
    scales_of(DType::Q6K, s, b);
}

/// Value of one little-endian bfloat16.
#[inline(always)]
pub(crate) fn bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

/// Dequantises a stored row.
pub(crate) fn dequantize_row(dtype: DType, stored: &[u8], out: &mut [f32]) {
    let f16 = |b: &[u8; 2]| binary16::to_f32(u16::from_le_bytes(*b));
    match dtype {
        DType::F32 => values(stored, out, |b: &[u8; 4]| f32::from_le_bytes(*b)),
        DType::F16 => values(stored, out, f16),
        DType::Bf16 => values(stored, out, |b| bf16(*b)),
        _ => dequantize_blocks(dtype, stored, out),
    }
}

fn values<const N: usize>(stored: &[u8], out: &mut [f32], f: impl Fn(&[u8; N]) -> f32) {
    for (out, stored) in out.iter_mut().zip(stored.as_chunks().0) {
        *out = f(stored);
    }
}

fn dequantize_blocks(dtype: DType, stored: &[u8], out: &mut [f32]) {
    let mut block = Block::new();
    let group = group_len(dtype);
    let stored = stored.chunks_exact(dtype.block_bytes());
    for (out, stored) in out.chunks_exact_mut(dtype.block_len()).zip(stored) {
        unpack_block(dtype, stored, &mut block);
        for (i, out) in out.iter_mut().enumerate() {
            *out = block.scale[i / group] * f32::from(block.q[i]) + block.min[i / group];
        }
    }
}

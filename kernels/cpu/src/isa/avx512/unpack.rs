//! Unpacks stored blocks: transposes 16 rows × 16 stored bytes at once, then expands them to the
//! tile's lines of 16 rows × 4 columns.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::matrix::StoredRows;
use crate::packed::layout::TILE;
use lapwing_model::formats::Places;
use std::arch::x86_64::*;

/// Unpacks whole rows into `to`, `[k/4][16 rows][4 columns]`; absent rows repeat the last.
pub(super) fn unpack_tile(view: &StoredRows<'_>, to: &mut [u8]) {
    let rows = view.rows.min(TILE);
    let shape = BlockShape { bytes: view.dtype.block_bytes(), len: view.dtype.block_len() };
    let blocks = to.len() / (shape.len * TILE);
    let used = blocks * shape.bytes;
    let Some(format) = view.dtype.quantised() else { return };
    if let Places::Scattered { .. } = format.places {
        return crate::loops::unpack::tile(view, to);
    }
    if rows == 0 || blocks == 0 {
        return;
    }
    assert!(view.row_bytes >= used && view.bytes.len() >= (rows - 1) * view.row_bytes + used);
    let row = |r: usize| &view.bytes[r.min(rows - 1) * view.row_bytes..][..used];
    let rows_at: [*const u8; TILE] = std::array::from_fn(|r| row(r).as_ptr());
    // SAFETY: reached only through the AVX-512 table, which `Isa` hands out only when the
    // machine has the features; every row has as many stored blocks as `to` has, as checked above.
    unsafe { blocks_of(format.places, shape, &rows_at, to) }
}

/// Size of a stored block.
#[derive(Clone, Copy)]
struct BlockShape {
    bytes: usize,
    /// In values.
    len: usize,
}

/// # Safety
/// Each of `rows` has as many blocks as `to`, with integers at those places.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn blocks_of(places: Places, shape: BlockShape, rows: &[*const u8; TILE], to: &mut [u8]) {
    for (b, q) in to.chunks_exact_mut(shape.len * TILE).enumerate() {
        let mut lines = Lines { rows, at: b * shape.bytes, q };
        // SAFETY: block `b` exists in every row; each function reads inside its block.
        unsafe {
            match places {
                Places::Nibbles { at } => lines.q4(at),
                Places::Fifths { at } => lines.q5(at),
                Places::Bytes { at } => lines.q8(at),
                Places::GroupNibbles { at } => lines.q4_k(at),
                Places::GroupFifths { at } => lines.q5_k(at),
                Places::NibbleGroups { at } => lines.q4_groups(at),
                Places::Sixths { at } => lines.q6_k(at),
                Places::Scattered { .. } => {}
            }
        }
    }
}

/// One block of 16 rows while it is unpacked.
struct Lines<'a> {
    rows: &'a [*const u8; TILE],
    /// Where the block starts in each row.
    at: usize,
    /// The tile's lines of this block.
    q: &'a mut [u8],
}

/// For every function: the block has the stated format in each row and `q` has its lines.
impl Lines<'_> {
    /// Stored bytes `from .. from + 16` of each row as four lines of 16 rows × 4 bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn load(&self, from: usize) -> [__m512i; 4] {
        let at = self.at + from;
        let load = |j: usize| {
            // SAFETY: 16 bytes from `from` are inside the block of each row.
            unsafe {
                let part = |r: usize| _mm_loadu_si128(self.rows[r].add(at).cast());
                let low =
                    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(part(j)), part(j + 4));
                let high =
                    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(part(j + 8)), part(j + 12));
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
            }
        };
        // 128-bit lane L of v[j] is row 4L + j: a 4 × 4 transpose of 32-bit values within the
        // lanes puts the rows side by side, in order.
        let v = [load(0), load(1), load(2), load(3)];
        let (a, b) = (_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
        let (c, d) = (_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
        [
            _mm512_unpacklo_epi64(a, c),
            _mm512_unpackhi_epi64(a, c),
            _mm512_unpacklo_epi64(b, d),
            _mm512_unpackhi_epi64(b, d),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(&mut self, line: usize, v: __m512i) {
        let to = &mut self.q[line * 64..line * 64 + 64];
        // SAFETY: `to` has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) };
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn q4(&mut self, from: usize) {
        // SAFETY: the nibbles start at `from`.
        let v = unsafe { self.load(from) };
        for (c, v) in v.into_iter().enumerate() {
            self.store(c, low(v));
            self.store(4 + c, high(v));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn q4_groups(&mut self, from: usize) {
        for group in 0..8 {
            // SAFETY: the 16 bytes of each group follow those before it.
            let v = unsafe { self.load(from + 16 * group) };
            for (c, v) in v.into_iter().enumerate() {
                self.store(8 * group + c, low(v));
                self.store(8 * group + 4 + c, high(v));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn q5(&mut self, from: usize) {
        let mut bits = [0u32; TILE];
        for (bits, row) in bits.iter_mut().zip(self.rows) {
            // SAFETY: the fifth bits are the 4 bytes at `from`.
            *bits = unsafe { row.add(self.at + from).cast::<u32>().read_unaligned() };
        }
        // SAFETY: `bits` has 64 bytes, and the nibbles follow it in the block.
        let (bits, v) = unsafe { (_mm512_loadu_si512(bits.as_ptr().cast()), self.load(from + 4)) };
        for (c, v) in v.into_iter().enumerate() {
            let c32 = c as u32;
            self.store(c, _mm512_or_si512(low(v), four_bits(bits, 4 * c32)));
            self.store(4 + c, _mm512_or_si512(high(v), four_bits(bits, 16 + 4 * c32)));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn q8(&mut self, from: usize) {
        for part in 0..2 {
            // SAFETY: the 32 values start at `from`.
            let v = unsafe { self.load(from + 16 * part) };
            for (c, v) in v.into_iter().enumerate() {
                let v = _mm512_xor_si512(v, _mm512_set1_epi8(-128));
                self.store(4 * part + c, v);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn q4_k(&mut self, from: usize) {
        for part in 0..8 {
            // SAFETY: the 128 bytes of nibbles start at `from`.
            let v = unsafe { self.load(from + 16 * part) };
            let line = part / 2 * 16 + part % 2 * 4;
            for (c, v) in v.into_iter().enumerate() {
                self.store(line + c, low(v));
                self.store(line + 8 + c, high(v));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn q5_k(&mut self, from: usize) {
        for part in 0..8 {
            // SAFETY: 32 bytes of fifth bits, then 128 of nibbles, start at `from`.
            let (v, bits) =
                unsafe { (self.load(from + 32 + 16 * part), self.load(from + part % 2 * 16)) };
            let line = part / 2 * 16 + part % 2 * 4;
            let first = (part / 2 * 2) as u32;
            for c in 0..4 {
                self.store(line + c, _mm512_or_si512(low(v[c]), fifth(bits[c], first)));
                self.store(line + 8 + c, _mm512_or_si512(high(v[c]), fifth(bits[c], first + 1)));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn q6_k(&mut self, from: usize) {
        for part in 0..8 {
            let (half, quarter, j) = (part / 4, part % 4 / 2, part % 2);
            // SAFETY: 128 bytes of low bits, then 64 of high bits, start at `from`.
            let (v, bits) = unsafe {
                (self.load(from + 16 * part), self.load(from + 128 + 32 * half + 16 * j))
            };
            let line = half * 32 + quarter * 8 + j * 4;
            let shift = 2 * quarter as u32;
            for c in 0..4 {
                self.store(line + c, _mm512_or_si512(low(v[c]), top_two(bits[c], shift)));
                let top = top_two(bits[c], shift + 4);
                self.store(line + 16 + c, _mm512_or_si512(high(v[c]), top));
            }
        }
    }
}

/// Low nibble of each byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn low(v: __m512i) -> __m512i {
    _mm512_and_si512(v, _mm512_set1_epi8(15))
}

/// High nibble of each byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn high(v: __m512i) -> __m512i {
    low(_mm512_srli_epi16::<4>(v))
}

/// Bits `from .. from + 4` of each 32-bit lane, as bit 4 of its four bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn four_bits(v: __m512i, from: u32) -> __m512i {
    let four = _mm512_and_si512(
        _mm512_srl_epi32(v, _mm_cvtsi32_si128(from.cast_signed())),
        _mm512_set1_epi32(15),
    );
    // Copies at distances of 7 bits put bit i at bit 8i.
    let spread = _mm512_mullo_epi32(four, _mm512_set1_epi32(0x0020_4081));
    _mm512_slli_epi32::<4>(_mm512_and_si512(spread, _mm512_set1_epi8(1)))
}

/// Bit `bit` of each byte, as bit 4.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn fifth(v: __m512i, bit: u32) -> __m512i {
    let v = _mm512_srl_epi16(v, _mm_cvtsi32_si128(bit.cast_signed()));
    _mm512_slli_epi16::<4>(_mm512_and_si512(v, _mm512_set1_epi8(1)))
}

/// Bits `from`, `from + 1` of each byte, as bits 4 and 5.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn top_two(v: __m512i, from: u32) -> __m512i {
    let v = _mm512_srl_epi16(v, _mm_cvtsi32_si128(from.cast_signed()));
    _mm512_slli_epi16::<4>(_mm512_and_si512(v, _mm512_set1_epi8(3)))
}

//! Integers of a group in registers, from a panel or from a tile.

use crate::loops::formats::Format;
use crate::packed::group::Group;
use crate::packed::layout::LINE;
use crate::packed::tile::TileBytes;
use lapwing_model::formats::unsigned;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// The integers of a group.
///
/// # Safety
/// Every method: the machine has AVX2, and `j` is less than 8.
pub(super) trait Quads: Copy {
    /// Four columns of 16 channels.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn quad(self, j: usize) -> [__m256i; 2];
    /// As [`Quads::quad`], for [`Maddubs`](super::Maddubs): 8-bit weights as signed bytes.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn signed(self, j: usize) -> [__m256i; 2];
}

impl Quads for &Group {
    #[inline(always)]
    unsafe fn quad(self, j: usize) -> [__m256i; 2] {
        // SAFETY: by the caller; a line is aligned to its 64 bytes.
        unsafe {
            let line = self.q[j].as_ptr().cast();
            [_mm256_load_si256(line), _mm256_load_si256(line.add(1))]
        }
    }
    #[inline(always)]
    unsafe fn signed(self, j: usize) -> [__m256i; 2] {
        // SAFETY: by the caller. `Maddubs` has arranged them.
        unsafe { self.quad(j) }
    }
}

/// A group inside a tile.
#[derive(Clone, Copy)]
pub(super) struct InTile<F>(*const __m256i, PhantomData<F>);

impl<F: Format> InTile<F> {
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    pub(super) fn new(tile: &TileBytes<'_>, g: usize) -> InTile<F> {
        let lines = &tile.values[g * F::LINES * LINE..][..F::LINES * LINE];
        InTile(lines.as_ptr().cast(), PhantomData)
    }

    /// The integers, or the codes, of a quad.
    ///
    /// # Safety
    /// The machine has AVX2, and `j` is less than 8.
    #[inline(always)]
    unsafe fn integers(self, j: usize) -> [__m256i; 2] {
        // SAFETY: by the caller; the group has so many lines of two vectors.
        unsafe {
            let line = |i: usize, h: usize| _mm256_loadu_si256(self.0.add(2 * i + h));
            if F::LINES == 8 {
                return [line(j, 0), line(j, 1)];
            }
            if F::LINES < 4 {
                let (last, part) = (j / 4, j % 4);
                let (at, shift, bits) = match (F::LINES, part) {
                    (2, _) => (part / 2, 4 * last + 2 * (part % 2), 3),
                    (_, 3) => (2 * last, 6, 3),
                    _ => (part, 3 * last, 7),
                };
                let shift = _mm_cvtsi32_si128(shift as i32);
                let mut quad = [_mm256_set1_epi8(bits); 2];
                for (h, quad) in quad.iter_mut().enumerate() {
                    *quad = _mm256_and_si256(_mm256_srl_epi16(line(at, h), shift), *quad);
                    if F::LINES == 3 && part == 3 {
                        let shift = _mm_cvtsi32_si128(4 + last as i32);
                        let third = _mm256_srl_epi16(line(1, h), shift);
                        *quad =
                            _mm256_or_si256(*quad, _mm256_and_si256(third, _mm256_set1_epi8(4)));
                    }
                }
                return quad;
            }
            let low = _mm256_set1_epi8(15);
            let mut quad = [low; 2];
            for (h, quad) in quad.iter_mut().enumerate() {
                let n = line(j % 4, h);
                let n = if j < 4 { n } else { _mm256_srli_epi16::<4>(n) };
                let n = _mm256_and_si256(n, low);
                *quad = match F::LINES {
                    5 => {
                        let bit = _mm256_set1_epi8(1 << j);
                        let has = _mm256_cmpeq_epi8(_mm256_and_si256(line(4, h), bit), bit);
                        _mm256_or_si256(n, _mm256_and_si256(has, _mm256_set1_epi8(16)))
                    }
                    6 => {
                        let upper = line(4 + j / 4, h);
                        let upper = match j % 4 {
                            0 => _mm256_slli_epi16::<4>(upper),
                            1 => _mm256_slli_epi16::<2>(upper),
                            2 => upper,
                            _ => _mm256_srli_epi16::<2>(upper),
                        };
                        _mm256_or_si256(n, _mm256_and_si256(upper, _mm256_set1_epi8(48)))
                    }
                    _ => n,
                };
            }
            quad
        }
    }
}

impl<F: Format> Quads for InTile<F> {
    #[inline(always)]
    unsafe fn quad(self, j: usize) -> [__m256i; 2] {
        // SAFETY: by the caller; there are 16 bytes.
        unsafe {
            let quad = self.integers(j);
            let Some(table) = (const { F::TABLE }) else { return quad };
            let table = unsigned(table);
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            // A closure may be compiled without the instruction set.
            [_mm256_shuffle_epi8(table, quad[0]), _mm256_shuffle_epi8(table, quad[1])]
        }
    }
    #[inline(always)]
    unsafe fn signed(self, j: usize) -> [__m256i; 2] {
        // SAFETY: by the caller.
        unsafe {
            let (quad, sign) = (self.quad(j), _mm256_set1_epi8(-128));
            [_mm256_xor_si256(quad[0], sign), _mm256_xor_si256(quad[1], sign)]
        }
    }
}

/// A group inside a tile, whose integers are stored in a panel when they are unpacked.
#[derive(Clone, Copy)]
pub(super) struct Kept<F>(InTile<F>, *mut Group);

impl<F: Format> Kept<F> {
    /// # Panics
    /// When the tile has no such group.
    #[inline(always)]
    pub(super) fn new(tile: &TileBytes<'_>, g: usize, to: *mut Group) -> Kept<F> {
        Kept(InTile::new(tile, g), to)
    }

    /// # Safety
    /// The machine has AVX2, `j` is less than 8, and nothing else uses the group of the panel.
    #[inline(always)]
    unsafe fn keep(self, j: usize, quad: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: by the caller; a line is aligned to its 64 bytes.
        unsafe {
            let line = (&raw mut (*self.1).q).cast::<__m256i>().add(2 * j);
            _mm256_store_si256(line, quad[0]);
            _mm256_store_si256(line.add(1), quad[1]);
        }
        quad
    }
}

impl<F: Format> Quads for Kept<F> {
    #[inline(always)]
    unsafe fn quad(self, j: usize) -> [__m256i; 2] {
        // SAFETY: by the caller.
        unsafe { self.keep(j, self.0.quad(j)) }
    }
    #[inline(always)]
    unsafe fn signed(self, j: usize) -> [__m256i; 2] {
        // SAFETY: by the caller.
        unsafe { self.keep(j, self.0.signed(j)) }
    }
}

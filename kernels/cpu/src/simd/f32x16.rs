//! A vector of 16 `f32`: kernels are written over it once, for all instruction sets.
#![expect(unsafe_code, reason = "loads and stores through pointers, as the intrinsics have it")]

use crate::simd::outline::Outlined;

/// `f32` per vector.
pub(crate) const LANES: usize = 16;

/// A vector of 16 `f32`.
///
/// # Safety
/// Every method: the machine has the instructions of the implementing type, and pointers are valid
/// for 16 values.
pub(crate) trait F32x16: Copy {
    /// Most rows of a register block of an attention matmul.
    const ROWS: usize;
    /// Vectors per row of such a block.
    const COLUMNS: usize;

    /// Runs code in a function of its own, compiled for the instructions of this type.
    unsafe fn outline<O: Outlined>(code: O);
    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(at: *const f32) -> Self;
    unsafe fn load_f16(at: *const u16) -> Self;
    unsafe fn load_bf16(at: *const u16) -> Self;
    unsafe fn load_i8(at: *const i8) -> Self;
    /// The low halves of 16 bytes, and the high ones.
    unsafe fn load_nibbles(at: *const u8) -> [Self; 2];
    /// The unsigned byte at `byte` (0 to 3) of each of 16 groups of four.
    unsafe fn load_u8_of_4(at: *const [u8; 4], byte: usize) -> Self;
    unsafe fn store(self, at: *mut f32);
    /// Rounds to the nearest binary16, ties to even.
    unsafe fn store_f16(self, at: *mut u16);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self · b + c`.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// The larger; `other` where either is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// Lanes of `self` whose bit is set, of `other` where it is clear.
    unsafe fn keep(self, bits: u16, other: Self) -> Self;
    /// `2^x` per lane: [`exp2`](super::scalar::exp2) but for its rounding.
    unsafe fn exp2(self) -> Self;
    /// Sum of all lanes; halves are added until one lane is left.
    unsafe fn sum(self) -> f32;
    /// The largest lane.
    unsafe fn highest(self) -> f32;
}

/// Coefficients of `(2^r − 1) / r` for |r| ≤ 1/2, interpolated at Chebyshev nodes; `1 + r·q(r)` is
/// within 0.8 ULP.
pub(crate) const EXP2: [f32; 6] = [
    std::f32::consts::LN_2,
    0.240_226_5,
    0.055_503_57,
    0.009_618_083,
    0.001_339_086_3,
    1.545_316_3e-4,
];

/// `2^x` rounds to zero below the first bound and is infinite above the second.
pub(crate) const EXP2_RANGE: [f32; 2] = [-160.0, 160.0];

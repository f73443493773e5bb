//! Sixteen `f32` side by side: what the attention kernels are written in, once for all
//! instruction sets.
#![expect(unsafe_code, reason = "loads and stores through pointers, as the intrinsics have it")]

/// Values per vector.
pub(crate) const LANES: usize = 16;

/// Sixteen values of f32.
///
/// # Safety
/// Every method: the machine has the instructions of the implementing type, and pointers are
/// valid for 16 values.
pub(crate) trait F32x16: Copy {
    /// Most rows of a register block.
    const ROWS: usize;
    /// Vectors per row of it.
    const COLUMNS: usize;

    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(at: *const f32) -> Self;
    unsafe fn load_f16(at: *const u16) -> Self;
    unsafe fn load_bf16(at: *const u16) -> Self;
    unsafe fn load_i8(at: *const i8) -> Self;
    unsafe fn store(self, at: *mut f32);
    /// Rounded to nearest binary16, ties to even.
    unsafe fn store_f16(self, at: *mut u16);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self · b + c`.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// The larger; `other` where either is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// `other` where the bit is clear.
    unsafe fn keep(self, bits: u16, other: Self) -> Self;
    /// `2^x`: the result of [`exp2`], lane by lane, but for its rounding.
    unsafe fn exp2(self) -> Self;
    /// Sum of all lanes: halves are added until one is left.
    unsafe fn sum(self) -> f32;
    /// The largest lane.
    unsafe fn highest(self) -> f32;
}

/// Coefficients of `(2^r − 1) / r` for |r| ≤ 1/2, interpolated at Chebyshev nodes; `1 + r·q(r)`
/// is within 0.8 ULP.
pub(crate) const EXP2: [f32; 6] = [
    std::f32::consts::LN_2,
    0.240_226_5,
    0.055_503_57,
    0.009_618_083,
    0.001_339_086_3,
    1.545_316_3e-4,
];

/// Below the first, `2^x` rounds to zero, and above the second it is infinite.
pub(crate) const EXP2_RANGE: [f32; 2] = [-160.0, 160.0];

//! Conversion between binary16 and f32, branch-free so that the compiler can vectorise it.

/// The exact value of a binary16.
#[inline(always)]
pub fn to_f32(h: u16) -> f32 {
    let magnitude = u32::from(h & 0x7fff) << 13;
    // The exponent bias of binary16 is 15, that of binary32 is 127; the product also
    // normalises subnormals.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((254 - 15) << 23);
    let special = if h & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits((u32::from(h & 0x8000) << 16) | scaled.to_bits() | special)
}

/// The nearest binary16, ties to even; values that are too large become infinite.
#[inline(always)]
pub fn from_f32(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Normal result: rebias, then round the 13 dropped bits half to even.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    // Subnormal result: adding 0.5 lets the adder round at 2^-24, the unit of a subnormal.
    let tiny = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let nan = 0x7e00;
    let result = if magnitude > 0x7f80_0000 {
        nan
    } else if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        tiny
    } else {
        normal
    };
    ((bits >> 16) & 0x8000 | result) as u16
}

/// `x` rounded to binary16 and back.
#[inline(always)]
pub fn round(x: f32) -> f32 {
    to_f32(from_f32(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binary16_converts_as_in_the_half_crate() {
        for h in 0..=u16::MAX {
            let want = half::f16::from_bits(h);
            let got = to_f32(h);
            assert!(got == want.to_f32() || got.is_nan() && want.is_nan(), "{h:#x}");
            if !want.is_nan() {
                assert_eq!(from_f32(got), h);
            }
        }
    }

    #[test]
    fn rounding_to_binary16_agrees_with_the_half_crate_at_every_boundary() {
        for bits in (0..=u32::MAX).step_by(4093) {
            for near in [bits, bits & !0x1fff | 0x1000, bits & !0x1fff | 0x1001] {
                let x = f32::from_bits(near);
                let want = half::f16::from_f32_const(x);
                let got = half::f16::from_bits(from_f32(x));
                assert!(got.to_bits() == want.to_bits() || x.is_nan() && got.is_nan(), "{x:e}");
            }
        }
    }
}

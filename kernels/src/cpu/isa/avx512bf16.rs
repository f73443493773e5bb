//! AVX-512 with the products of bfloat16 pairs: attention multiplies twice as many values at once.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod pairs;

use super::paired::{Pair, Paired, Pairs};
use super::*;

super::attending!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c",
    product(p: &Product<'_, Pair, Pairs<'_>>, c: &mut [f32]) = pairs::product;
    widen(w: &Widen<'_>, out: &mut [Pair]) = pairs::widen;
    round(x: &[f32], out: &mut [Pair]) = pairs::round;
);

pub(super) static KERNELS: Kernels =
    Kernels { paired: Some(&Paired { product, widen, round }), ..avx512::KERNELS };

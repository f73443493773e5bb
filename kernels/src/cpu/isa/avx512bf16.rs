//! AVX-512 with the products of bfloat16 pairs: attention multiplies twice as many values at once.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod pairs;

use super::attn_bf16::{AttnBf16Kernels, Bf16Pair, PairPanel};
use super::*;

super::simd_unsafe_fns!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c",
    matmul(p: &AttnMatmul<'_, Bf16Pair, PairPanel<'_>>, c: &mut [f32]) = pairs::matmul;
    pack_kv(w: &KvConvert<'_>, out: &mut [Bf16Pair]) = pairs::pack_kv;
    round(x: &[f32], out: &mut [Bf16Pair]) = pairs::round;
);

pub(super) static KERNELS: Kernels =
    Kernels { attn_bf16: Some(&AttnBf16Kernels { matmul, pack_kv, round }), ..avx512::KERNELS };

//! AVX-512 with `vdpbf16ps`: attention multiplies pairs of bfloat16, twice as many values at once.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod pairs;

use crate::isa::avx512;
use crate::isa::kernels::{self, AttnBf16Kernels, Kernels};
use crate::loops::attn_bf16::{Bf16Pair, PairPanel};
use crate::loops::attn_matmul::AttnMatmul;
use crate::loops::kv::KvConvert;

kernels::simd_unsafe_fns!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c",
    matmul(p: &AttnMatmul<'_, Bf16Pair, PairPanel<'_>>, c: &mut [f32]) = pairs::matmul;
    pack_kv(w: &KvConvert<'_>, out: &mut [Bf16Pair]) = pairs::pack_kv;
    round(x: &[f32], out: &mut [Bf16Pair]) = pairs::round;
);

pub(super) static KERNELS: Kernels =
    Kernels { attn_bf16: Some(&AttnBf16Kernels { matmul, pack_kv, round }), ..avx512::KERNELS };

//! AVX2 with the dot products of AVX-VNNI: 256-bit `vpdpbusd`, which processors without AVX-512
//! have. All else is as with AVX2.
//!
//! Processors with AVX-512 VNNI need not have this encoding, and emulators do not know it, so that
//! the tests run these kernels only on a machine that has it. Elsewhere the same source is tested
//! with the encoding of AVX-512.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use super::avx2::dots;
use super::*;

super::gemm_q8_fn!(gemm_q8, "avxvnni,avx2,fma,f16c", dots::Vnni);

pub(super) static KERNELS: Kernels =
    Kernels { shape: blocks::shape::<dots::Vnni>(), gemm_q8, ..avx2::KERNELS };

//! AVX2 with the dot products of AVX-VNNI: 256-bit `vpdpbusd`, which processors without AVX-512 have.
//! Everything else is as with AVX2.
//!
//! Processors with AVX-512 VNNI need not have this encoding, and emulators do not know it, so the tests run
//! these kernels only on a machine that has it. Elsewhere the same source is tested with the encoding of
//! AVX-512.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

use crate::isa::avx2::{self, dot_i8::Vnni};
use crate::isa::kernels::{self, Kernels};
use crate::loops::gemm_q8::tile_shape;

kernels::gemm_q8_fn!(gemm_q8, "avxvnni,avx2,fma,f16c", Vnni);

pub(super) static KERNELS: Kernels =
    Kernels { shape: tile_shape::<Vnni>(), gemm_q8, ..avx2::KERNELS };

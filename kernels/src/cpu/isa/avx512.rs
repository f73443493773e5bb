//! AVX-512 with VNNI.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod direct;
mod floats;
mod formats;
mod gemm;
mod pairs;
mod quantize;
mod unpack;

use super::*;
use crate::binary16;
use crate::quant::DType;
use std::arch::x86_64::*;

super::kernels!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c",
    fma = true,
    quant_tiles = quant_tiles,
    float_tiles = floats::float_tiles,
    gemm = gemm::gemm,
    quantize = quantize::quantize,
    unpack = unpack::unpack,
    f16_to_f32 = f16_to_f32,
);

/// Most rows for which each tile is unpacked in registers; more rows share what is unpacked once.
const DIRECT_ROWS: usize = 8;

fn quant_tiles(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    job.check(out);
    if job.rows == 0 || out.is_empty() {
        return;
    }
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features; `check` has compared all lengths, and the tiles that the format's
    // functions read have the layout of the format.
    unsafe {
        match job.rows {
            ..=DIRECT_ROWS => formats::with_format!(job.weight.dtype(), direct::tiles(job, out)),
            _ => formats::with_format!(job.weight.dtype(), pairs::tiles(job, out, scratch)),
        }
    }
}

fn f16_to_f32(x: &[u16], out: &mut [f32]) {
    // SAFETY: reached only through this module's table, as above.
    unsafe { f16_to_f32_body(x, out) }
}

#[target_feature(enable = "avx512f")]
fn f16_to_f32_body(x: &[u16], out: &mut [f32]) {
    let (xs, x_tail) = x.as_chunks::<16>();
    let (outs, out_tail) = out.as_chunks_mut::<16>();
    for (x, out) in xs.iter().zip(outs) {
        // SAFETY: both chunks have 16 values.
        unsafe {
            let half = _mm256_loadu_si256(x.as_ptr().cast());
            _mm512_storeu_ps(out.as_mut_ptr(), _mm512_cvtph_ps(half));
        }
    }
    binary16::f16_to_f32(x_tail, out_tail);
}

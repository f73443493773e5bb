//! AVX-512 with VNNI.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod ahead;
mod factors;
mod gemm_f32;
mod gemm_q8_panel;
mod gemm_q8_small;
mod load_group;
mod quantize;
mod unpack;

use crate::isa::kernels;
use crate::loops::gemm_args::{GemmQ8, GemmScratch, TilePairGroup};
use crate::loops::tile_shape::TileShape;
use crate::simd::avx512::Avx512F32x16;
use crate::simd::f32x16::F32x16;
use lapwing_model::formats::with_format;

kernels::kernels!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c",
    fma = true,
    lanes = Avx512F32x16,
    shape = TileShape {
        direct_rows: DIRECT_ROWS,
        rows: gemm_q8_panel::ROWS,
        tiles: gemm_q8_panel::TILES,
        panel_group_bytes: size_of::<TilePairGroup>(),
        float_rows: gemm_f32::ROWS,
        float_tiles: gemm_f32::TILES,
    },
    gemm_q8 = gemm_q8,
    gemm_f32 = gemm_f32::gemm_f32,
    quantize = quantize::quantize,
    unpack_tile = unpack::unpack_tile,
    direct_queries = <Avx512F32x16 as F32x16>::ROWS,
);

/// Most rows for which tiles are unpacked in registers; more rows share unpacked panels.
const DIRECT_ROWS: usize = 8;

fn gemm_q8(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
    job.check(out);
    if job.rows == 0 || out.is_empty() {
        return;
    }
    // SAFETY: reached only through this module's table, which `Isa` hands out only when the
    // machine has the features; `check` has compared all lengths, and the tiles that the format's
    // functions read have the layout of the format.
    unsafe {
        match job.rows {
            ..=DIRECT_ROWS => with_format!(job.weight.dtype(), gemm_q8_small::gemm(job, out)),
            _ => with_format!(job.weight.dtype(), gemm_q8_panel::gemm(job, out, scratch)),
        }
    }
}

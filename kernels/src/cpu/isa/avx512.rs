//! AVX-512 with VNNI.
#![expect(unsafe_code, reason = "calls into code compiled for more features than the crate")]

mod direct;
mod floats;
pub(super) mod lanes;
mod pairs;
mod quantize;
mod stored;
mod unpack;

use super::*;

super::kernels!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c",
    fma = true,
    lanes = lanes::Zmm,
    shape = TileShape {
        direct_rows: DIRECT_ROWS,
        rows: pairs::ROWS,
        tiles: pairs::TILES,
        panel_group_bytes: size_of::<tile::TilePairGroup>(),
        float_rows: floats::ROWS,
        float_tiles: floats::TILES,
    },
    gemm_q8 = gemm_q8,
    gemm_f32 = floats::gemm_f32,
    quantize = quantize::quantize,
    unpack = unpack::unpack,
    direct_queries = <lanes::Zmm as super::lanes::Lanes>::ROWS,
);

/// Most rows for which each tile is unpacked in registers; more rows share what is unpacked once.
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
            ..=DIRECT_ROWS => formats::with_format!(job.weight.dtype(), direct::tiles(job, out)),
            _ => formats::with_format!(job.weight.dtype(), pairs::tiles(job, out, scratch)),
        }
    }
}

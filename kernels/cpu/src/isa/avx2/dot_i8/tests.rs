//! The AVX-VNNI kernels, in the encoding of AVX-512 for the same instruction.

use super::*;
use crate::context::Cpu;
use crate::isa::Isa;
use crate::loops::gemm_args::{GemmQ8, GemmScratch};
use crate::loops::gemm_q8;
use crate::loops::prefetch_stream::NextTiles;
use crate::loops::quantize::QuantScheme;
use crate::matrix::Matrix;
use crate::packed::PackedMatrix;
use crate::packed::layout::TILE;
use crate::quantize::{InputSource, Q8Buffer};
use lapwing_model::formats::DType;
use lapwing_model::reference;

struct Evex;
vnni!(Evex, "avx512vnni,avx512vl,avx2,fma,f16c", _mm256_dpbusd_epi32);

/// # Safety
/// The machine has the features, and lengths are as [`GemmQ8::check`] demands.
#[target_feature(enable = "avx512vnni,avx512vl,avx2,fma,f16c")]
unsafe fn tiles<F: Format>(job: &GemmQ8<'_>, out: &mut [f32], scratch: &mut GemmScratch) {
    // SAFETY: by the caller; this function is compiled for the features.
    unsafe { gemm_q8::gemm_q8::<Evex, F>(job, out, scratch) }
}

#[test]
fn vnni_and_maddubs_give_the_same_bits() {
    let Some(isa) = Isa::available().into_iter().find(|isa| isa.name() == "avx2") else {
        return;
    };
    if !is_x86_feature_detected!("avx512vnni") || !is_x86_feature_detected!("avx512vl") {
        return;
    }
    let cpu = Cpu::new(1, isa);
    let noise = |seed: usize, len: usize| -> Vec<f32> {
        (0..len).map(|i| ((i * 7919 + seed) % 1009) as f32 / 504.0 - 1.0).collect()
    };
    let (n, k) = (40, 512);
    for dtype in DType::ALL {
        let Some(kind) = QuantScheme::of_format(dtype) else { continue };
        let bytes = reference::quantize(dtype, &noise(3, n * k));
        let weight = PackedMatrix::new(&cpu, &Matrix::new(dtype, n, k, &bytes).unwrap()).unwrap();
        for rows in [1, 2, 3, 4, 5, 8, 13] {
            let mut rows_q8 = Q8Buffer::default();
            let source = InputSource { x: &noise(rows, rows * k), k, norm: None };
            rows_q8.fill(&cpu, kind, &source);
            let x = rows_q8.rows().blocks;
            let next_tiles = NextTiles::default();
            let job = GemmQ8 { weight: &weight, tiles: 0..3, x, rows, panel: 8, next_tiles };
            let mut outs = [vec![f32::NAN; rows * 3 * TILE], vec![f32::NAN; rows * 3 * TILE]];
            let mut scratch = GemmScratch::default();
            (isa.kernels().gemm_q8)(&job, &mut outs[0], &mut scratch);
            let out = &mut outs[1];
            // SAFETY: the machine has the features, as seen above, and the lengths are right.
            unsafe { lapwing_model::formats::with_format!(dtype, tiles(&job, out, &mut scratch)) };
            let [pairs, fours] =
                outs.map(|out| out.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            assert_eq!(pairs, fours, "{dtype}, {rows} rows");
        }
    }
}

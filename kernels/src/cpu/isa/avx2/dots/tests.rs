//! The kernels of AVX-VNNI, with the encoding that AVX-512 has for the same instruction.

use super::*;
use crate::cpu::ahead::Following;
use crate::cpu::isa::{blocks, formats};
use crate::cpu::packed::Packed;
use crate::cpu::products::FormSource;
use crate::cpu::quantize::{ActBuffer, ActKind};
use crate::cpu::tile::{KernelScratch, QuantJob, TILE};
use crate::cpu::{Cpu, Isa, Matrix};
use crate::quant::DType;
use crate::reference;

struct Evex;
vnni!(Evex, _mm256_dpbusd_epi32);

/// # Safety
/// The machine has the features, and lengths are as [`QuantJob::check`] demands.
#[target_feature(enable = "avx512vnni,avx512vl,avx2,fma,f16c")]
unsafe fn tiles<F: Format>(job: &QuantJob<'_>, out: &mut [f32], scratch: &mut KernelScratch) {
    // SAFETY: by the caller; this function is compiled for the features.
    unsafe { blocks::tiles::<Evex, F>(job, out, scratch) }
}

#[test]
fn dot_products_of_four_differ_from_those_of_pairs() {
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
        let Some(kind) = ActKind::of_format(dtype) else { continue };
        let bytes = reference::quantize(dtype, &noise(3, n * k));
        let weight = Packed::new(&cpu, &Matrix::new(dtype, n, k, &bytes).unwrap()).unwrap();
        for rows in [1, 2, 3, 4, 5, 8, 13] {
            let mut acts = ActBuffer::default();
            let source = FormSource { x: &noise(rows, rows * k), k, norm: None };
            acts.fill(&cpu, kind, &source);
            let x = acts.acts().blocks;
            let following = Following::default();
            let job = QuantJob { weight: &weight, tiles: 0..3, x, rows, panel: 8, following };
            let mut outs = [vec![f32::NAN; rows * 3 * TILE], vec![f32::NAN; rows * 3 * TILE]];
            let mut scratch = KernelScratch::default();
            (isa.kernels().quant_tiles)(&job, &mut outs[0], &mut scratch);
            let out = &mut outs[1];
            // SAFETY: the machine has the features, as seen above, and the lengths are right.
            unsafe { formats::with_format!(dtype, tiles(&job, out, &mut scratch)) };
            let [pairs, fours] =
                outs.map(|out| out.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            assert_eq!(pairs, fours, "{dtype}, {rows} rows");
        }
    }
}

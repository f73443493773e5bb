//! A row has the same bits alone, in a batch, and on any number of threads.

use crate::support::{bits, multiplying, noise, packed};
use lapwing_kernels::cpu::{self, Cpu, Isa, LayerNormWeights, Matrix, NormGroups};
use lapwing_kernels::formats::DType;
use lapwing_kernels::op::{Activation, Curve};
use lapwing_kernels::reference;

#[test]
fn a_matmul_row_has_the_same_bits_in_any_batch() {
    let (m, n, k) = (23, 50, 512);
    for isa in multiplying() {
        let one = Cpu::new(1, isa);
        for dtype in DType::ALL {
            let bytes = reference::quantize(dtype, &noise(1, n * k));
            let weight = packed(&one, &Matrix::new(dtype, n, k, &bytes).unwrap());
            let x = noise(2, m * k);
            let mut alone = vec![0.0; m * n];
            for (x, out) in x.chunks(k).zip(alone.chunks_mut(n)) {
                cpu::matmul(&one, &weight.all(), x, None, out);
            }
            for threads in [1, 2, 3, 8] {
                let many = Cpu::new(threads, isa);
                for batch in [1, 2, 3, 4, 5, 6, 7, 8, 23] {
                    let mut out = vec![0.0; m * n];
                    for (x, out) in x.chunks(batch * k).zip(out.chunks_mut(batch * n)) {
                        cpu::matmul(&many, &weight.all(), x, None, out);
                    }
                    let what = format!("{} {dtype} batch {batch} on {threads}", isa.name());
                    assert_eq!(bits(&out), bits(&alone), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_matmul_row_has_the_same_bits_in_a_pass_of_1_to_33_rows() {
    // Columns for several panels of quantised weights, and several runs of columns of float weights.
    let (m, n, k) = (33, 40, 2304);
    for cpu in multiplying().into_iter().map(|isa| Cpu::new(2, isa)) {
        for dtype in DType::ALL {
            let bytes = reference::quantize(dtype, &noise(1, n * k));
            let weight = packed(&cpu, &Matrix::new(dtype, n, k, &bytes).unwrap());
            let x = noise(2, m * k);
            let mut alone = vec![0.0; m * n];
            for (x, out) in x.chunks(k).zip(alone.chunks_mut(n)) {
                cpu::matmul(&cpu, &weight.all(), x, None, out);
            }
            for rows in 2..=m {
                let mut out = vec![f32::NAN; rows * n];
                cpu::matmul(&cpu, &weight.all(), &x[..rows * k], None, &mut out);
                let what = format!("{} {dtype} {rows} rows", cpu.isa().name());
                assert_eq!(bits(&out), bits(&alone[..rows * n]), "{what}");
            }
        }
    }
}

#[test]
fn an_element_wise_row_has_the_same_bits_in_any_batch() {
    let (rows, width) = (40, 577);
    for isa in Isa::available() {
        let (one, many) = (Cpu::new(1, isa), Cpu::new(3, isa));
        let (x, y, w) = (noise(1, rows * width), noise(2, rows * width), noise(3, width));
        let (mut alone, mut together) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        for (x, out) in x.chunks(width).zip(alone.chunks_mut(width)) {
            cpu::rms_norm(&one, x, &w, 1e-6, out);
        }
        cpu::rms_norm(&many, &x, &w, 1e-6, &mut together);
        assert_eq!(bits(&alone), bits(&together), "{} rms_norm", isa.name());
        let weights = LayerNormWeights { weight: Some(&w), bias: Some(&w), eps: 1e-6 };
        let groups = NormGroups { width, group: width };
        for (x, out) in x.chunks(width).zip(alone.chunks_mut(width)) {
            cpu::layer_norm(&one, x, groups, &weights, out);
        }
        cpu::layer_norm(&many, &x, groups, &weights, &mut together);
        assert_eq!(bits(&alone), bits(&together), "{} layer_norm", isa.name());
        let few = [Curve::Gelu, Curve::GeluTanh, Curve::ReluSquared, Curve::Clamp { limit: 0.5 }];
        for curve in few.into_iter().chain([Curve::Sigmoid, Curve::Softplus, Curve::Exp]) {
            for (x, out) in x.chunks(width).zip(alone.chunks_mut(width)) {
                cpu::curve(&one, curve, x, out);
            }
            cpu::curve(&many, curve, &x, &mut together);
            assert_eq!(bits(&alone), bits(&together), "{} {curve:?}", isa.name());
        }
        for gate in Activation::ALL {
            let all = x.chunks(width).zip(y.chunks(width)).zip(alone.chunks_mut(width));
            for ((x, y), out) in all {
                cpu::gated(&one, gate, x, y, out);
            }
            cpu::gated(&many, gate, &x, &y, &mut together);
            assert_eq!(bits(&alone), bits(&together), "{} {gate:?}", isa.name());
        }
    }
}

//! A matmul does not depend on what is computed with it or on its epilogue.

mod dispatch;

use super::run::{matmuls, quantized_matmul};
use super::{Dispatch, Epilogue, Matmul, Product, QuantizedInputs, matmul};
use crate::caches::Caches;
use crate::context::Cpu;
use crate::elementwise::gated;
use crate::isa::Isa;
use crate::loops::quantize::QuantScheme;
use crate::matrix::Matrix;
use crate::packed::PackedMatrix;
use crate::quantize::{InputSource, Q8Buffer};
use lapwing_model::formats::DType;
use lapwing_model::op::{Activation, Curve};
use lapwing_model::quant::Activations;
use lapwing_model::reference;
use std::ops::Range;

fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn is_emulated() -> bool {
    std::env::var_os("LAPWING_EMULATED").is_some()
}

/// Every instruction set of this machine; on an emulated one (`LAPWING_EMULATED`) without portable Rust, which the host
/// tests much faster.
fn isas() -> Vec<Isa> {
    Isa::available().into_iter().filter(|isa| !is_emulated() || isa.name() != "generic").collect()
}

/// Of `rows` in ascending order all but the last, which the host tests, on an emulated machine.
fn tried(rows: &[usize]) -> &[usize] {
    &rows[..rows.len() - usize::from(is_emulated())]
}

fn weight(cpu: &Cpu, dtype: DType, n: usize, k: usize) -> PackedMatrix {
    let bytes = reference::quantize(dtype, &noise(n as u32, n * k));
    PackedMatrix::new(cpu, &Matrix::new(dtype, n, k, &bytes).unwrap()).unwrap()
}

/// The columns `range` of rows of `n`.
fn columns(x: &[f32], n: usize, range: &Range<usize>) -> Vec<f32> {
    x.chunks(n).flat_map(|row| row[range.clone()].iter().copied()).collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_range_of_channels_has_the_bits_of_all_channels() {
    let (n, k) = (77, 256);
    for isa in Isa::available() {
        let cpu = Cpu::new(2, isa);
        for dtype in DType::ALL {
            let weight = weight(&cpu, dtype, n, k);
            for m in [1, 3, 9] {
                let (x, bias) = (noise(1, m * k), noise(2, n));
                let mut all = vec![0.0; m * n];
                matmul(&cpu, &weight.all(), &x, Some(&bias), &mut all);
                for range in [0..n, 0..1, 15..17, 25..51, 16..48, 76..77, 30..30] {
                    let mut part = vec![f32::NAN; m * range.len()];
                    let (features, bias) = (weight.channels(range.clone()), &bias[range.clone()]);
                    matmul(&cpu, &features, &x, Some(bias), &mut part);
                    let what = format!("{} {dtype} {m} rows, {range:?}", isa.name());
                    assert_eq!(bits(&part), bits(&columns(&all, n, &range)), "{what}");
                }
            }
        }
    }
}

#[test]
fn f32_activations_multiply_exactly_the_stored_weights() {
    let n = 45;
    for isa in isas() {
        let exact = Cpu::new(2, isa).with_activations(Activations::F32);
        for (dtype, k) in DType::ALL.into_iter().flat_map(|dtype| [(dtype, 256), (dtype, 768)]) {
            let bytes = reference::quantize(dtype, &noise(9, n * k));
            let values = reference::dequantize(dtype, &bytes);
            let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let pack = |dtype, bytes: &[u8]| {
                PackedMatrix::new(&exact, &Matrix::new(dtype, n, k, bytes).unwrap()).unwrap()
            };
            let (stored, widened) = (pack(dtype, &bytes), pack(DType::F32, &values));
            for &m in tried(&[1, 2, 7, 31, 33, 200]) {
                let x = noise(m as u32, m * k);
                let [mut found, mut want] = [(); 2].map(|()| vec![f32::NAN; m * 40]);
                matmul(&exact, &stored.channels(3..43), &x, None, &mut found);
                matmul(&exact, &widened.channels(3..43), &x, None, &mut want);
                assert_eq!(bits(&found), bits(&want), "{} {dtype} {m} × {k}", isa.name());
            }
        }
    }
}

#[test]
fn matmuls_of_one_dispatch_have_the_bits_of_separate_ones() {
    let k = 512;
    let cases = [
        (1, Activations::Int8),
        (3, Activations::Int8),
        (2, Activations::Int8RowMin),
        (3, Activations::F32),
    ];
    let all = isas().into_iter();
    for (isa, (threads, activations)) in all.flat_map(|isa| cases.map(|case| (isa, case))) {
        let cpu = Cpu::new(threads, isa).with_activations(activations);
        for dtype in [DType::Q4_0, DType::Q4_1, DType::Q4K, DType::F16] {
            let [q, v, gate, up] = [70, 20, 45, 46].map(|n| weight(&cpu, dtype, n, k));
            for &m in tried(&[1, 2, 7, 40, 200]) {
                let (x, bias, residual) = (noise(3, m * k), noise(4, 46), noise(5, m * 20));
                let alone = |weight: &PackedMatrix, range: Range<usize>, bias: Option<&[f32]>| {
                    let mut out = vec![0.0; m * range.len()];
                    matmul(&cpu, &weight.channels(range), &x, bias, &mut out);
                    out
                };
                let mut inputs = QuantizedInputs::default();
                let source = InputSource { x: &x, k, norm: None };
                inputs.fill(&cpu, [dtype].into_iter(), &source);
                let rows = inputs.rows(&cpu, dtype, &x);
                let cut = 5..40;
                let activation = Activation::Silu;
                let up_bias = &bias[..cut.len()];
                let mut outs = [70, 20, cut.len()].map(|n| vec![f32::NAN; m * n]);
                let [a, b, c] = &mut outs;
                let gates = Epilogue::Gated {
                    gating: activation.into(),
                    up: Product { x: rows, weight: up.channels(cut.clone()), bias: Some(up_bias) },
                };
                let product =
                    |weight, bias, epilogue, out| (Matmul { x: rows, weight, bias, epilogue }, out);
                matmuls(
                    &cpu,
                    &Dispatch::of(m),
                    [
                        product(q.all(), None, Epilogue::Store, &mut a[..]),
                        product(
                            v.all(),
                            Some(&bias[..20]),
                            Epilogue::AddResidual(&residual),
                            &mut b[..],
                        ),
                        product(gate.channels(cut.clone()), None, gates, &mut c[..]),
                    ],
                );
                let mut sum = alone(&v, 0..20, Some(&bias[..20]));
                sum.iter_mut().zip(&residual).for_each(|(sum, r)| *sum += r);
                let mut gate_up = vec![0.0; m * cut.len()];
                let (gate, up) = (alone(&gate, cut.clone(), None), alone(&up, cut, Some(up_bias)));
                gated(&cpu, activation, &gate, &up, &mut gate_up);
                let wants = [alone(&q, 0..70, None), sum, gate_up];
                for (i, (out, want)) in outs.iter().zip(&wants).enumerate() {
                    assert_eq!(bits(out), bits(want), "{} {dtype} {m} rows: {i}", isa.name());
                }
            }
        }
    }
}

/// Caches with these sizes of the first and the second level.
fn caches(first: usize, second: usize) -> Caches {
    Caches { l1: first, l2: second, ..Caches::default() }
}

#[test]
fn quantising_on_the_fly_has_the_bits_of_quantising_later() {
    let (n, k) = (256, 256);
    let sizes = [caches(32 << 10, 1 << 20), caches(1 << 10, 4 << 10)];
    for (isa, caches) in isas().into_iter().flat_map(|isa| sizes.map(|c| (isa, c))) {
        let cpu = Cpu::new(2, isa).with_caches(caches);
        for dtype in [DType::Q4_1, DType::Q6K, DType::F16] {
            let [weight, up] = [1, 2].map(|seed| {
                let bytes = reference::quantize(dtype, &noise(seed, n * k));
                PackedMatrix::new(&cpu, &Matrix::new(dtype, n, k, &bytes).unwrap()).unwrap()
            });
            for m in [1, 7, 33] {
                let (x, bias, residual) = (noise(3, m * k), noise(4, n), noise(5, m * n));
                let mut inputs = QuantizedInputs::default();
                inputs.fill(&cpu, [dtype].into_iter(), &InputSource { x: &x, k, norm: None });
                let x = inputs.rows(&cpu, dtype, &x);
                let gating = Activation::GeluTanh.into();
                let thens = [
                    Epilogue::Store,
                    Epilogue::AddResidual(&residual),
                    Epilogue::Gated {
                        gating,
                        up: Product { x, weight: up.all(), bias: Some(&bias) },
                    },
                    Epilogue::Curve(Curve::ReluSquared),
                ];
                for epilogue in thens {
                    let product = Matmul {
                        x,
                        weight: weight.all(),
                        bias: Some(&bias),
                        epilogue: epilogue.clone(),
                    };
                    let mut values = vec![f32::NAN; m * n];
                    matmuls(&cpu, &Dispatch::of(m), [(product.clone(), &mut values[..])]);
                    use QuantScheme::{Q8_0, Q8_0Halves, Q8_1, Q8K};
                    for scheme in [Q8_0(8), Q8_0Halves(128), Q8_1, Q8K(32)] {
                        let (mut want, mut found) = (Q8Buffer::default(), Q8Buffer::default());
                        want.fill(&cpu, scheme, &InputSource { x: &values, k: n, norm: None });
                        quantized_matmul(
                            &cpu,
                            &Dispatch::of(m),
                            &product,
                            scheme,
                            found.room(m, n),
                        );
                        let what =
                            format!("{} {dtype} {m} rows, {epilogue:?}, {scheme:?}", isa.name());
                        assert_eq!(found.rows().blocks, want.rows().blocks, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn cache_sizes_change_no_bit() {
    let (n, k) = (45, 1280);
    let sizes = [(1 << 10, 2 << 10), (16 << 10, 64 << 10), (32 << 10, 1 << 20), (1 << 30, 1 << 30)];
    for (dtype, isa) in DType::ALL.into_iter().flat_map(|d| isas().into_iter().map(move |i| (d, i)))
    {
        let bytes = reference::quantize(dtype, &noise(n as u32, n * k));
        let matrix = Matrix::new(dtype, n, k, &bytes).unwrap();
        for m in [1, 9, 40] {
            let x = noise(6, m * k);
            let outs = sizes.map(|(first, second)| {
                let cpu = Cpu::new(2, isa).with_caches(caches(first, second));
                let mut out = vec![f32::NAN; m * n];
                let weight = PackedMatrix::new(&cpu, &matrix).unwrap();
                matmul(&cpu, &weight.all(), &x, None, &mut out);
                bits(&out)
            });
            for (size, out) in sizes.iter().zip(&outs) {
                assert_eq!(out, &outs[3], "{} {dtype} {m} rows, {size:?}", isa.name());
            }
        }
    }
}

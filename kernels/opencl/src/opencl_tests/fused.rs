//! Matmuls that compute other ops before and after them, against those ops one after another.

use super::{Bench, bits, cases, grouped, noise, plain};
use crate::ops::{Fused, Gated, Kernels, MatMul, Matrix, Norm, RmsNorm, View};
use crate::pack::Stored;
use lapwing_model::formats::DType;
use lapwing_model::op::Activation;
use lapwing_model::reference;

const EPS: f32 = 1e-5;

/// Formats with blocks of each length, and inputs with and without whole segments and blocks.
fn shapes() -> Vec<(DType, usize)> {
    let quick = [(DType::F16, 33), (DType::Q4_1, 576), (DType::Q6K, 256)].to_vec();
    let full = [
        (DType::F32, 1),
        (DType::F32, 257),
        (DType::F16, 576),
        (DType::Bf16, 31),
        (DType::Q4_0, 32),
        (DType::Q5_1, 288),
        (DType::Q8_0, 2112),
        (DType::Q4K, 768),
    ];
    cases(quick.clone(), [&quick[..], &full].concat())
}

/// What is computed with a matmul: before it and after it.
#[derive(Clone, Copy, Debug)]
struct Beside {
    has_norm: bool,
    gate: Option<Activation>,
}

/// The operands of a matmul.
struct Operands {
    cols: usize,
    channels: usize,
    weight: Matrix,
    x: Vec<f32>,
    gain: Vec<f32>,
}

impl Operands {
    fn new(bench: &Bench, dtype: DType, cols: usize, channels: usize) -> Operands {
        let bytes = reference::quantize(dtype, &noise(7, channels * cols));
        let stored = Stored { dtype, bytes: &bytes, rows: channels, cols };
        let weight = Matrix::upload(&bench.session, stored, "a test").unwrap();
        let (x, gain) = (noise(2, 16 * cols), noise(3, cols));
        Operands { cols, channels, weight, x, gain }
    }

    /// The first `rows` rows: a norm, a product and an activation, as one op if `is_one`.
    fn run(&self, bench: &mut Bench, rows: usize, is_one: bool, beside: Beside) -> Vec<f32> {
        let Beside { has_norm, gate } = beside;
        let Operands { cols, channels, weight, .. } = self;
        // Without gates some channels, with a bias and a residual.
        let (wanted, outputs) = match gate {
            Some(_) => (0..*channels, channels / 2),
            None => (32..*channels, channels - 32),
        };
        let bias = bench.floats(&noise(4, *channels));
        let residual = bench.guarded(&noise(5, rows * outputs), outputs);
        let x = bench.aligned(&self.x[..rows * cols], *cols);
        let normed = bench.aligned(&self.x[..rows * cols], *cols);
        let gain = bench.floats(&self.gain);
        let (product, out) = (bench.room(rows, *channels), bench.room(rows, outputs));
        let norm = has_norm.then_some(Norm { gain: &gain, eps: EPS });
        let matmul = |kernels: &mut Kernels, from: View<'_>, fused, to: View<'_>| {
            let channels = wanted.clone();
            let bias = gate.is_none().then_some(&bias);
            let residual = gate.is_none().then(|| residual.view());
            let job = MatMul { x: from, rows, weight, channels, bias, residual, fused, out: to };
            kernels.matmul(&job).unwrap();
        };
        if is_one {
            matmul(&mut bench.kernels, x.view(), Fused { norm, gate }, out.view());
            return bench.rows(&out);
        }
        if has_norm {
            let (x, out) = (x.view(), normed.view());
            let (weight, len) = (&gain, *cols);
            let job = RmsNorm { x, rows, groups: 1, weight, len, eps: EPS, out };
            bench.kernels.rms_norm(&job).unwrap();
        }
        let Some(activation) = gate else {
            matmul(&mut bench.kernels, normed.view(), Fused::default(), out.view());
            return bench.rows(&out);
        };
        matmul(&mut bench.kernels, normed.view(), Fused::default(), product.view());
        let gates = product.view();
        let up = View { at: gates.at + outputs, ..gates };
        let job = Gated { activation, gate: gates, up, rows, width: outputs, out: out.view() };
        bench.kernels.gated(&job).unwrap();
        bench.rows(&out)
    }
}

fn check(mut bench: Bench) {
    let kinds = [
        (true, None, 70),
        (false, Some(Activation::Silu), 64),
        (false, Some(Activation::GeluTanh), 32),
        (true, Some(Activation::Silu), 96),
        (false, Some(Activation::Sigmoid), 32),
    ];
    for (dtype, cols) in shapes() {
        for (has_norm, gate, channels) in kinds {
            let beside = Beside { has_norm, gate };
            let operands = Operands::new(&bench, dtype, cols, channels);
            for rows in cases(&[1, 3, 5][..], &[1, 2, 3, 4, 5, 8, 9, 13, 16]) {
                let x = bench.aligned(&operands.x[..rows * cols], cols);
                let fuses = bench.kernels.fuses(dtype, *rows, x.view()).unwrap();
                assert!(fuses || *rows > 5, "{dtype} × {cols}, {rows} rows");
                if fuses {
                    let [one, apart] =
                        [true, false].map(|is_one| operands.run(&mut bench, *rows, is_one, beside));
                    assert_eq!(
                        bits(&one),
                        bits(&apart),
                        "{dtype} × {cols}, {rows} rows, {beside:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn norms_and_gates_in_matmuls_have_the_bits_of_separate_ops() {
    let Some(bench) = plain() else { return };
    check(bench);
}

#[test]
fn norms_and_gates_in_matmuls_of_gpus_have_the_bits_of_separate_ops() {
    let Some(bench) = grouped() else { return };
    check(bench);
}

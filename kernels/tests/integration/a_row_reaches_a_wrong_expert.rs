//! Experts against the reference, and against a matmul of each row and expert alone.

use crate::support::{assert_close, bits, multiplying, noise, packed};
use lapwing_kernels::cpu::{self, Cpu, ExpertMatrices, Experts, Gating, Matrix, PackedMatrix};
use lapwing_kernels::formats::DType;
use lapwing_kernels::op::{Activation, Curve, ExpertForm};
use lapwing_kernels::quant::Activations;
use lapwing_kernels::reference;

const COUNT: usize = 5;
const FORMATS: [DType; 8] = [
    DType::Q4K,
    DType::Q6K,
    DType::Q8_0,
    DType::Q4_0,
    DType::Mxfp4,
    DType::F16,
    DType::F32,
    DType::Bf16,
];
const FORMS: [ExpertForm; 4] = [
    ExpertForm::Gated(Activation::Silu),
    ExpertForm::ReluGated,
    ExpertForm::ClampedGated { alpha: 1.702, gate_limit: 0.75, limit: 0.5, offset: 1.0 },
    ExpertForm::Plain(Curve::ReluSquared),
];

/// A matrix of each expert, with biases and factors.
struct Stack {
    weight: PackedMatrix,
    values: Vec<f32>,
    stride: usize,
    /// The first of an expert's rows.
    first: usize,
    rows: usize,
    bias: Vec<f32>,
    scale: Vec<f32>,
}

impl Stack {
    /// An expert's rows begin inside a tile, unless `first` is 0.
    fn new(cpu: &Cpu, dtype: DType, [rows, cols]: [usize; 2], first: usize) -> Stack {
        let stride = if first == 0 { rows } else { rows + first + 2 };
        let all = COUNT * stride;
        let bytes = reference::quantize(dtype, &noise((rows + cols) as u64, all * cols));
        let matrix = Matrix::new(dtype, all, cols, &bytes).expect("a matrix");
        let weight = packed(cpu, &matrix);
        let scale = noise(7, COUNT).iter().map(|x| x + 1.5).collect();
        let values = reference::dequantize(dtype, &bytes);
        Stack { weight, values, stride, first, rows, bias: noise(8, all), scale }
    }

    fn matrices(&self, is_affine: bool) -> ExpertMatrices<'_> {
        ExpertMatrices {
            weight: &self.weight,
            stride: self.stride,
            first: self.first,
            rows: self.rows,
            bias: is_affine.then_some(&self.bias),
            scale: is_affine.then_some(&self.scale),
        }
    }

    fn rows_of(&self, expert: usize) -> std::ops::Range<usize> {
        let start = expert * self.stride + self.first;
        start..start + self.rows
    }

    /// One expert's product with one row, by a matmul of its own.
    fn alone(&self, cpu: &Cpu, expert: usize, x: &[f32], is_affine: bool) -> Vec<f32> {
        let rows = self.rows_of(expert);
        let factor = is_affine.then_some(self.scale[expert]);
        let bias = is_affine.then(|| &self.bias[rows.clone()]);
        let mut out = vec![f32::NAN; self.rows];
        cpu::matmul(cpu, &self.weight.channels(rows).times(factor), x, bias, &mut out);
        out
    }

    /// The same with the stored weights in f64.
    fn exact(&self, expert: usize, x: &[f32], is_affine: bool) -> Vec<f64> {
        let (rows, k) = (self.rows_of(expert), x.len());
        let product = reference::matmul_exact(&self.values[rows.start * k..rows.end * k], k, x);
        let bias = self.bias[rows].iter().map(|bias| f64::from(*bias));
        let scale = f64::from(self.scale[expert]);
        let affine = product.iter().zip(bias).map(|(x, bias)| x * scale + bias);
        if is_affine { affine.collect() } else { product }
    }
}

/// Experts of a layer, and what is done with their rows.
struct Layer {
    gate: Stack,
    up: Stack,
    down: Stack,
    used: usize,
    form: ExpertForm,
    is_affine: bool,
    weighs_input: bool,
}

impl Layer {
    fn new(cpu: &Cpu, formats: [DType; 3], used: usize, form: ExpertForm) -> Layer {
        Layer::of(cpu, formats, used, form, 3)
    }

    fn of(
        cpu: &Cpu,
        [gate, up, down]: [DType; 3],
        used: usize,
        form: ExpertForm,
        first: usize,
    ) -> Layer {
        let block = |dtype: DType| dtype.block_len();
        let width = 96_usize.next_multiple_of(block(gate)).next_multiple_of(block(up));
        // Floats have any number of columns.
        let inner = if block(down) > 1 { 96_usize.next_multiple_of(block(down)) } else { 77 };
        Layer {
            gate: Stack::new(cpu, gate, [inner, width], first),
            up: Stack::new(cpu, up, [inner, width], first),
            down: Stack::new(cpu, down, [45, inner], first),
            used,
            form,
            is_affine: true,
            weighs_input: false,
        }
    }

    fn width(&self) -> usize {
        self.up.weight.cols()
    }

    fn compute(&self, cpu: &Cpu, x: &[f32], route: &[f32]) -> Vec<f32> {
        let has_gate = !matches!(self.form, ExpertForm::Plain(_));
        let experts = Experts {
            count: COUNT,
            used: self.used,
            gate: has_gate.then(|| self.gate.matrices(self.is_affine)),
            up: self.up.matrices(self.is_affine),
            form: self.form,
            down: self.down.matrices(self.is_affine),
            weighs_input: self.weighs_input,
        };
        let rows = x.len() / self.width();
        let mut out = vec![f32::NAN; rows * self.used * self.down.rows];
        cpu::experts(cpu, &experts, x, route, &mut out);
        out
    }

    /// Calls `f(expert, what it reads)` for each row and slot.
    fn each(&self, x: &[f32], route: &[f32], mut f: impl FnMut(usize, &[f32])) {
        for (x, route) in x.chunks(self.width()).zip(route.chunks(2 * self.used)) {
            let (experts, weights) = route.split_at(self.used);
            for (expert, weight) in experts.iter().zip(weights) {
                let factor = if self.weighs_input { *weight } else { 1.0 };
                let x: Vec<f32> = x.iter().map(|x| x * factor).collect();
                f(*expert as usize, &x);
            }
        }
    }

    fn alone(&self, cpu: &Cpu, x: &[f32], route: &[f32]) -> Vec<f32> {
        let mut out = Vec::new();
        self.each(x, route, |expert, x| {
            let up = self.up.alone(cpu, expert, x, self.is_affine);
            let gate = || self.gate.alone(cpu, expert, x, self.is_affine);
            let mut middle = vec![f32::NAN; up.len()];
            let gating = match self.form {
                ExpertForm::Plain(curve) => {
                    cpu::curve(cpu, curve, &up, &mut middle);
                    None
                }
                ExpertForm::Gated(activation) => Some(Gating::Activation(activation)),
                ExpertForm::ReluGated => Some(Gating::Relu),
                ExpertForm::ClampedGated { alpha, gate_limit, limit, offset } => {
                    Some(Gating::Clamped { alpha, gate_limit, limit, offset })
                }
            };
            if let Some(gating) = gating {
                cpu::gated(cpu, gating, &gate(), &up, &mut middle);
            }
            out.extend(self.down.alone(cpu, expert, &middle, self.is_affine));
        });
        out
    }

    fn exact(&self, x: &[f32], route: &[f32]) -> Vec<f64> {
        let mut out = Vec::new();
        self.each(x, route, |expert, x| {
            let [gate, up] =
                [&self.gate, &self.up].map(|stack| stack.exact(expert, x, self.is_affine));
            let pairs = gate.iter().zip(&up);
            let middle = pairs.map(|(gate, up)| reference::expert_middle(self.form, *gate, *up));
            let middle: Vec<f32> = middle.map(|x| x as f32).collect();
            out.extend(self.down.exact(expert, &middle, self.is_affine));
        });
        out
    }
}

/// Routes of some rows: distinct experts for each, from those that `is_open` allows.
fn routes(rows: usize, used: usize, is_open: impl Fn(usize) -> bool) -> Vec<f32> {
    let open: Vec<usize> = (0..COUNT).filter(|expert| is_open(*expert)).collect();
    let mut route = Vec::new();
    for row in 0..rows {
        let experts = (0..used).map(|slot| open[(row * 3 + slot * (1 + row % 2)) % open.len()]);
        route.extend(experts.map(|expert| expert as f32));
        route.extend(noise(row as u64 + 1, used));
    }
    route
}

#[test]
fn experts_have_the_bits_of_a_matmul_of_each_row_alone() {
    for isa in multiplying() {
        for activations in [Activations::Int8, Activations::Int8RowMin, Activations::F32] {
            let [one, two] =
                [1, 2].map(|threads| Cpu::new(threads, isa).with_activations(activations));
            for (i, dtype) in FORMATS.into_iter().enumerate() {
                let of = |first| Layer::of(&one, [dtype; 3], 3, FORMS[i % FORMS.len()], first);
                let mut layers = [of(3), of(0)];
                for layer in &mut layers {
                    layer.is_affine = i % 3 != 1;
                    layer.weighs_input = i % 4 == 2;
                }
                for (layer, rows) in
                    layers.iter().flat_map(|layer| [1, 2, 7, 40].map(|rows| (layer, rows)))
                {
                    let (x, route) = (noise(9, rows * layer.width()), routes(rows, 3, |_| true));
                    let want = layer.alone(&one, &x, &route);
                    for cpu in [&one, &two] {
                        let found = layer.compute(cpu, &x, &route);
                        let threads = cpu.pool().threads();
                        let name = isa.name();
                        let first = layer.up.first;
                        let what = format!(
                            "{name} {activations:?} {dtype} {rows} from {first} on {threads}"
                        );
                        assert_eq!(bits(&found), bits(&want), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn gates_and_what_they_gate_may_have_formats_of_different_activations() {
    for isa in multiplying() {
        let cpu = Cpu::new(2, isa);
        let formats = [
            [DType::Q8_0, DType::Q4_0, DType::Q6K],
            [DType::Q4K, DType::F16, DType::Q8_0],
            [DType::F32, DType::Q5_1, DType::Bf16],
        ];
        for formats in formats {
            let layer = Layer::new(&cpu, formats, 2, FORMS[0]);
            for rows in [1, 9] {
                let (x, route) = (noise(3, rows * layer.width()), routes(rows, 2, |_| true));
                let (found, want) =
                    (layer.compute(&cpu, &x, &route), layer.alone(&cpu, &x, &route));
                assert_eq!(bits(&found), bits(&want), "{} {formats:?} {rows}", isa.name());
            }
        }
    }
}

#[test]
fn experts_of_any_distribution_of_rows_match_the_reference() {
    for isa in multiplying() {
        let cpu = Cpu::new(2, isa).with_activations(Activations::F32);
        for (i, dtype) in FORMATS.into_iter().enumerate() {
            for (used, open) in [(1, 2..3), (1, 0..5), (2, 3..5), (5, 0..5)] {
                let form = FORMS[(i + used) % FORMS.len()];
                let mut layer = Layer::new(&cpu, [dtype; 3], used, form);
                layer.weighs_input = used == 1;
                let rows = 11;
                let route = routes(rows, used, |expert| open.contains(&expert));
                let x = noise(10, rows * layer.width());
                let (found, want) = (layer.compute(&cpu, &x, &route), layer.exact(&x, &route));
                let scale = want.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
                let what = format!("{} {dtype} {form:?} {used} of {open:?}", isa.name());
                assert_close(&found, &want, 3e-6, scale, &what);
            }
        }
    }
}

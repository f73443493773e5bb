//! Blocks of chosen experts, against the reference, and in any company.

mod some;

use some::check_some_experts;

use super::rows::of_both_kinds;
use super::{Bench, bits, cases, noise};
use crate::ops::{ExpertMatrices, ExpertRoom, Experts, Stack};
use crate::session::Buffer;
use lapwing_model::formats::DType;
use lapwing_model::op::{Activation, Curve, ExpertForm};
use lapwing_model::reference;

const COUNT: usize = 5;

/// Biases before those of an expert's first channel, and after its last one.
const BESIDE: [usize; 2] = [3, 2];

const FORMS: [ExpertForm; 5] = [
    ExpertForm::Gated(Activation::Silu),
    ExpertForm::ReluGated,
    ExpertForm::ClampedGated { alpha: 1.702, gate_limit: 0.75, limit: 0.5, offset: 1.0 },
    ExpertForm::Plain(Curve::ReluSquared),
    ExpertForm::Gated(Activation::GeluTanh),
];

/// Formats without blocks, with blocks, with blocks of blocks, with tables, and without a decoder of their own. Experts decode as other
/// matrices do, whose tests have every format; with `LAPWING_TEST_FORMATS=all` these have, too.
fn formats() -> Vec<DType> {
    if std::env::var("LAPWING_TEST_FORMATS").is_ok_and(|which| which == "all") {
        return DType::ALL.to_vec();
    }
    let quick = vec![DType::Q4_0, DType::Mxfp4];
    let more =
        [DType::F32, DType::Bf16, DType::Q5_1, DType::Q8_0, DType::Q4K, DType::Q6K, DType::Iq2Xxs];
    cases(quick.clone(), [&quick[..], &more].concat())
}

of_both_kinds! {
    experts_agree_with_the_reference
    experts_of_gpus_agree_with_the_reference
    check_experts

    what_experts_make_of_a_row_does_not_depend_on_other_rows
    what_experts_of_gpus_make_of_a_row_does_not_depend_on_other_rows
    check_company

    some_experts_make_their_slots_and_no_others
    some_experts_of_gpus_make_their_slots_and_no_others
    check_some_experts

    numbers_that_no_expert_has_are_replaced
    numbers_that_no_expert_has_are_replaced_on_gpus
    check_wrong_numbers
}

/// A matrix of each expert, with biases and factors.
struct Weights {
    stack: Stack,
    values: Vec<f32>,
    rows: usize,
    bias: Vec<f32>,
    factors: Vec<f32>,
    on_device: [Buffer; 2],
}

impl Weights {
    fn new(bench: &Bench, dtype: DType, [rows, cols]: [usize; 2]) -> Weights {
        let stack = Stack::new(&bench.session, dtype, [COUNT, rows, cols], "a test").unwrap();
        let bytes = reference::quantize(dtype, &noise((rows + cols) as u32, COUNT * rows * cols));
        for (expert, bytes) in bytes.chunks(bytes.len() / COUNT).enumerate() {
            stack.put(&bench.session, expert, bytes).unwrap();
        }
        let values = reference::dequantize(dtype, &bytes);
        let bias = noise(8, COUNT * (rows + BESIDE[0] + BESIDE[1]));
        let factors: Vec<f32> = noise(7, COUNT).iter().map(|x| x + 1.5).collect();
        let on_device = [bench.floats(&bias), bench.floats(&factors)];
        Weights { stack, values, rows, bias, factors, on_device }
    }

    fn stride(&self) -> usize {
        self.rows + BESIDE[0] + BESIDE[1]
    }

    fn matrices(&self, is_affine: bool) -> ExpertMatrices<'_> {
        let [bias, factors] = &self.on_device;
        ExpertMatrices {
            stack: &self.stack,
            first: 0,
            bias: is_affine.then(|| (bias, [BESIDE[0], self.stride()])),
            factors: is_affine.then_some(factors),
        }
    }

    /// The product of an expert with a row, in f64.
    fn exact(&self, expert: usize, x: &[f32], is_affine: bool) -> Vec<f64> {
        let len = self.rows * x.len();
        let product = reference::matmul_exact(&self.values[expert * len..][..len], x.len(), x);
        if !is_affine {
            return product;
        }
        let bias = &self.bias[expert * self.stride() + BESIDE[0]..][..self.rows];
        let factor = f64::from(self.factors[expert]);
        product.iter().zip(bias).map(|(x, bias)| x * factor + f64::from(*bias)).collect()
    }
}

/// Experts of a layer.
struct Layer {
    gate: Weights,
    up: Weights,
    down: Weights,
    width: usize,
    used: usize,
    form: ExpertForm,
    is_affine: bool,
    weighs_input: bool,
}

impl Layer {
    fn new(bench: &Bench, [gate, up, down]: [DType; 3], used: usize, form: ExpertForm) -> Layer {
        let block = |dtype: DType| dtype.block_len();
        let width = 36_usize.next_multiple_of(block(gate)).next_multiple_of(block(up));
        // Floats have any number of columns.
        let inner = if block(down) > 1 { block(down) } else { 37 };
        Layer {
            gate: Weights::new(bench, gate, [inner, width]),
            up: Weights::new(bench, up, [inner, width]),
            down: Weights::new(bench, down, [45, inner]),
            width,
            used,
            form,
            is_affine: false,
            weighs_input: false,
        }
    }

    /// What the device makes of rows. `is_aligned`: each begins at a multiple of 4 values.
    fn run(&self, bench: &mut Bench, x: &[f32], route: &[f32], is_aligned: bool) -> Vec<f32> {
        self.run_own(bench, [x, route], is_aligned, [0, COUNT])
    }

    /// As [`run`](Layer::run), for some experts, and NaN for others: the first, and how many.
    fn run_own(
        &self,
        bench: &mut Bench,
        [x, route]: [&[f32]; 2],
        is_aligned: bool,
        own: [usize; 2],
    ) -> Vec<f32> {
        let (rows, made) = (x.len() / self.width, self.used * self.down.rows);
        let from = match is_aligned {
            true => bench.aligned(x, self.width),
            false => bench.guarded(x, self.width),
        };
        let chosen = bench.guarded(route, 2 * self.used);
        let out = bench.guarded_at(&vec![f32::NAN; rows * made], made, 3, made);
        let has_gate = !matches!(self.form, ExpertForm::Plain(_));
        let job = Experts {
            x: from.view(),
            rows,
            route: chosen.view(),
            used: self.used,
            all: COUNT,
            own,
            gate: has_gate.then(|| self.gate.matrices(self.is_affine)),
            up: self.up.matrices(self.is_affine),
            form: self.form,
            down: self.down.matrices(self.is_affine),
            weighs_input: self.weighs_input,
            out: out.view(),
        };
        let room = job.room_bytes().map(|bytes| bench.session.buffer(bytes, "a test").unwrap());
        bench.kernels.experts(&job, ExpertRoom(room.each_ref())).unwrap();
        bench.rows(&out)
    }

    fn exact(&self, x: &[f32], route: &[f32]) -> Vec<f64> {
        let mut out = Vec::new();
        for (x, route) in x.chunks(self.width).zip(route.chunks(2 * self.used)) {
            let (experts, weights) = route.split_at(self.used);
            for (expert, weight) in experts.iter().zip(weights) {
                let (expert, factor) =
                    (*expert as usize, if self.weighs_input { *weight } else { 1.0 });
                let x: Vec<f32> = x.iter().map(|x| x * factor).collect();
                let [gate, up] =
                    [&self.gate, &self.up].map(|weights| weights.exact(expert, &x, self.is_affine));
                let pairs = gate.iter().zip(&up);
                let middle =
                    pairs.map(|(gate, up)| reference::expert_middle(self.form, *gate, *up));
                let middle: Vec<f32> = middle.map(|x| x as f32).collect();
                out.extend(self.down.exact(expert, &middle, self.is_affine));
            }
        }
        out
    }
}

/// Routes of rows: distinct experts for each, from those of `open`.
fn routes(rows: usize, used: usize, open: &[usize]) -> Vec<f32> {
    let mut route = Vec::new();
    for row in 0..rows {
        let experts = (0..used).map(|slot| open[(row * 3 + slot * (1 + row % 2)) % open.len()]);
        route.extend(experts.map(|expert| expert as f32));
        route.extend(noise(row as u32 + 1, used));
    }
    route
}

/// One expert for all rows, all of them for each, and some of them.
const DISTRIBUTIONS: [(usize, &[usize]); 4] =
    [(1, &[2]), (1, &[0, 1, 2, 3, 4]), (2, &[3, 1, 4]), (5, &[4, 0, 1, 2, 3])];

fn check_experts(mut bench: Bench) {
    for (i, dtype) in formats().into_iter().enumerate() {
        for (at, (used, open)) in DISTRIBUTIONS.into_iter().enumerate() {
            let form = FORMS[(i + at) % FORMS.len()];
            let mut layer = Layer::new(&bench, [dtype; 3], used, form);
            layer.weighs_input = at % 3 == 1;
            layer.is_affine = at % 2 == 0;
            for rows in [1, 3, 23] {
                let (x, route) = (noise(10, rows * layer.width), routes(rows, used, open));
                let found = layer.run(&mut bench, &x, &route, rows != 3);
                let wanted = layer.exact(&x, &route);
                let scale = wanted.iter().fold(1.0, |max: f64, x| max.max(x.abs()));
                assert_eq!(found.len(), wanted.len());
                for (found, wanted) in found.iter().zip(&wanted) {
                    let error = (f64::from(*found) - wanted).abs();
                    let what = format!("{dtype} {form:?} {used} of {open:?}, {rows} rows");
                    assert!(error <= 1e-5 * scale, "{what}: {found}, not {wanted}");
                }
            }
        }
    }
}

/// Rows alone, which have products of their own, have the bits of rows whose experts compute many together.
fn check_company(mut bench: Bench) {
    let mixed = [[DType::Q8_0, DType::Q4_0, DType::F16], [DType::F32, DType::Q5_1, DType::Bf16]];
    let equal = cases(Vec::new(), formats()).into_iter().map(|dtype| [dtype; 3]);
    for (i, formats) in mixed.into_iter().take(cases(1, 2)).chain(equal).enumerate() {
        let (used, open) = DISTRIBUTIONS[i % DISTRIBUTIONS.len()];
        let mut layer = Layer::new(&bench, formats, used, FORMS[i % FORMS.len()]);
        layer.is_affine = i % 3 != 1;
        layer.weighs_input = i % 4 == 2;
        let rows = 70;
        let (x, route) = (noise(9, rows * layer.width), routes(rows, used, open));
        let shapes = bench.shapes();
        let shapes = &shapes[..shapes.len().min(cases(2, usize::MAX))];
        bench.kernels.force(shapes[0]);
        let alone = |bench: &mut Bench, row: usize| {
            let (x, route) = (&x[row * layer.width..][..layer.width], &route[2 * used * row..]);
            layer.run(bench, x, &route[..2 * used], true)
        };
        let wanted: Vec<f32> = (0..rows).flat_map(|row| alone(&mut bench, row)).collect();
        let made = wanted.len() / rows;
        for (shapes, range) in
            shapes.iter().flat_map(|shapes| [0..1, 3..5, 4..11, 0..70].map(|range| (shapes, range)))
        {
            bench.kernels.force(*shapes);
            let x = &x[range.start * layer.width..range.end * layer.width];
            let chosen = &route[2 * used * range.start..2 * used * range.end];
            for is_aligned in [true, false] {
                let found = layer.run(&mut bench, x, chosen, is_aligned);
                let wanted = &wanted[range.start * made..range.end * made];
                let pairs = found.chunks(made).zip(wanted.chunks(made));
                let other = pairs.enumerate().filter(|(_, (a, b))| bits(a) != bits(b));
                let other: Vec<usize> = other.map(|(row, _)| row).collect();
                let what = format!("{shapes:?} {formats:?} {range:?} aligned: {is_aligned}");
                assert!(other.is_empty(), "{what}: rows {other:?} differ");
            }
        }
    }
}

fn check_wrong_numbers(mut bench: Bench) {
    let layer = Layer::new(&bench, [DType::F32; 3], 1, FORMS[0]);
    let odd = [f32::NAN, -7.0, 1e30, f32::NEG_INFINITY, 5.0, 4.9];
    for rows in [1, 6] {
        let x = noise(9, rows * layer.width);
        for first in (0..odd.len()).step_by(cases(3, 1)) {
            let route = (0..rows).flat_map(|row| [odd[(first + row) % odd.len()], 1.0]);
            let found = layer.run(&mut bench, &x, &route.collect::<Vec<_>>(), true);
            assert!(found.iter().all(|x| x.is_finite()), "{found:?}");
        }
    }
}

//! Experts alone, in the shapes of two models, compared with the machine's limits and with matmuls of the same matrices: of as
//! many rows as an expert has on average, and of many rows. Routes are random, and one row's experts come from memory.
//!
//! `cargo bench -p lapwing-kernels --bench experts -- [threads] [isa] [rows,rows…]`

use lapwing_kernels::cost::Cost;
use lapwing_kernels::cpu::roofline::Roofline;
use lapwing_kernels::cpu::{self, Cpu, ExpertMatrices, Experts, Isa, Matrix, PackedMatrix};
use lapwing_kernels::formats::DType;
use lapwing_kernels::op::{Activation, ExpertForm};
use std::time::{Duration, Instant};

const REPEATS: usize = 15;
/// Rows of a matmul that is bound by arithmetic.
const MANY: usize = 512;

/// Experts of a model.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    count: usize,
    used: usize,
    width: usize,
    inner: usize,
    /// Formats of gates and ups, and of downs.
    formats: [DType; 2],
    form: ExpertForm,
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "Qwen3-30B-A3B",
        count: 128,
        used: 8,
        width: 2048,
        inner: 768,
        formats: [DType::Q4K, DType::Q6K],
        form: ExpertForm::Gated(Activation::Silu),
    },
    Shape {
        name: "gpt-oss-20b",
        count: 32,
        used: 4,
        width: 2880,
        inner: 2880,
        formats: [DType::Mxfp4, DType::Mxfp4],
        form: ExpertForm::ClampedGated { alpha: 1.702, gate_limit: 7.0, limit: 7.0, offset: 1.0 },
    },
];

/// Median seconds of `calls` calls after a warm-up call.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn seconds(calls: usize, mut f: impl FnMut(usize)) -> f64 {
    f(calls);
    let timed = (0..calls).map(|call| {
        let start = Instant::now();
        f(call);
        start.elapsed().as_secs_f64()
    });
    let mut times: Vec<f64> = timed.collect();
    times.sort_by(f64::total_cmp);
    times[calls / 2]
}

fn packed(cpu: &Cpu, dtype: DType, rows: usize, cols: usize) -> PackedMatrix {
    let row_bytes = dtype.row_bytes(cols).expect("whole blocks");
    let bytes: Vec<u8> = (0..row_bytes * rows).map(|i| (i * 7 % 61) as u8).collect();
    PackedMatrix::new(cpu, &Matrix::new(dtype, rows, cols, &bytes).expect("a matrix"))
        .expect("memory")
}

/// The weights of a shape.
struct Layer {
    shape: Shape,
    matrices: [PackedMatrix; 3],
}

impl Layer {
    fn new(cpu: &Cpu, shape: Shape) -> Layer {
        let Shape { count, width, inner, formats: [first, last], .. } = shape;
        let up = || packed(cpu, first, count * inner, width);
        Layer { shape, matrices: [up(), up(), packed(cpu, last, count * width, inner)] }
    }

    fn experts(&self) -> Experts<'_> {
        let Shape { count, used, width, inner, form, .. } = self.shape;
        let [gate, up, down] = [(0, inner), (1, inner), (2, width)].map(|(at, rows)| {
            let weight = &self.matrices[at];
            ExpertMatrices { weight, stride: rows, first: 0, rows, bias: None, scale: None }
        });
        Experts { count, used, gate: Some(gate), up, form, down, weighs_input: false }
    }

    /// Operations for `slots` rows of experts, and bytes of an expert.
    fn cost(&self, slots: usize) -> Cost {
        let Shape { count, width, inner, .. } = self.shape;
        let bytes: usize = self.matrices.iter().map(PackedMatrix::bytes).sum();
        Cost { flops: (slots * 6 * width * inner) as u64, bytes: (bytes / count) as u64 }
    }

    /// Seconds of a matmul of `rows` rows with each expert's matrices, one after another.
    fn matmuls(&self, cpu: &Cpu, rows: usize, experts: usize) -> f64 {
        let Shape { width, inner, .. } = self.shape;
        let (x, middle) = (values(rows * width), values(rows * inner));
        let (mut first, mut last) = (vec![0.0; rows * inner], vec![0.0; rows * width]);
        seconds(5, |_| {
            for expert in 0..experts {
                let at = expert * inner..(expert + 1) * inner;
                let [gate, up, down] = &self.matrices;
                cpu::matmul(cpu, &gate.channels(at.clone()), &x, None, &mut first);
                cpu::matmul(cpu, &up.channels(at), &x, None, &mut first);
                let at = expert * width..(expert + 1) * width;
                cpu::matmul(cpu, &down.channels(at), &middle, None, &mut last);
            }
        })
    }

    /// Seconds of matmuls of one row with the matrices of all experts at once.
    fn whole(&self, cpu: &Cpu) -> f64 {
        let Shape { count, width, inner, .. } = self.shape;
        let (x, mut out) = (values(width.max(inner)), vec![0.0; count * width.max(inner)]);
        seconds(5, |_| {
            for weight in &self.matrices {
                let (k, n) = (weight.cols(), weight.rows());
                cpu::matmul(cpu, &weight.all(), &x[..k], None, &mut out[..n]);
            }
        })
    }

    fn measure(&self, cpu: &Cpu, rows: usize, roof: &Roofline) {
        let Shape { name, count, used, width, .. } = self.shape;
        let x = values(rows * width);
        let mut out = vec![0.0; rows * used * width];
        let routes: Vec<Vec<f32>> = (0..=REPEATS).map(|i| routes(i, rows, count, used)).collect();
        let experts = self.experts();
        let time = seconds(REPEATS, |call| {
            cpu::experts(cpu, &experts, &x, &routes[call], &mut out);
        });
        let touched = |route: &Vec<f32>| {
            let mut seen = vec![false; count];
            let chosen = route.chunks(2 * used).flat_map(|route| &route[..used]);
            chosen.for_each(|expert| seen[*expert as usize] = true);
            seen.iter().filter(|seen| **seen).count()
        };
        let touched = routes.iter().map(touched).sum::<usize>() / routes.len();
        let cost = self.cost(rows * used);
        let read = (cost.bytes * touched as u64) as f64;
        let (gops, gb) = (cost.flops as f64 / time / 1e9, read / time / 1e9);
        let part = 100.0 * read / roof.read_bytes_per_second / time;
        println!(
            "{name} rows={rows:<4} {touched:3} experts {:9.1} us {gops:7.1} GOPS {gb:6.2} GB/s, {part:5.1} % of reading",
            time * 1e6
        );
        if rows == 1 {
            let time = self.whole(cpu);
            let read = (self.cost(1).bytes * count as u64) as f64;
            let (whole, part) =
                (read / time / 1e9, 100.0 * read / roof.read_bytes_per_second / time);
            println!(
                "  matmuls with all experts at once:     {whole:6.2} GB/s, {part:5.1} % of reading"
            );
        } else {
            let each = (rows * used).div_ceil(count);
            for (what, rows, experts) in [("as many", each, count), ("many", MANY, 2)] {
                let time = self.matmuls(cpu, rows, experts);
                let dense = self.cost(rows * experts).flops as f64 / time / 1e9;
                println!(
                    "  matmuls of {what} rows ({rows}): {dense:7.1} GOPS, experts have {:5.1} % of it",
                    100.0 * gops / dense
                );
            }
        }
    }
}

fn values(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i % 97) as f32 / 97.0 - 0.5).collect()
}

/// Random distinct experts for each row, with equal weights.
fn routes(seed: usize, rows: usize, count: usize, used: usize) -> Vec<f32> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let mut route = Vec::with_capacity(rows * 2 * used);
    let mut numbers: Vec<usize> = (0..count).collect();
    for _ in 0..rows {
        for slot in 0..used {
            numbers.swap(slot, slot + random(count - slot));
        }
        route.extend(numbers[..used].iter().map(|number| *number as f32));
        route.extend(std::iter::repeat_n(1.0 / used as f32, used));
    }
    route
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let threads = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let name = args.next();
    let rows = args.next().unwrap_or_else(|| "1,2,4,8,32,128,512".into());
    let rows: Vec<usize> = rows.split(',').filter_map(|rows| rows.parse().ok()).collect();
    let is_wanted = |isa: &Isa| name.as_ref().map_or(*isa == Isa::best(), |n| n == isa.name());
    for isa in Isa::available().into_iter().filter(is_wanted) {
        let cpu = Cpu::new(threads, isa);
        println!("{}; {} threads", isa.explain(), cpu.pool().threads());
        let start = Instant::now();
        let now = || -> Duration { start.elapsed() };
        let roof = Roofline::measure(&cpu, REPEATS, &now).expect("memory");
        println!("reading: {:.1} GB/s", roof.read_bytes_per_second / 1e9);
        if let Some(peak) = roof.int8 {
            println!("int8: {:.0} GOPS, {}", peak.ops_per_second / 1e9, peak.instructions);
        }
        for shape in SHAPES {
            let layer = Layer::new(&cpu, shape);
            rows.iter().for_each(|rows| layer.measure(&cpu, *rows, &roof));
        }
    }
}

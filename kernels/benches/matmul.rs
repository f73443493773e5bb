//! Matmuls in the shapes of a small model, and attention, compared with the machine's limits, which are
//! measured in the same run. Medians of several passes over all layers; every layer has its own weights,
//! so that decoding reads them from memory.
//!
//! `cargo bench -p lapwing-kernels -- [threads] [format,format…] [isa]`

use lapwing_kernels::cost::Cost;
use lapwing_kernels::cpu::roofline::{Kernel, Roofline};
use lapwing_kernels::cpu::{self, AttentionJob, AttentionSequence, Cpu, Isa, Matrix, PackedMatrix};
use lapwing_kernels::formats::DType;
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore};
use lapwing_kernels::mask::Mask;
use std::time::{Duration, Instant};

/// (k, n, times per token) of SmolLM2-135M: 30 layers and the output head.
const SHAPES: [(usize, usize, usize); 5] =
    [(576, 576, 60), (576, 192, 60), (576, 1536, 60), (1536, 576, 30), (576, 49152, 1)];
/// Rows of each pass over the weights.
const ROWS: [usize; 5] = [1, 2, 8, 32, 512];
const LAYERS: usize = 30;
const REPEATS: usize = 15;

fn median_seconds(f: impl FnMut()) -> f64 {
    times_of(REPEATS, f).0
}

/// Median and best time in seconds of `calls` calls, after a warm-up call.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn times_of(calls: usize, mut f: impl FnMut()) -> (f64, f64) {
    f();
    let mut times: Vec<f64> = (0..calls)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[calls / 2], times[0])
}

/// All matrices of one shape that a token multiplies.
struct Shape {
    k: usize,
    n: usize,
    matrices: Vec<PackedMatrix>,
}

/// The weights of the model; for K formats, k is rounded up to whole blocks.
fn weights(cpu: &Cpu, dtype: DType) -> Vec<Shape> {
    let shape = |(k, n, times): (usize, usize, usize)| {
        let k = k.next_multiple_of(dtype.block_len());
        let row_bytes = dtype.row_bytes(k).expect("whole blocks");
        let bytes: Vec<u8> = (0..row_bytes * n).map(|i| (i * 7 % 61) as u8).collect();
        let matrix = Matrix::new(dtype, n, k, &bytes).expect("a matrix");
        let matrices = PackedMatrix::many(cpu, &vec![matrix; times]).expect("memory");
        Shape { k, n, matrices }
    };
    SHAPES.map(shape).into()
}

/// Seconds of one pass over all layers; prints each shape's and the whole pass's fraction of the limits.
fn pass(cpu: &Cpu, dtype: DType, shapes: &[Shape], rows: usize, roof: &Roofline) -> f64 {
    let (mut seconds, mut least, mut products, mut bytes) = (0.0, 0.0, 0, 0);
    for Shape { k, n, matrices } in shapes {
        // The head runs for the last row only.
        let m = if matrices.len() == 1 { 1 } else { rows };
        let x: Vec<f32> = (0..m * k).map(|i| (i % 97) as f32 / 97.0 - 0.5).collect();
        let mut out = vec![0.0; m * n];
        let calls = REPEATS.div_ceil(matrices.len()).max(1) * matrices.len();
        let mut next = matrices.iter().cycle();
        let (call, best) = times_of(calls, || {
            let matrix = next.next().expect("a matrix");
            cpu::matmul(cpu, &matrix.all(), &x, None, &mut out);
        });
        let time = call * matrices.len() as f64;
        let read: usize = matrices.iter().map(PackedMatrix::bytes).sum();
        let ops = 2 * m * k * n * matrices.len();
        let each = time * 1e6 / matrices.len() as f64;
        let cost = Cost { flops: ops as u64, bytes: read as u64 };
        let what = part(cpu, roof, dtype, cost, time);
        let most = part(cpu, roof, dtype, cost, best * matrices.len() as f64);
        println!("  {dtype} m={m:<4} k={k:<5} n={n:<6} {each:9.1} us {what}, best {most}");
        seconds += time;
        least += best * matrices.len() as f64;
        products += ops;
        bytes += read;
    }
    for (what, seconds) in [("median", seconds), ("best", least)] {
        let cost = Cost { flops: products as u64, bytes: bytes as u64 };
        let part = part(cpu, roof, dtype, cost, seconds);
        println!("  {dtype} m={rows:<4} all layers, {what:6} {:10.1} us {part}", seconds * 1e6);
    }
    seconds
}

/// A measurement as a fraction of its limit.
fn part(cpu: &Cpu, roof: &Roofline, dtype: DType, cost: Cost, seconds: f64) -> String {
    let kernel = Kernel::of(cpu, "matmul", Some(dtype), KvDtype::default()).expect("a kernel");
    let bound = roof.bound(kernel.arithmetic, cost).expect("a measured limit");
    let rate = |amount: u64| amount as f64 / seconds / 1e9;
    let memory = 100.0 * cost.bytes as f64 / roof.read_bytes_per_second / seconds;
    format!(
        "{:7.1} GOPS {:6.2} GB/s {memory:5.1} %, of the bound ({}) {:5.1} %",
        rate(cost.flops),
        rate(cost.bytes),
        bound.by,
        100.0 * bound.seconds / seconds
    )
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn limits(cpu: &Cpu) -> Roofline {
    let start = Instant::now();
    let now = || -> Duration { start.elapsed() };
    let roof = Roofline::measure(cpu, REPEATS, &now).expect("memory");
    for (what, peak) in [("int8", roof.int8), ("f32", roof.f32)] {
        if let Some(peak) = peak {
            println!("{what}: {:.0} GOPS, {}", peak.ops_per_second / 1e9, peak.instructions);
        }
    }
    println!("reading: {:.1} GB/s", roof.read_bytes_per_second / 1e9);
    roof
}

fn attention(cpu: &Cpu, rows: usize, context: usize) -> f64 {
    let (page_rows, dtype) = (KvLayout::PAGE_ROWS, KvDtype::default());
    let layout = KvLayout::uniform(1, KvHeads::new(3, 64), page_rows, dtype);
    let pages: Vec<u32> = (0..layout.pages_for(context + rows) as u32).collect();
    let kv = KvStore::new(layout, pages.len() as u32).expect("memory");
    let q = vec![0.1; rows * 9 * 64];
    let mut out = vec![0.0; q.len()];
    let sequences = [AttentionSequence { rows: 0..rows, start_pos: context, pages: &pages }];
    let job = AttentionJob {
        kv: &kv.layer(0),
        q: &q,
        sequences: &sequences,
        heads: 9,
        scale: 0.125,
        mask: &Mask::Causal,
        slopes: None,
        sinks: None,
        soft_cap: None,
    };
    let seconds = median_seconds(|| cpu::attention(cpu, &job, &mut out));
    println!("attention rows={rows} context={context}: {:9.1} us", seconds * 1e6);
    seconds * LAYERS as f64
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let threads = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let wanted = args.next().unwrap_or_else(|| "Q4_1".into());
    let isa_name = args.next();
    for isa in Isa::available() {
        if isa_name.as_ref().map_or(isa != Isa::best(), |name| name != isa.name()) {
            continue;
        }
        let cpu = Cpu::new(threads, isa);
        println!("{}; {} threads", isa.explain(), cpu.pool().threads());
        for dtype in DType::ALL {
            if !wanted.split(',').any(|name| name == dtype.to_string()) {
                continue;
            }
            let roof = limits(&cpu);
            let shapes = weights(&cpu, dtype);
            for rows in ROWS {
                let products = pass(&cpu, dtype, &shapes, rows, &roof);
                if rows == 1 || rows == 512 {
                    let attention = attention(&cpu, rows, if rows == 1 { 512 } else { 0 });
                    let speed = rows as f64 / (products + attention);
                    println!("  {dtype} {rows} rows with attention: {speed:.0} tokens/s");
                }
            }
        }
    }
}

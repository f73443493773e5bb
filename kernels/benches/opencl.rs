//! Matmuls on every OpenCL device, compared with the device's limits and with this crate's own CPU
//! kernels, all measured in the same run. Best and median of several runs.
//!
//! `cargo bench -p lapwing-kernels --features opencl --bench opencl`

use lapwing_kernels::cpu::{self, Cpu, Isa, Matrix, PackedMatrix};
use lapwing_kernels::formats::DType;
use lapwing_kernels::opencl::{
    MatMulShape, OpenClInfo, OpenClKind, Trial, devices, matmul_kernels,
};
use std::time::Instant;

const FORMATS: [DType; 7] =
    [DType::F32, DType::F16, DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q4K, DType::Q6K];

/// A prompt's matmul in a small model, a single row in a larger model, and a single row with the
/// output head of a small one.
const SHAPES: [MatMulShape; 3] = [
    MatMulShape { rows: 512, outputs: 1536, inputs: 576 },
    MatMulShape { rows: 1, outputs: 4096, inputs: 4096 },
    MatMulShape { rows: 1, outputs: 49152, inputs: 576 },
];

/// As [`SHAPES`], for GPUs: a prompt's matmul in models of 1B and 8B, and few rows.
const GPU_SHAPES: [MatMulShape; 7] = [
    MatMulShape { rows: 512, outputs: 8192, inputs: 2048 },
    MatMulShape { rows: 512, outputs: 4096, inputs: 4096 },
    MatMulShape { rows: 1, outputs: 2048, inputs: 2048 },
    MatMulShape { rows: 1, outputs: 8192, inputs: 2048 },
    MatMulShape { rows: 1, outputs: 2048, inputs: 8192 },
    MatMulShape { rows: 1, outputs: 4096, inputs: 14336 },
    MatMulShape { rows: 8, outputs: 8192, inputs: 2048 },
];

const RUNS: usize = 25;

/// Launches of a GPU in a row, so that its queue is not empty in between.
const IN_A_ROW: usize = 50;

/// Best and median time of a call, in seconds.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn times_of(mut f: impl FnMut()) -> (f64, f64) {
    f();
    f();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[0], times[RUNS / 2])
}

fn line(what: &str, best: f64, median: f64, operations: f64, bytes: f64) {
    println!(
        "{what:32} {:9.1} us best {:9.1} us median {:8.1} GFLOP/s {:7.2} GB/s",
        best * 1e6,
        median * 1e6,
        operations / best * 1e-9,
        bytes / best * 1e-9,
    );
}

fn report(what: &str, trial: &mut Trial, in_a_row: usize) {
    let (best, median) = times_of(|| trial.run(in_a_row).expect("the device works"));
    let [best, median] = [best, median].map(|seconds| seconds / in_a_row as f64);
    line(what, best, median, trial.operations() as f64, trial.bytes() as f64);
}

/// The shape, with inputs rounded up to whole blocks.
fn fitted(dtype: DType, shape: MatMulShape) -> MatMulShape {
    MatMulShape { inputs: shape.inputs.next_multiple_of(dtype.block_len()), ..shape }
}

fn name(dtype: DType, shape: MatMulShape) -> String {
    format!("{dtype} [{}, {}] x {}", shape.outputs, shape.inputs, shape.rows)
}

fn device(info: &OpenClInfo) {
    println!("\n{} ({}, driver {})", info.name, info.platform, info.driver);
    for kernels in matmul_kernels(info, None, &FORMATS).expect("the device works") {
        println!(
            "{} chosen: {} for many rows, {} for few",
            kernels.dtype, kernels.many, kernels.few
        );
    }
    let is_gpu = info.kind == OpenClKind::Gpu;
    let (in_a_row, items) = if is_gpu { (IN_A_ROW, 1024 * info.units as usize) } else { (1, 256) };
    report("read 256 MiB", &mut Trial::read(info, 256 << 20).expect("memory"), in_a_row);
    let many = if is_gpu { 1000 } else { 100 };
    report("launch", &mut Trial::launch(info).expect("memory"), many);
    report("multiply-add", &mut Trial::multiply_add(info, items).expect("memory"), 1);
    for shape in SHAPES.into_iter().chain(GPU_SHAPES.into_iter().filter(|_| is_gpu)) {
        for dtype in FORMATS {
            let shape = fitted(dtype, shape);
            let mut trial = Trial::matmul(info, dtype, shape).expect("memory");
            let in_a_row = if shape.rows < 16 { in_a_row } else { in_a_row.div_ceil(10) };
            report(&name(dtype, shape), &mut trial, in_a_row);
        }
    }
}

fn own_kernels() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = Cpu::new(threads, Isa::best());
    println!("\nCPU kernels of this crate, {threads} threads");
    for shape in SHAPES {
        for dtype in FORMATS {
            let shape = fitted(dtype, shape);
            let MatMulShape { rows, outputs, inputs } = shape;
            let row_bytes = dtype.row_bytes(inputs).expect("whole blocks");
            let bytes = [0x66, 0x2c].repeat((row_bytes * outputs).div_ceil(2));
            let bytes = &bytes[..row_bytes * outputs];
            let copies = if rows < 16 { (96usize << 20).div_ceil(bytes.len()) } else { 1 };
            let matrix = Matrix::new(dtype, outputs, inputs, bytes).expect("a matrix");
            let packed = PackedMatrix::many(&cpu, &vec![matrix; copies]).expect("memory");
            let x: Vec<f32> = (0..rows * inputs).map(|i| (i % 97) as f32 / 97.0 - 0.5).collect();
            let mut out = vec![0.0; rows * outputs];
            let mut next = packed.iter().cycle();
            let (best, median) = times_of(|| {
                let matrix = next.next().expect("a matrix");
                cpu::matmul(&cpu, &matrix.all(), &x, None, &mut out);
            });
            let operations = 2.0 * (rows * outputs * inputs) as f64;
            line(&name(dtype, shape), best, median, operations, packed[0].bytes() as f64);
        }
    }
}

/// Jobs that were running or waiting in the last minute, where the system tells.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn main() {
    println!("load {}", load());
    match devices() {
        Ok(devices) => devices.iter().for_each(device),
        Err(e) => println!("{e}"),
    }
    println!("\nload {}", load());
    own_kernels();
    println!("\nload {}", load());
}

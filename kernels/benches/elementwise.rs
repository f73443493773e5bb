//! Ops that only stream memory, over 512 rows of a small model, compared with a copy of as many bytes
//! in the same run. The shortest of many runs.
//!
//! `cargo bench -p lapwing-kernels --bench elementwise -- [threads] [isa]`

use lapwing_kernels::cpu::{self, Cpu, Isa, KvRows, RopeFreqs, RopeShape, ShortConv, Summands};
use lapwing_kernels::device::Batch;
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore, StateLayout};
use lapwing_kernels::op::{Activation, RopePairs, RopeScaling};
use std::time::Instant;

const ROWS: usize = 512;
const WIDTH: usize = 576;
const HEADS: usize = 9;
const KV_HEADS: usize = 3;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn shortest(mut f: impl FnMut()) -> f64 {
    let seconds = (0..200).map(|_| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

fn report(name: &str, bytes: usize, seconds: f64) {
    println!("{name:20} {:8.1} us {:6.1} GB/s", seconds * 1e6, bytes as f64 / seconds / 1e9);
}

fn kv_write(cpu: &Cpu, dtype: KvDtype, x: &[f32]) -> f64 {
    let head_dim = WIDTH / HEADS;
    let layout = KvLayout::uniform(1, KvHeads::new(KV_HEADS, head_dim), 32, dtype);
    let pages: Vec<u32> = (0..layout.pages_for(ROWS) as u32).collect();
    let kv = KvStore::new(layout, pages.len() as u32).expect("memory");
    let k = &x[..ROWS * KV_HEADS * head_dim];
    let rows = KvRows { pages: &pages, start_pos: 0, k, v: k };
    shortest(|| rows.write(cpu, &mut kv.layer(0)))
}

/// A convolution over so many rows, with its state.
fn short_conv(cpu: &Cpu, taps: usize, x: &[f32], out: &mut [f32]) -> f64 {
    let layout = KvLayout::uniform(0, KvHeads::new(0, 0), 32, KvDtype::default());
    let states = [StateLayout { values: (taps - 1) * WIDTH }].into();
    let kv = KvStore::new(KvLayout { states, ..layout }, ROWS as u32).expect("memory");
    let pages: Vec<u32> = (0..ROWS as u32).collect();
    let mut batch = Batch::default();
    batch.push(&[0; ROWS], 0, pages, 0..0);
    let taps = &x[..taps * WIDTH];
    let conv = ShortConv { x, width: WIDTH, taps, bias: None, is_silu: false };
    shortest(|| {
        let mut state = kv.state(0);
        cpu::short_conv(cpu, &conv, &batch.spans, &state, out);
        state.keep_rows(&batch.spans[0], x, WIDTH);
    })
}

fn measure(cpu: &Cpu) {
    let x: Vec<f32> = (0..ROWS * WIDTH).map(|i| (i * 7 % 97) as f32 / 97.0 - 0.5).collect();
    let y = x.clone();
    let mut out = vec![0.0; x.len()];
    let bytes = size_of_val(&*x);
    let chunk = x.len().div_ceil(4 * cpu.pool().threads());
    let copy = shortest(|| {
        cpu.pool().chunks_mut(&mut out, chunk, |i, out| {
            out.copy_from_slice(&x[i * chunk..][..out.len()]);
        });
    });
    report("copy", 2 * bytes, copy);
    let weight = vec![1.0; WIDTH];
    report("norm", 2 * bytes, shortest(|| cpu::rms_norm(cpu, &x, &weight, 1e-5, &mut out)));
    report("excess", 2 * bytes, shortest(|| cpu::excess(cpu, &x, WIDTH, 1.6, &mut out)));
    report("length", 3 * bytes, shortest(|| cpu::with_length(cpu, &x, &y, WIDTH, &mut out)));
    let summands = Summands { values: &[&y[..]; 4], factors: &x[..ROWS * 4], first: 0 };
    let seconds = shortest(|| cpu::add_weighted(cpu, &mut out, WIDTH, &summands));
    report("weighted sum of 4", 6 * bytes, seconds);
    report("add", 3 * bytes, shortest(|| cpu::add(cpu, &x, &y, &mut out)));
    report("multiply", 3 * bytes, shortest(|| cpu::multiply(cpu, &x, &y, &mut out)));
    for taps in [3, 4] {
        report(&format!("conv of {taps} rows"), 2 * bytes, short_conv(cpu, taps, &x, &mut out));
    }
    for kind in Activation::ALL {
        let seconds = shortest(|| cpu::gated(cpu, kind, &x, &y, &mut out));
        report(&format!("{kind:?}"), 3 * bytes, seconds);
    }
    let positions: Vec<u32> = (0..ROWS as u32).collect();
    let freqs = RopeFreqs::new(10_000.0, WIDTH / HEADS, RopeScaling::None, None);
    for pairs in [RopePairs::Halves, RopePairs::Adjacent] {
        let shape = RopeShape { heads: HEADS, head_dim: WIDTH / HEADS, pairs };
        let angles = freqs.angles(&positions);
        let seconds = shortest(|| cpu::rope(cpu, &x, shape, &angles, &mut out));
        report(&format!("rope {pairs:?}"), 2 * bytes, seconds);
    }
    report("angles", 0, shortest(|| drop(freqs.angles(&positions))));
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::I8] {
        let bytes = ROWS * KV_HEADS * (WIDTH / HEADS) * 2 * size_of::<f32>();
        report(&format!("write {dtype:?}"), bytes, kv_write(cpu, dtype, &x));
    }
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let threads = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let isa_name = args.next();
    for isa in Isa::available() {
        if isa_name.as_ref().is_none_or(|name| name == isa.name()) {
            let cpu = Cpu::new(threads, isa);
            println!("{}, {} threads", isa.name(), cpu.pool().threads());
            measure(&cpu);
        }
    }
}

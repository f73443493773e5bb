//! Attention of two small models' shapes as a fraction of the f32 multiply–add rate, and of the
//! read bandwidth, both measured in the same run.
//!
//! `cargo bench -p lapwing-kernels --bench attention -- [threads] [isa] [best]`
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "the multiply–add rate is measured with the CPU's own instructions"
    )
)]

use lapwing_kernels::cpu::{self, AttentionJob, AttentionMask, AttentionSpan, Cpu, Isa};
use lapwing_kernels::kv::{KvDtype, KvLayout, KvStore};
use std::hint::black_box;
use std::time::Instant;

const REPEATS: usize = 15;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn median_seconds(mut f: impl FnMut()) -> f64 {
    f();
    let mut times: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[REPEATS / 2]
}

/// Multiply–adds of one call of [`multiply_add`].
const CHAIN: usize = 16 * 16 * 20_000;

#[cfg(target_arch = "x86_64")]
fn multiply_add() -> f32 {
    use std::arch::x86_64::*;
    #[target_feature(enable = "avx512f")]
    fn wide() -> f32 {
        let mut acc = [_mm512_set1_ps(black_box(1.0)); 16];
        let x = _mm512_set1_ps(black_box(0.5));
        for _ in 0..20_000 {
            for acc in &mut acc {
                *acc = _mm512_fmadd_ps(x, *acc, x);
            }
        }
        acc.iter().map(|acc| _mm512_reduce_add_ps(*acc)).sum()
    }
    #[target_feature(enable = "avx2,fma")]
    fn narrow() -> f32 {
        let mut acc = [_mm256_set1_ps(black_box(1.0)); 16];
        let x = _mm256_set1_ps(black_box(0.5));
        for _ in 0..40_000 {
            for acc in &mut acc {
                *acc = _mm256_fmadd_ps(x, *acc, x);
            }
        }
        acc.iter().map(|acc| _mm256_cvtss_f32(*acc)).sum()
    }
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the machine has AVX-512.
        unsafe { wide() }
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the machine has AVX2 and FMA.
        unsafe { narrow() }
    } else {
        plain()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn multiply_add() -> f32 {
    plain()
}

fn plain() -> f32 {
    let mut acc = [black_box(1.0f32); 256];
    for _ in 0..20_000 {
        acc.iter_mut().for_each(|acc| *acc = *acc * 0.5 + 0.5);
    }
    acc.iter().sum()
}

/// GB/s of reading 128 MiB on all threads.
fn bandwidth(cpu: &Cpu) -> f64 {
    let threads = cpu.pool().threads();
    let words = vec![1u64; 16 << 20];
    let part = words.len() / threads;
    let read = median_seconds(|| {
        cpu.pool().run(threads, &|i| {
            let sum = words[i * part..][..part].iter().fold(0u64, |sum, w| sum ^ w);
            black_box(sum);
        });
    });
    8.0 * (threads * part) as f64 / read / 1e9
}

/// Medians of the seconds of `f` and of multiply–adds on all threads, run in turn; with `best`,
/// the shortest of many, for a machine that is not quiet.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn beside_multiply_adds(cpu: &Cpu, best: bool, mut f: impl FnMut()) -> (f64, f64) {
    let mut times = [const { Vec::new() }; 2];
    let repeats = if best { 10 * REPEATS } else { REPEATS };
    for _ in 0..=repeats {
        let start = Instant::now();
        cpu.pool().run(cpu.pool().threads(), &|_| {
            black_box(multiply_add());
        });
        let middle = Instant::now();
        f();
        times[0].push(middle.elapsed().as_secs_f64());
        times[1].push((middle - start).as_secs_f64());
    }
    let [f, adds] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[if best { 0 } else { repeats / 2 }]
    });
    (f, adds)
}

#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    window: Option<usize>,
    dtype: KvDtype,
}

const MODELS: [Model; 3] = [
    Model {
        name: "9/3 heads of 64",
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        window: None,
        dtype: KvDtype::F16,
    },
    Model {
        name: "4/1 heads of 256",
        heads: 4,
        kv_heads: 1,
        head_dim: 256,
        window: None,
        dtype: KvDtype::F16,
    },
    Model {
        name: "same, window 512",
        heads: 4,
        kv_heads: 1,
        head_dim: 256,
        window: Some(512),
        dtype: KvDtype::F16,
    },
];

fn measure(
    cpu: &Cpu,
    model: &Model,
    (rows, context): (usize, usize),
    (bandwidth, best): (f64, bool),
) {
    let Model { heads, kv_heads, head_dim, dtype, .. } = *model;
    let page_rows = KvLayout::PAGE_ROWS;
    let layout = KvLayout { layers: 1, kv_heads, head_dim, page_rows, dtype };
    let pages: Vec<u32> = (0..layout.pages_for(context + rows) as u32).collect();
    let kv = KvStore::new(layout, pages.len() as u32).expect("memory");
    let width = kv_heads * head_dim;
    let noise = |len: usize| (0..len).map(|i| (i * 7 % 97) as f32 / 97.0 - 0.5).collect();
    let (k, q): (Vec<f32>, Vec<f32>) =
        (noise((context + rows) * width), noise(rows * heads * head_dim));
    kv.layer(0).write(cpu, &pages, 0, (&k, &k));
    let mut out = vec![0.0; q.len()];
    let spans = [AttentionSpan { rows: 0..rows, start_pos: context, pages: &pages }];
    let job = AttentionJob {
        kv: &kv.layer(0),
        q: &q,
        spans: &spans,
        heads,
        scale: 0.125,
        mask: model.window.map_or(AttentionMask::Causal, AttentionMask::Window),
        soft_cap: None,
    };
    let (seconds, adds) = beside_multiply_adds(cpu, best, || cpu::attention(cpu, &job, &mut out));
    let limit = 2.0 * (cpu.pool().threads() * CHAIN) as f64 / adds / 1e9;
    let seen: usize =
        (context..context + rows).map(|p| (p + 1).min(model.window.unwrap_or(usize::MAX))).sum();
    let flops = 4.0 * (seen * heads * head_dim) as f64 / seconds / 1e9;
    let keys = model.window.map_or(context + rows, |w| (context + rows).min(w + rows));
    let bytes = (keys * width * 4) as f64 / seconds / 1e9;
    println!(
        "{}: {rows:4} rows after {context:4}: {:9.1} us {flops:6.1} GFLOPS of {limit:5.1} = {:5.1} %, {bytes:5.1} GB/s = {:5.1} %",
        model.name,
        seconds * 1e6,
        100.0 * flops / limit,
        100.0 * bytes / bandwidth,
    );
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let threads = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let isa_name = args.next();
    let best = args.next().is_some_and(|a| a == "best");
    for isa in Isa::available() {
        if isa_name.as_ref().map_or(isa != Isa::best(), |name| name != isa.name()) {
            continue;
        }
        let cpu = Cpu::new(threads, isa);
        let bandwidth = bandwidth(&cpu);
        println!("{}, {threads} threads: {bandwidth:.1} GB/s", isa.name());
        for model in &MODELS {
            for case in
                [(64, 448), (512, 0), (512, 512), (512, 4000), (1, 128), (1, 512), (1, 4000)]
            {
                measure(&cpu, model, case, (bandwidth, best));
            }
        }
    }
}

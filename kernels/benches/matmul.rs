//! Matrix products and attention of a small model's shapes: median of several runs, GOPS,
//! and what they make in tokens per second over all layers.
//!
//! `cargo bench -p lapwing-kernels -- [threads] [format] [isa]`

use lapwing_kernels::cpu::{self, AttentionJob, AttentionMask, AttentionSpan, Cpu, Isa, Matrix};
use lapwing_kernels::kv::{KvDtype, KvLayout, KvStore};
use lapwing_kernels::quant::DType;
use std::time::Instant;

/// (k, n, times per token) of SmolLM2-135M: 30 layers and the output head.
const SHAPES: [(usize, usize, usize); 5] =
    [(576, 576, 60), (576, 192, 60), (576, 1536, 60), (1536, 576, 30), (576, 49152, 1)];
const LAYERS: usize = 30;
const REPEATS: usize = 9;

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

/// Seconds of one pass over all layers; `None` when a shape does not exist in the format.
fn matmuls(cpu: &Cpu, dtype: DType, rows: usize) -> Option<f64> {
    let mut per_pass = Some(0.0);
    for (k, n, times) in SHAPES {
        // The head runs for the last row only.
        let m = if times == 1 { 1 } else { rows };
        let Some(row_bytes) = dtype.row_bytes(k) else {
            per_pass = None;
            continue;
        };
        let bytes: Vec<u8> = (0..row_bytes * n).map(|i| (i * 7 % 61) as u8).collect();
        let Ok(matrix) = Matrix::new(dtype, n, k, &bytes) else {
            continue;
        };
        let x: Vec<f32> = (0..m * k).map(|i| (i % 97) as f32 / 97.0 - 0.5).collect();
        let mut out = vec![0.0; m * n];
        let seconds = median_seconds(|| cpu::matmul(cpu, &matrix, &x, None, &mut out));
        let gops = 2.0 * (m * k * n) as f64 / seconds / 1e9;
        println!("{dtype} m={m:4} k={k:5} n={n:6}: {:9.1} us {gops:7.1} GOPS", seconds * 1e6);
        per_pass = per_pass.map(|p| p + seconds * times as f64);
    }
    per_pass
}

fn attention(cpu: &Cpu, rows: usize, context: usize) -> f64 {
    let layout = KvLayout {
        layers: 1,
        kv_heads: 3,
        head_dim: 64,
        page_rows: KvLayout::PAGE_ROWS,
        dtype: KvDtype::F16,
    };
    let pages: Vec<u32> = (0..layout.pages_for(context + rows) as u32).collect();
    let kv = KvStore::new(layout, pages.len() as u32).expect("memory");
    let q = vec![0.1; rows * 9 * 64];
    let mut out = vec![0.0; q.len()];
    let spans = [AttentionSpan { rows: 0..rows, start_pos: context, pages: &pages }];
    let job = AttentionJob {
        kv: &kv.layer(0),
        q: &q,
        spans: &spans,
        heads: 9,
        scale: 0.125,
        mask: AttentionMask::Causal,
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
        println!("{}; {} threads", isa.why(), cpu.pool().threads());
        for dtype in DType::ALL.into_iter().filter(|d| d.to_string() == wanted) {
            for (rows, context) in [(512, 0), (1, 512)] {
                let products = matmuls(&cpu, dtype, rows);
                let attention = attention(&cpu, rows, context);
                if let Some(products) = products {
                    let speed = rows as f64 / (products + attention);
                    println!("{rows} rows after {context}: {speed:.0} tokens/s");
                }
            }
        }
    }
}

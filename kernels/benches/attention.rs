//! Attention in the shapes of two small models, as a fraction of the peak of its arithmetic and of the
//! read bandwidth, both measured in the same run. Single rows are measured with keys and values in a
//! cache, and with cold ones: layer after layer, until no layer is cached.
//!
//! `cargo bench -p lapwing-kernels --bench attention -- [threads] [isa] [f32|f16|int8] [best]`

use lapwing_kernels::cpu::roofline::{Kernel, Roofline};
use lapwing_kernels::cpu::{self, AttentionJob, AttentionSequence, Cpu, Isa, KvRows};
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore};
use lapwing_kernels::mask::Mask;
use std::time::Instant;

const REPEATS: usize = 15;

/// Median time of `f` in seconds, after a warm-up call; with `best`, the shortest of many calls, for a
/// noisy machine.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn seconds_of(best: bool, mut f: impl FnMut()) -> f64 {
    f();
    let repeats = if best { 10 * REPEATS } else { REPEATS };
    let mut times: Vec<f64> = (0..repeats)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[if best { 0 } else { repeats / 2 }]
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn limits(cpu: &Cpu) -> Roofline {
    let start = Instant::now();
    Roofline::measure(cpu, REPEATS, &|| start.elapsed()).expect("memory")
}

#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    window: Option<usize>,
}

const MODELS: [Model; 3] = [
    Model { name: "9/3 heads of 64", heads: 9, kv_heads: 3, head_dim: 64, window: None },
    Model { name: "4/1 heads of 256", heads: 4, kv_heads: 1, head_dim: 256, window: None },
    Model { name: "same, window 512", heads: 4, kv_heads: 1, head_dim: 256, window: Some(512) },
];

/// Query rows after a context.
#[derive(Clone, Copy)]
struct Case {
    rows: usize,
    context: usize,
    /// Whether keys and values are read from memory rather than from a cache.
    cold: bool,
}

/// What all cases of a run share.
struct Setup<'a> {
    cpu: &'a Cpu,
    roof: &'a Roofline,
    dtype: KvDtype,
    /// Whether to take the shortest time instead of the median.
    best: bool,
}

fn measure(setup: &Setup<'_>, model: &Model, Case { rows, context, cold }: Case) {
    let Setup { cpu, roof, dtype, best } = *setup;
    let Model { heads, kv_heads, head_dim, .. } = *model;
    let page_rows = KvLayout::PAGE_ROWS;
    let heads_of = KvHeads::new(kv_heads, head_dim);
    let one = KvLayout::uniform(1, heads_of, page_rows, dtype);
    let pages: Vec<u32> = (0..one.pages_for(context + rows) as u32).collect();
    let layers = if cold { roof.read_bytes.div_ceil(one.page_bytes() * pages.len()) } else { 1 };
    let layout = KvLayout::uniform(layers, heads_of, page_rows, dtype);
    let kv = KvStore::new(layout, pages.len() as u32).expect("memory");
    let width = kv_heads * head_dim;
    let noise = |len: usize| (0..len).map(|i| (i * 7 % 97) as f32 / 97.0 - 0.5).collect();
    let (k, q): (Vec<f32>, Vec<f32>) =
        (noise((context + rows) * width), noise(rows * heads * head_dim));
    let kept = KvRows { pages: &pages, start_pos: 0, k: &k, v: &k };
    (0..layers).for_each(|layer| kept.write(cpu, &mut kv.layer(layer)));
    let mut out = vec![0.0; q.len()];
    let sequences = [AttentionSequence { rows: 0..rows, start_pos: context, pages: &pages }];
    let mut layer = 0;
    let seconds = seconds_of(best, || {
        layer = (layer + 1) % layers;
        let job = AttentionJob {
            kv: &kv.layer(layer),
            q: &q,
            sequences: &sequences,
            heads,
            scale: 0.125,
            mask: &model.window.map_or(Mask::Causal, Mask::Window),
            slopes: None,
            sinks: None,
            soft_cap: None,
        };
        cpu::attention(cpu, &job, &mut out);
    });
    let kernel = Kernel::of(cpu, "attention", None, dtype).expect("a kernel");
    let peak = roof.peak(kernel.arithmetic).expect("a measured limit");
    let limit = peak.ops_per_second / 1e9;
    let bandwidth = roof.read_bytes_per_second / 1e9;
    let seen: usize =
        (context..context + rows).map(|p| (p + 1).min(model.window.unwrap_or(usize::MAX))).sum();
    let flops = 4.0 * (seen * heads * head_dim) as f64 / seconds / 1e9;
    let keys = model.window.map_or(context + rows, |w| (context + rows).min(w + rows));
    let bytes = (one.page_bytes() * keys / page_rows) as f64 / seconds / 1e9;
    println!(
        "{}: {rows:4} rows after {context:4}{}: {:9.1} us {flops:6.1} GFLOPS of {limit:5.1} ({}) = {:5.1} %, {bytes:5.1} GB/s = {:5.1} %",
        model.name,
        if cold { ", cold" } else { "" },
        seconds * 1e6,
        kernel.arithmetic.name(),
        100.0 * flops / limit,
        100.0 * bytes / bandwidth,
    );
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let threads = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let isa_name = args.next();
    let dtype = args.next().map_or(Ok(KvDtype::default()), |name| name.parse()).expect("a type");
    let best = args.next().is_some_and(|a| a == "best");
    for isa in Isa::available() {
        if isa_name.as_ref().map_or(isa != Isa::best(), |name| name != isa.name()) {
            continue;
        }
        let cpu = Cpu::new(threads, isa);
        println!("{}, {threads} threads, {dtype}", isa.name());
        for model in &MODELS {
            let roof = limits(&cpu);
            let setup = Setup { cpu: &cpu, roof: &roof, dtype, best };
            let many = [(64, 448), (512, 0), (512, 512), (512, 4000)].map(|case| (case, false));
            let single = [128, 512, 4000].map(|context| (1, context));
            let single = single.into_iter().flat_map(|case| [(case, false), (case, true)]);
            for ((rows, context), cold) in many.into_iter().chain(single) {
                measure(&setup, model, Case { rows, context, cold });
            }
        }
    }
}

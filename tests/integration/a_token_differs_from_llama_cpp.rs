//! Greedy ids and first logits of real models, compared with llama.cpp's.
//!
//! llama.cpp rounds activations to 8 bits, and its own ids depend on its settings where two tokens are
//! nearly equal: at gaps between the best two logits of up to 0.37 (SmolLM2) and 0.75 (Gemma). No
//! engine can match it more closely than that on every prompt, so the bound on all prompts is one and a
//! half times these gaps. A prompt is stable if llama.cpp's own output is the same under all tested
//! settings. Nearly all stable prompts must agree here too, or differ first where the gap is at most
//! 0.05.
//!
//! Attention that multiplies pairs of bfloat16 is coarser than llama.cpp's default. It is therefore also
//! compared with llama.cpp with keys and values in bfloat16, which differs from llama.cpp's default at
//! gaps of up to 0.54 and 1.88, and on 3 and 4 stable prompts. f32 attention must meet the original
//! bounds.

use std::sync::Arc;

use lapwing::{Activations, Prompt, Request};
use lapwing_kernels::cpu::{Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Batch, BlockingDevice, Prepare, SlotPool, StageRun, TensorSet};
use lapwing_kernels::kv::{KvLease, KvPool, KvStore};
use lapwing_kernels::model::Model;
use lapwing_kernels::part::Part;
use lapwing_kernels::weights::WeightFile;
use serde_json::Value;

use crate::cases::{all, cases};
use crate::support::{GEMMA3, SMOLLM2, builder, collect_ids, ids, model, needs, number, reference};

/// Prompts of a quick run.
const PROMPTS_QUICK: usize = 12;

/// Best minus second-best logit at a step.
fn gap(prompt: &Value, step: usize) -> f64 {
    number(&prompt["steps"][step][0][1]) - number(&prompt["steps"][step][1][1])
}

/// Gaps at which llama.cpp differs from itself: with other settings and, if requested, with keys and
/// values in bfloat16.
fn own_gaps(prompt: &Value, bf16: bool) -> impl Iterator<Item = f64> {
    let others = prompt["others"].as_object().expect("settings").values();
    let all = others.chain(bf16.then_some(&prompt["kv_bf16"]));
    all.filter_map(|other| other["gap_there"].as_f64())
}

async fn compare(name: &str, file: &str, activations: Activations) {
    let best = Isa::best().name();
    let is_exact = activations != Activations::Int8;
    let rounds = best == "avx512-bf16" && !is_exact;
    // Without rounding no prompt is harder than another.
    let step = if is_exact { 2 } else { 1 };
    let comparison = Comparison { name, file, activations };
    comparison.on(best, rounds, step).await;
    if rounds {
        // Its matmuls are those of above, and its attention is that of exact activations.
        comparison.on("avx512", false, 2).await;
    }
}

/// A model that is compared with its reference.
struct Comparison<'a> {
    name: &'a str,
    /// File of the reference.
    file: &'a str,
    activations: Activations,
}

impl Comparison<'_> {
    /// Compares every `step`-th prompt, with `bf16` also with gaps of keys and values in bfloat16. With rounded activations
    /// two stable ones of all prompts may differ, and one of every second prompt; with exact activations none.
    async fn on(&self, isa: &str, bf16: bool, step: usize) {
        let Comparison { name, file, activations } = *self;
        let reference = reference(file);
        let prompts = reference["prompts"].as_array().expect("prompts");
        let prompts = prompts[..cases(PROMPTS_QUICK, prompts.len())].iter().step_by(step);
        let prompts: Vec<&Value> = prompts.collect();
        let close = number(&reference["close"]);
        let own_gap = prompts.iter().flat_map(|p| own_gaps(p, bf16)).fold(0.0, f64::max);
        let engine =
            builder(name).isa(isa).activations(activations).build().await.expect("an engine");
        let mut streams = Vec::new();
        for prompt in &prompts {
            let request = Request::new(Prompt::Ids(ids(&prompt["prompt_ids"])));
            let request = request.greedy().max_tokens(64);
            streams.push(engine.generate(request).await.expect("a stream"));
        }
        let (mut equal, mut steady, mut held) = (0, 0, 0);
        for (prompt, stream) in prompts.iter().zip(streams) {
            let mut wanted = ids(&prompt["ids"]);
            // The reference continues after an end token; here it ends the stream.
            if let Some(end) = prompt["end_of_generation_at"].as_u64() {
                wanted.truncate(end as usize + 1);
            }
            let found = collect_ids(stream).await;
            let leaves = (0..wanted.len()).find(|i| found.get(*i) != wanted.get(*i));
            let gap = leaves.map_or(0.0, |step| gap(prompt, step));
            let text = &prompt["prompt"];
            assert!(gap <= 1.5 * own_gap, "{text}: leaves at {leaves:?}, gap {gap}, own {own_gap}");
            equal += usize::from(leaves.is_none());
            if own_gaps(prompt, bf16).all(|gap| gap <= close) {
                steady += 1;
                held += usize::from(gap <= close);
                if gap > close {
                    println!("{name}: {text} leaves at {leaves:?}, gap {gap}");
                }
            }
        }
        println!(
            "{name} on {isa}, {activations:?}: {equal} of {} equal; {held} of {steady} steady ones held",
            prompts.len()
        );
        let lost_max = if activations == Activations::Int8 { 2 / step } else { 0 };
        assert!(!all() || steady > 6 * lost_max.max(1), "{steady} steady prompts say little");
        assert!(
            steady - held <= lost_max,
            "{held} of {steady} steady prompts held to a gap of {close}"
        );
    }
}

#[tokio::test]
async fn smollm2_q4_1_generates_llama_cpps_ids() {
    needs!(SMOLLM2);
    compare(SMOLLM2, "greedy/smollm2.json", Activations::Int8).await;
}

#[tokio::test]
#[ignore = "long: sh tests/all.sh runs it"]
async fn gemma3_q4_k_m_generates_llama_cpps_ids() {
    needs!(GEMMA3);
    compare(GEMMA3, "greedy/gemma3.json", Activations::Int8).await;
}

#[tokio::test]
#[ignore = "long: sh tests/all.sh runs it"]
async fn exact_smollm2_generates_llama_cpps_ids() {
    needs!(SMOLLM2);
    compare(SMOLLM2, "greedy/smollm2.json", Activations::F32).await;
}

#[tokio::test]
#[ignore = "long: sh tests/all.sh runs it"]
async fn exact_gemma3_generates_llama_cpps_ids() {
    needs!(GEMMA3);
    compare(GEMMA3, "greedy/gemma3.json", Activations::F32).await;
}

/// Logits after a prompt, read from the device.
fn first_logits(name: &str, prompts: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let file = WeightFile::open(&model(name)).expect("a weight file");
    let model = Model::from_weights(&file).expect("a model");
    let layout = model.config.kv_layout();
    let graph = Arc::new(model.graph);
    let parts = CpuDeviceParts {
        name: "cpu".to_owned(),
        cpu: Cpu::new(2, Isa::best()),
        graph: Arc::clone(&graph),
        kv: Arc::new(KvStore::new(layout.clone(), 64).expect("memory")),
        slots: SlotPool::default(),
    };
    let mut device = CpuDevice::new(parts, &file).expect("a device");
    let pool = KvPool::new(64);
    let mut all = Vec::new();
    for ids in prompts {
        let mut lease = KvLease::default();
        lease.grow(&pool, &layout, ids.len()).expect("pages");
        let mut batch = Batch::default();
        batch.push(ids, 0, lease.page_ids().to_vec(), ids.len() - 1..ids.len());
        let mut outputs = TensorSet::default();
        let work = StageRun {
            nodes: 0..graph.nodes().len(),
            part: &Part::WHOLE,
            prepare: Prepare::Ahead,
            batch: &batch,
            inputs: &TensorSet::default(),
            writes: &[graph.output()],
            outputs: &mut outputs,
            observer: &mut (),
        };
        device.run(work).expect("a run");
        all.push(
            outputs
                .take(graph.output())
                .expect("logits")
                .host()
                .expect("logits on the host")
                .to_vec(),
        );
    }
    all
}

fn compare_first(name: &str, file: &str) {
    let reference = reference(file);
    let prompts = reference["prompts"].as_array().expect("prompts");
    let prompt_ids: Vec<_> = prompts.iter().map(|p| ids(&p["prompt_ids"])).collect();
    let found = first_logits(name, &prompt_ids);
    // llama.cpp compared with itself, over all prompts: the noise floor of any engine.
    let own = |key: &str| {
        let others = prompts.iter().flat_map(|p| p["others"].as_object().expect("others").values());
        others.map(|o| number(&o[key])).fold(0.0, f64::max)
    };
    let own_top_10 = own("first_max_of_top_10");
    let mut mean_sum = 0.0;
    let mut own_mean_sum = 0.0;
    for (prompt, logits) in prompts.iter().zip(&found) {
        let top: Vec<(usize, f64)> = prompt["first"]["top"]
            .as_array()
            .expect("top 50")
            .iter()
            .map(|pair| (pair[0].as_u64().expect("an id") as usize, number(&pair[1])))
            .collect();
        let distance = |(id, logit): &(usize, f64)| (f64::from(logits[*id]) - logit).abs();
        let top_10 = top[..10].iter().map(distance).fold(0.0, f64::max);
        assert!(top_10 <= 2.0 * own_top_10, "{}: {top_10} of {own_top_10}", prompt["prompt"]);
        mean_sum += top.iter().map(distance).sum::<f64>() / top.len() as f64;
        let others = prompt["others"].as_object().expect("others").values();
        own_mean_sum += others.map(|o| number(&o["first_mean"])).fold(0.0, f64::max);
    }
    let count = prompts.len() as f64;
    let (mean, own_mean) = (mean_sum / count, own_mean_sum / count);
    println!("{name}: first logits {mean:.3} from llama.cpp on average, itself {own_mean:.3}");
    assert!(mean <= 1.25 * own_mean, "{mean} > 1.25 · {own_mean}");
}

#[test]
fn first_logits_are_within_llama_cpps_own_spread() {
    needs!(SMOLLM2, GEMMA3);
    compare_first(SMOLLM2, "greedy/smollm2.json");
    if all() {
        compare_first(GEMMA3, "greedy/gemma3.json");
    }
}

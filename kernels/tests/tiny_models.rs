//! Compares the logits of tiny models, of every decoder and in every weight format, with llama.cpp's
//! (`tests/reference/tiny`), for different chunk sizes and on every instruction set.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bounds::Bounds;
use lapwing_kernels::cpu::{Activations, Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{
    Batch, BlockingDevice, Observer, Prepare, SlotPool, StageRun, TensorSet,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::{KvLease, KvPool, KvStore};
use lapwing_kernels::model::{Model, ModelConfig};
use lapwing_kernels::part::Part;
use lapwing_kernels::weights::WeightFile;
use names::{exact_names, names};
use serde_json::Value;

#[path = "tiny_models/blocks.rs"]
mod blocks;
#[path = "tiny_models/bounds.rs"]
mod bounds;
#[path = "tiny_models/branches.rs"]
mod branches;
#[path = "tiny_models/experts.rs"]
mod experts;
#[path = "tiny_models/fused.rs"]
mod fused;
#[path = "tiny_models/latent.rs"]
mod latent;
#[path = "tiny_models/layers.rs"]
mod layers;
#[path = "tiny_models/masks.rs"]
mod masks;
#[path = "tiny_models/names.rs"]
mod names;
#[path = "tiny_models/predictors.rs"]
mod predictors;
#[path = "tiny_models/requantised.rs"]
mod requantised;
#[path = "tiny_models/scales.rs"]
mod scales;
#[path = "tiny_models/shared.rs"]
mod shared;
#[path = "tiny_models/states.rs"]
mod states;
#[path = "tiny_models/streams.rs"]
mod streams;
#[path = "tiny_models/variants.rs"]
mod variants;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny")
}

fn reference(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("reference");
    serde_json::from_str(&text).expect("JSON")
}

/// A tiny model, and the tokens that its reference has logits for.
struct Tiny {
    file: WeightFile,
    ids: Vec<u32>,
}

impl Tiny {
    fn open(name: &str) -> Tiny {
        let reference = reference(name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        Tiny { file: WeightFile::open(&file).expect("a weight file"), ids: ids(&reference) }
    }
}

/// Whether an emulated machine runs the tests. What does not depend on the instruction set is tried there with fewer
/// cases: the host tries all of them much faster.
fn is_emulated() -> bool {
    std::env::var_os("LAPWING_EMULATED").is_some()
}

/// Every instruction set of this machine; on an emulated one without portable Rust, which the host tests.
fn isas() -> Vec<Isa> {
    Isa::available().into_iter().filter(|isa| !is_emulated() || isa.name() != "generic").collect()
}

/// Of those, on an emulated machine only the one with attention kernels of its own.
fn attending() -> Vec<Isa> {
    isas().into_iter().filter(|isa| !is_emulated() || isa.name() == "neon").collect()
}

/// A device with room for one sequence of `rows` tokens.
fn device(
    config: &ModelConfig,
    graph: &Arc<Graph>,
    file: &WeightFile,
    rows: usize,
    cpu: Cpu,
) -> (CpuDevice, KvLease) {
    let layout = config.kv_layout();
    let pool = KvPool::new(8);
    let mut lease = KvLease::default();
    lease.grow(&pool, &layout, rows).expect("pages");
    let kv = Arc::new(KvStore::new(layout, 8).expect("memory"));
    let (graph, slots) = (Arc::clone(graph), SlotPool::default());
    let parts = CpuDeviceParts { name: "cpu".to_owned(), cpu, graph, kv, slots };
    (CpuDevice::new(parts, file).expect("bound weights"), lease)
}

/// A stage of a graph, for a batch.
struct Stage<'a> {
    graph: &'a Graph,
    nodes: Range<usize>,
    batch: &'a Batch,
}

impl Stage<'_> {
    /// Runs a part of it and returns the values that later stages read.
    fn run(&self, device: &mut CpuDevice, part: &Part, inputs: &TensorSet) -> TensorSet {
        let nodes = self.nodes.clone();
        let mut outputs = TensorSet::default();
        let mut seen = Seen(Vec::new());
        let work = StageRun {
            nodes: nodes.clone(),
            part,
            prepare: Prepare::Ahead,
            batch: self.batch,
            inputs,
            writes: &self.graph.writes(nodes.clone()),
            outputs: &mut outputs,
            observer: &mut seen,
        };
        device.run(work).expect("a run");
        assert!(seen.0.iter().copied().eq(nodes.clone()), "{nodes:?}: reported {:?}", seen.0);
        outputs
    }
}

/// Nodes that a device has reported.
struct Seen(Vec<usize>);

impl Observer for Seen {
    fn nodes_done(&mut self, nodes: Range<usize>) {
        assert!(!nodes.is_empty());
        self.0.extend(nodes);
    }
}

/// Runs a stage and keeps the values that later stages read.
fn run(
    device: &mut CpuDevice,
    graph: &Graph,
    nodes: Range<usize>,
    batch: &Batch,
    tensors: &mut TensorSet,
) {
    let stage = Stage { graph, nodes: nodes.clone(), batch };
    let outputs = stage.run(device, &Part::WHOLE, tensors);
    tensors.keep(&graph.live_out(nodes));
    tensors.append(outputs);
}

/// Logits of all positions, with the prompt cut into chunks of `chunk` rows.
fn logits(file: &WeightFile, ids: &[u32], chunk: usize, cpu: Cpu) -> Vec<Vec<f32>> {
    staged_logits(file, ids, chunk, usize::MAX, cpu)
}

/// As [`logits`], with the graph cut into stages of `stage` nodes.
fn staged_logits(
    file: &WeightFile,
    ids: &[u32],
    chunk: usize,
    stage: usize,
    cpu: Cpu,
) -> Vec<Vec<f32>> {
    let model = Model::from_weights(file).expect("a model");
    let graph = Arc::new(model.graph);
    let output = graph.output();
    let nodes = graph.nodes().len();
    let (mut device, lease) = device(&model.config, &graph, file, ids.len(), cpu);
    let mut rows = Vec::new();
    for (i, ids) in ids.chunks(chunk).enumerate() {
        let mut batch = Batch::default();
        batch.push(ids, i * chunk, lease.page_ids().to_vec(), 0..ids.len());
        let mut tensors = TensorSet::default();
        for start in (0..nodes).step_by(stage) {
            let nodes = start..start.saturating_add(stage).min(nodes);
            run(&mut device, &graph, nodes, &batch, &mut tensors);
        }
        let tensor = tensors.take(output).expect("logits");
        rows.extend((0..tensor.rows()).map(|r| tensor.row(r).to_vec()));
    }
    rows
}

fn floats(row: &Value) -> Vec<f32> {
    row.as_array().expect("a row").iter().map(|v| v.as_f64().expect("a number") as f32).collect()
}

/// Largest distance from the reference rows of that kind.
fn distance(found: &[Vec<f32>], reference: &Value, kind: &str) -> f32 {
    let positions = reference["positions"].as_array().expect("positions");
    let rows = reference[kind].as_array().expect("rows");
    let pairs = positions.iter().zip(rows).flat_map(|(at, row)| {
        let found = &found[at.as_u64().expect("a position") as usize];
        found.iter().copied().zip(floats(row)).collect::<Vec<_>>()
    });
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn ids(reference: &Value) -> Vec<u32> {
    let ids = reference["ids"].as_array().expect("ids");
    ids.iter().map(|v| v.as_u64().expect("an id") as u32).collect()
}

#[test]
fn every_architecture_and_format_gives_llama_cpps_logits() {
    let mut failures = Vec::new();
    for name in names() {
        let reference = reference(&name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        if let Err(error) = Model::from_weights(&file) {
            failures.push(format!("{name}: {error}"));
            continue;
        }
        let floats = ["format-f16", "format-bf16"];
        let float = !name.starts_with("format-") || floats.contains(&name.as_str());
        let bounds = Bounds::of(&reference, float);
        let pairs = |isa: &Isa| isa.name() == "avx512-bf16";
        let rounded = Isa::available().into_iter().map(|isa| {
            (isa, Activations::Int8, if pairs(&isa) { bounds::of_pairs(&name) } else { 0.0 })
        });
        let exact = Isa::available().into_iter().filter(|isa| float && pairs(isa));
        for (isa, activations, more) in rounded.chain(exact.map(|isa| (isa, Activations::F32, 0.0)))
        {
            let cpu = Cpu::new(2, isa).with_activations(activations);
            let (default_max, exact_max) = (bounds.default_max + more, bounds.exact_max + more);
            let found = logits(&file, &ids(&reference), 512, cpu);
            let to_default = distance(&found, &reference, "default");
            let to_exact = distance(&found, &reference, bounds.exact);
            if !(to_default <= default_max && to_exact <= exact_max) {
                failures.push(format!(
                    "{name} on {}, {activations:?}: {to_default} of {default_max} from llama.cpp, \
                     {to_exact} of {exact_max} from {}",
                    isa.name(),
                    bounds.exact
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn logits_do_not_depend_on_chunks_or_threads_by_a_single_bit() {
    for name in names() {
        let Tiny { file, ids } = Tiny::open(&name);
        let whole = logits(&file, &ids, 512, Cpu::new(1, Isa::best()));
        let pairs = [(1, 3), (7, 1), (32, 2), (1, 1), (1, 2), (7, 2), (7, 3), (32, 1), (32, 3)];
        for &(chunk, threads) in &pairs[..if is_emulated() { 3 } else { 9 }] {
            let cut = logits(&file, &ids, chunk, Cpu::new(threads, Isa::best()));
            assert!(cut == whole, "{name}: chunks of {chunk} on {threads} threads");
        }
    }
}

#[test]
fn a_route_over_several_devices_gives_the_same_logits() {
    // Two devices, each with its own KV cache; the border is in the middle of a layer.
    let file = WeightFile::open(&folder().join("gemma3.gguf")).expect("a weight file");
    let ids = ids(&reference("gemma3"));
    let whole = logits(&file, &ids, 512, Cpu::new(1, Isa::best()));
    let model = Model::from_weights(&file).expect("a model");
    let graph = Arc::new(model.graph);
    for border in [1, 7, 23, graph.nodes().len() - 1] {
        let mut tensors = TensorSet::default();
        for nodes in [0..border, border..graph.nodes().len()] {
            let (mut device, lease) =
                device(&model.config, &graph, &file, ids.len(), Cpu::new(2, Isa::best()));
            let mut batch = Batch::default();
            batch.push(&ids, 0, lease.page_ids().to_vec(), 0..ids.len());
            run(&mut device, &graph, nodes, &batch, &mut tensors);
        }
        let logits = tensors.take(graph.output()).expect("logits");
        assert!(tensors.is_empty(), "border {border}: values left over");
        assert!((0..ids.len()).all(|r| logits.row(r) == whole[r]), "border {border}");
    }
}

//! Whole tiny models of every architecture and every weight format against llama.cpp's logits
//! (`tests/reference/tiny`), however the prompt is cut and on every instruction set.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing_kernels::cpu::{Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Batch, Device, Observer, Prepare, SlotPool, TensorSet, Work};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_kernels::kv::{KvLease, KvPool, KvStore};
use lapwing_kernels::merge::Merge;
use lapwing_kernels::model::{Model, ModelConfig};
use lapwing_kernels::part::{Part, Share};
use lapwing_kernels::weights::WeightFile;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny")
}

fn reference(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("reference");
    serde_json::from_str(&text).expect("JSON")
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

/// Runs a part of a stage, and returns what it writes.
fn run_part(
    device: &mut CpuDevice,
    (nodes, part): (Range<usize>, &Part),
    batch: &Batch,
    (inputs, writes): (&TensorSet, &[ValueId]),
) -> TensorSet {
    let mut outputs = TensorSet::default();
    let mut seen = Seen(Vec::new());
    let work = Work {
        nodes: nodes.clone(),
        part,
        prepare: Prepare::Ahead,
        batch,
        inputs,
        writes,
        outputs: &mut outputs,
        observer: &mut seen,
    };
    device.run(work).expect("a run");
    assert!(seen.0.iter().copied().eq(nodes.clone()), "{nodes:?}: told of {:?}", seen.0);
    outputs
}

/// Nodes that a device has reported.
struct Seen(Vec<usize>);

impl Observer for Seen {
    fn node_done(&mut self, node: usize) {
        self.0.push(node);
    }
}

/// Runs a stage, and keeps what later ones read.
fn run(
    device: &mut CpuDevice,
    graph: &Graph,
    nodes: Range<usize>,
    batch: &Batch,
    tensors: &mut TensorSet,
) {
    let writes = graph.writes(nodes.clone());
    let at = (nodes.clone(), &Part::WHOLE);
    let outputs = run_part(device, at, batch, (tensors, &writes));
    tensors.keep(&graph.live_out(nodes));
    tensors.append(outputs);
}

/// Logits of all positions, the prompt cut into chunks of `chunk` rows.
fn logits(file: &WeightFile, ids: &[u32], chunk: usize, cpu: Cpu) -> Vec<Vec<f32>> {
    staged_logits(file, ids, (chunk, usize::MAX), cpu)
}

/// As [`logits`], the graph cut into stages of `stage` nodes.
fn staged_logits(
    file: &WeightFile,
    ids: &[u32],
    (chunk, stage): (usize, usize),
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

/// Largest distance from the reference's rows of that kind.
fn distance(found: &[Vec<f32>], reference: &Value, kind: &str) -> f32 {
    let positions = reference["positions"].as_array().expect("positions");
    let rows = reference[kind].as_array().expect("rows");
    let pairs = positions.iter().zip(rows).flat_map(|(at, row)| {
        let found = &found[at.as_u64().expect("a position") as usize];
        found.iter().copied().zip(floats(row)).collect::<Vec<_>>()
    });
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("tests/reference/tiny")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 21, "only {} reference models", names.len());
    names
}

fn ids(reference: &Value) -> Vec<u32> {
    let ids = reference["ids"].as_array().expect("ids");
    ids.iter().map(|v| v.as_u64().expect("an id") as u32).collect()
}

/// How far llama.cpp's own results lie apart when its settings change, and from the results in
/// double precision: the noise of activations rounded to 8 bits and of a cache in f16.
fn noise(reference: &Value) -> f32 {
    let differences = reference["max_abs_difference"].as_object().expect("differences");
    differences.values().map(|v| v.as_f64().expect("a number") as f32).fold(0.0, f32::max)
}

#[test]
fn every_architecture_and_format_gives_llama_cpps_logits() {
    let mut failures = Vec::new();
    for name in names() {
        let reference = reference(&name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        // Float weights meet exact arithmetic but for the f16 cache; quantised ones carry the
        // noise of 8-bit activations, as llama.cpp's do.
        let float = !name.starts_with("format-q");
        let exact_max = if float { 0.008 } else { 1.25 * noise(&reference) };
        let default_max = 1.1 * noise(&reference) + 0.003;
        for isa in Isa::available() {
            let found = logits(&file, &ids(&reference), 512, Cpu::new(2, isa));
            let to_default = distance(&found, &reference, "default");
            let to_exact = distance(&found, &reference, "exact");
            if !(to_default <= default_max && to_exact <= exact_max) {
                failures.push(format!(
                    "{name} on {}: {to_default} of {default_max} from llama.cpp, \
                     {to_exact} of {exact_max} from exact",
                    isa.name()
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn logits_do_not_change_by_a_bit_with_the_chunks_or_the_threads() {
    for name in names() {
        let reference = reference(&name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        let ids = ids(&reference);
        let whole = logits(&file, &ids, 512, Cpu::new(1, Isa::best()));
        for chunk in [1, 7, 32] {
            for threads in [1, 2, 3] {
                let cut = logits(&file, &ids, chunk, Cpu::new(threads, Isa::best()));
                assert!(cut == whole, "{name}: chunks of {chunk} on {threads} threads");
            }
        }
    }
}

#[test]
fn a_route_over_several_devices_gives_the_same_logits() {
    // Two devices, each with its own KV cache: the border is in the middle of a layer.
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

#[test]
fn ops_that_are_fused_differ_from_ops_one_by_one() {
    for name in names() {
        let reference = reference(&name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        let ids = ids(&reference);
        for isa in Isa::available() {
            // A stage of one node has nothing to be computed together with.
            let single = staged_logits(&file, &ids, (512, 1), Cpu::new(2, isa));
            for (chunk, stage) in [(512, usize::MAX), (1, usize::MAX), (512, 2), (39, 3), (7, 5)] {
                let found = staged_logits(&file, &ids, (chunk, stage), Cpu::new(2, isa));
                let what = format!("{name} on {}, stages of {stage}", isa.name());
                assert!(found == single, "{what}, chunks of {chunk}");
            }
        }
    }
}

/// The longest runs of nodes of which `can_cut` is true.
fn cut_stages(graph: &Graph, can_cut: impl Fn(Range<usize>) -> bool) -> Vec<Range<usize>> {
    let mut stages: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    while start < graph.nodes().len() {
        let longer = (start + 1..=graph.nodes().len()).take_while(|end| can_cut(start..*end));
        let end = longer.last();
        stages.extend(end.map(|end| start..end));
        start = end.unwrap_or(start + 1);
    }
    stages
}

/// Logits of one chunk when the nodes of `cuts` are divided into `parts` and the others are not.
fn cut_logits(
    (file, graph): (&WeightFile, &Arc<Graph>),
    config: &ModelConfig,
    ids: &[u32],
    (cuts, parts): (&[Range<usize>], &[Part]),
) -> Vec<Vec<f32>> {
    let (mut device, lease) = device(config, graph, file, ids.len(), Cpu::new(2, Isa::best()));
    let mut batch = Batch::default();
    batch.push(ids, 0, lease.page_ids().to_vec(), 0..ids.len());
    let (mut tensors, slots) = (TensorSet::default(), SlotPool::default());
    let mut next = 0;
    let end = graph.nodes().len();
    for cut in cuts.iter().cloned().chain(std::iter::once(end..end)) {
        if next < cut.start {
            run(&mut device, graph, next..cut.start, &batch, &mut tensors);
        }
        next = cut.end;
        if cut.is_empty() {
            continue;
        }
        let writes = graph.writes(cut.clone());
        let outputs = parts.iter().map(|part| {
            let outputs = run_part(&mut device, (cut.clone(), part), &batch, (&tensors, &writes));
            (part, outputs)
        });
        let merge = Merge { graph, batch: &batch, writes: &writes, slots: &slots };
        let (outputs, _) = merge.run(outputs.collect()).expect("all parts");
        tensors.keep(&graph.live_out(cut));
        tensors.append(outputs);
    }
    let tensor = tensors.take(graph.output()).expect("logits");
    (0..tensor.rows()).map(|r| tensor.row(r).to_vec()).collect()
}

#[test]
fn fused_ops_of_parts_differ_from_those_of_the_whole() {
    for name in names() {
        let reference = reference(&name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        let ids = ids(&reference);
        let whole = logits(&file, &ids, 512, Cpu::new(2, Isa::best()));
        let model = Model::from_weights(&file).expect("a model");
        let graph = Arc::new(model.graph);
        let rows =
            [0..13, 13..14, 14..ids.len()].map(|rows| Part { rows: Some(rows), ..Part::WHOLE });
        let features = [(0, 1), (1, 3)]
            .map(|(from, to)| Part { features: Share { from, to, of: 3 }, ..Part::WHOLE });
        let by_rows = cut_stages(&graph, |nodes| graph.can_cut_rows(nodes));
        let by_features = cut_stages(&graph, |nodes| graph.can_cut_features(nodes));
        assert!(by_rows.iter().chain(&by_features).any(|cut| cut.len() > 2), "{name}");
        for (cuts, parts) in [(&by_rows[..], &rows[..]), (&by_features[..], &features[..])] {
            let at = (&file, &graph);
            let found = cut_logits(at, &model.config, &ids, (cuts, parts));
            assert!(found == whole, "{name}: {parts:?}");
        }
    }
}

#[test]
fn a_decode_step_calls_the_threads_more_often_than_it_must() {
    for name in names() {
        let reference = reference(&name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        let model = Model::from_weights(&file).expect("a model");
        let (graph, layers) = (Arc::new(model.graph), model.config.layers);
        let (mut device, lease) = device(&model.config, &graph, &file, 2, Cpu::new(2, Isa::best()));
        let mut tensors = TensorSet::default();
        for (position, id) in ids(&reference)[..2].iter().enumerate() {
            let before = device.cpu().pool().dispatches();
            let mut batch = Batch::default();
            batch.push(&[*id], position, lease.page_ids().to_vec(), 0..1);
            run(&mut device, &graph, 0..graph.nodes().len(), &batch, &mut tensors);
            let count = device.cpu().pool().dispatches() - before;
            // Queries, keys and values; attention; its output; gate and up; down. Then the logits.
            assert!((3 * layers..=5 * layers + 1).contains(&count), "{name}: {count} dispatches");
        }
    }
}

//! Keys and values that layers or heads share, through the whole graph: against the naive reference, and in
//! chunks.

use std::collections::HashMap;

use super::masks::{SUNK, observed, sinks, values};
use super::{Tiny, folder, logits};
use half::f16;
use lapwing_kernels::cpu::{Activations, Cpu, Isa};
use lapwing_kernels::graph::{Graph, Node};
use lapwing_kernels::kv::KvSharing;
use lapwing_kernels::model::Model;
use lapwing_kernels::op::{AttentionOp, Op};
use lapwing_kernels::reference::{DenseAttention, attention};
use lapwing_kernels::requant::Requant;
use lapwing_kernels::weights::WeightFile;
use lapwing_kernels::weights::legacy::{LegacyError, LegacyFile, LegacyOptions};

/// Models of which all but the last have fewer KV heads than query heads.
const MODELS: [&str; 4] = ["llama", "gemma2", "gemma3", "minicpm3"];

const SHARINGS: [&str; 5] = ["layers=2", "layers=1", "heads=1", "layers=2,heads=1", "layers=LAST"];

/// A model with this sharing; `LAST` is the number of its layers.
fn shared(file: &WeightFile, sharing: &str) -> Model {
    let mut model = Model::from_weights(file).expect("a model");
    let sharing = sharing.replace("LAST", &model.config.layers.to_string());
    let sharing: KvSharing = sharing.parse().expect("a sharing");
    model.share_kv(&sharing).expect("it fits");
    model
}

fn attention_of(node: &Node) -> Option<&AttentionOp> {
    match &node.op {
        Op::Attention(op) => Some(op),
        _ => None,
    }
}

/// A llama model in Q4_0 with as many KV heads as query heads.
fn quantised() -> WeightFile {
    let old = folder().join("../legacy/ggjt-v3-q4_0.bin");
    let old = LegacyFile::open(&old).expect("a file");
    let mut bytes = Vec::new();
    let writer = old.to_gguf(&LegacyOptions::default()).expect("a model");
    let written: Result<(), LegacyError> =
        writer.write_with(&mut bytes, |at, out| old.write_tensor(at, out));
    written.expect("a GGUF file");
    let path = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&path, bytes).expect("written");
    WeightFile::open(path.path()).expect("a weight file")
}

/// As KV pages store them.
pub(super) fn stored(x: Vec<f32>) -> Vec<f32> {
    x.into_iter().map(|x| f16::from_f32(x).to_f32()).collect()
}

/// The rotation of a value, or of a part of its heads, if it is rotated.
fn rope_of(graph: &Graph, value: usize) -> Option<usize> {
    let node = &graph.nodes()[value];
    match node.op {
        Op::Rope { rope, .. } => Some(rope),
        Op::JoinHeads { .. } => node.inputs.iter().find_map(|part| rope_of(graph, part.0)),
        _ => None,
    }
}

#[test]
fn every_layer_reads_the_keys_and_values_of_the_first_of_its_group() {
    for name in MODELS.into_iter().chain([SUNK]) {
        let tiny = Tiny::open(name);
        // Layers of which only some rotate share nothing.
        let sharings = if name == SUNK { &["heads=1"][..] } else { &SHARINGS };
        for sharing in sharings {
            let config = shared(&tiny.file, sharing).config;
            let heads = config.heads[0];
            for isa in Isa::available() {
                let cpu = Cpu::new(2, isa).with_activations(Activations::F32);
                // Keys and values of each layer that writes some, and the rotation of its keys.
                let mut written = HashMap::new();
                let mut checked = 0;
                let mut check = |graph: &Graph, node: usize, inputs: &_, done: &_| {
                    let node = &graph.nodes()[node];
                    let Some(op) = attention_of(node) else { return };
                    let kv_layers = config.kv_layout().layers.len();
                    let group = config.layers.div_ceil(kv_layers);
                    let layer = node.layer.expect("a layer");
                    assert_eq!(op.layer, layer / group);
                    assert_eq!(op.layer, config.kv_layer(layer));
                    let rope = |at: usize| rope_of(graph, node.inputs[at].0);
                    if node.inputs.len() > 1 {
                        let [k, v] = [1, 2].map(|at| stored(values(inputs, node.inputs[at])));
                        assert!(written.insert(op.layer, (rope(1), k, v)).is_none());
                    }
                    let (of_keys, k, v) = &written[&op.layer];
                    assert_eq!(rope(0), *of_keys, "queries are rotated as the keys");
                    let sinks = sinks(&tiny.file, graph, op);
                    let dense = DenseAttention {
                        q: &values(inputs, node.inputs[0]),
                        k,
                        v,
                        shape: (heads.count, heads.kv.count, heads.kv.key_dim),
                        scale: f64::from(op.scale),
                        slopes: None,
                        sinks: sinks.as_deref(),
                        soft_cap: op.soft_cap.map(f64::from),
                    };
                    let sees = |pos: usize| {
                        op.window.map_or(0, |window| (pos + 1).saturating_sub(window))..=pos
                    };
                    let want = attention(&dense, |pos| sees(pos).collect());
                    let found = values(done, node.output);
                    let largest = want.iter().fold(0.0f64, |max, x| max.max(x.abs()));
                    for (found, want) in found.iter().zip(&want) {
                        let error = (f64::from(*found) - want).abs();
                        let what = format!("{name} {sharing} layer {checked} on {}", isa.name());
                        assert!(error <= 2e-5 * largest, "{what}: {found} instead of {want}");
                    }
                    assert_eq!(found.len(), want.len());
                    checked += 1;
                };
                let model = shared(&tiny.file, sharing);
                observed(model, &tiny, usize::MAX, cpu, &mut check);
                let kv_layers = config.kv_layout().layers.len();
                assert_eq!((checked, written.len()), (config.layers, kv_layers), "{name}");
            }
        }
    }
}

#[test]
fn the_heads_that_remain_are_those_of_the_model() {
    // Float weights; biases of keys and values; norms of keys; parts of heads; quantised weights.
    let [llama, qwen2, qwen3, minicpm3] =
        ["llama", "qwen2", "qwen3", "minicpm3"].map(|name| (name, Tiny::open(name)));
    let quantised = ("quantised", Tiny { file: quantised(), ids: llama.1.ids.clone() });
    for (name, tiny) in [llama, qwen2, qwen3, minicpm3, quantised] {
        let keys = |model: Model| {
            let (kv_heads, mut found) = (model.config.heads[0].kv.count, Vec::new());
            let cpu = Cpu::new(1, Isa::best());
            observed(model, &tiny, usize::MAX, cpu, &mut |graph, node, inputs, _| {
                let node = &graph.nodes()[node];
                // Later layers depend on the attention of the first one.
                if attention_of(node).is_some_and(|op| op.layer == 0) {
                    found.extend([1, 2].map(|at| values(inputs, node.inputs[at])));
                }
            });
            (kv_heads, found)
        };
        let (all_heads, all) = keys(Model::from_weights(&tiny.file).expect("a model"));
        let (kept, cut) = keys(shared(&tiny.file, "heads=1"));
        assert!(all_heads > 1 && kept == 1, "{name}");
        for (all, cut) in all.iter().zip(&cut) {
            let head = cut.len() / tiny.ids.len();
            let rows = all.chunks_exact(all_heads * head).map(|row| &row[..head]);
            assert!(rows.eq(cut.chunks_exact(head)), "{name}");
        }
    }
}

#[test]
fn logits_of_shared_keys_do_not_depend_on_chunks_or_threads_by_a_single_bit() {
    for name in MODELS {
        let tiny = Tiny::open(name);
        let own = logits(&tiny.file, &tiny.ids, usize::MAX, Cpu::new(2, Isa::best()));
        let own_model = Model::from_weights(&tiny.file).expect("a model");
        for sharing in SHARINGS {
            let of = |chunk: usize, threads: usize| {
                let (model, cpu) = (shared(&tiny.file, sharing), Cpu::new(threads, Isa::best()));
                observed(model, &tiny, chunk, cpu, &mut |_, _, _, _| {})
            };
            let whole = of(usize::MAX, 1);
            // One of the models has only one KV head.
            let changes = shared(&tiny.file, sharing).graph != own_model.graph;
            assert_eq!(whole != own, changes, "{name} {sharing}");
            for (chunk, threads) in [(1, 1), (7, 2), (32, 3)] {
                assert!(of(chunk, threads) == whole, "{name} {sharing}: {chunk} on {threads}");
            }
        }
    }
}

#[test]
fn fewer_weights_are_read_and_requantising_is_the_same_before_and_after() {
    let file = Tiny::open("llama").file;
    let own = Model::from_weights(&file).expect("a model");
    let names = |graph: &Graph| -> Vec<String> {
        graph.weights().iter().map(|spec| spec.name.clone()).collect()
    };
    let halved = shared(&file, "layers=2");
    let gone: Vec<String> =
        names(&own.graph).into_iter().filter(|name| !names(&halved.graph).contains(name)).collect();
    assert_eq!(gone, ["blk.1.attn_k.weight", "blk.1.attn_v.weight"]);
    // Projection, rotation and their values; attention has one input.
    assert_eq!(own.graph.nodes().len() - halved.graph.nodes().len(), 3);
    assert_eq!(halved.config.kv_layout().page_bytes() * 2, own.config.kv_layout().page_bytes());
    let cut = shared(&file, "heads=1");
    assert_eq!(
        cut.config.kv_layout().page_bytes() * own.config.heads[0].kv.count,
        own.config.kv_layout().page_bytes()
    );
    let rows = |model: &Model| {
        let spec = model.graph.weights().iter().find(|spec| spec.name == "blk.0.attn_v.weight");
        spec.map(|spec| spec.rows)
    };
    assert_eq!(rows(&cut), Some(own.config.heads[0].kv.value_dim));
    let mut before = own.clone();
    before.graph.requantize(Requant::Q8_0);
    before.share_kv(&"layers=2,heads=1".parse().expect("a sharing")).expect("it fits");
    let mut after = own;
    after.share_kv(&"layers=2,heads=1".parse().expect("a sharing")).expect("it fits");
    assert!(after.share_kv(&KvSharing::default()).is_err(), "layers share already");
    after.graph.requantize(Requant::Q8_0);
    assert_eq!(before.graph, after.graph);
}

//! Layers that differ in their heads, and layers that read the keys and values of others, through the whole graph.

use std::collections::{BTreeSet, HashMap};

use super::masks::{observed, values};
use super::shared::stored;
use super::{Tiny, attending};
use lapwing_kernels::cpu::{Activations, Cpu};
use lapwing_kernels::device::TensorSet;
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::{KvDtype, KvLayout};
use lapwing_kernels::model::Model;
use lapwing_kernels::op::Op;
use lapwing_kernels::reference::{DenseAttention, attention};

/// Models whose last layers read keys and values of others, and one whose layers differ in their KV heads; and how many kinds of
/// KV heads they have.
const MODELS: [(&str, usize); 3] =
    [("gemma3n-shared", 1), ("gemma4", 2), ("gemma4-keys-as-values", 2)];

#[test]
fn every_layer_reads_keys_and_values_of_its_own_heads() {
    for (name, kinds) in MODELS {
        let tiny = Tiny::open(name);
        let config = Model::from_weights(&tiny.file).expect("a model").config;
        let shapes: BTreeSet<_> =
            config.heads.iter().map(|of| (of.kv.count, of.kv.key_dim)).collect();
        assert_eq!(shapes.len(), kinds, "{name}");
        for isa in attending() {
            let cpu = Cpu::new(2, isa).with_activations(Activations::F32);
            let (mut written, mut checked) = (HashMap::new(), 0);
            let mut check = |graph: &Graph, node: usize, inputs: &TensorSet, done: &TensorSet| {
                let node = &graph.nodes()[node];
                let Op::Attention(op) = &node.op else { return };
                let layer = node.layer.expect("a layer");
                let heads = config.heads[layer];
                assert_eq!(node.inputs.len() > 1, config.has_kv(layer), "{name}: layer {layer}");
                if node.inputs.len() > 1 {
                    let kv = [1, 2].map(|at| stored(values(inputs, node.inputs[at])));
                    assert!(written.insert(layer, kv).is_none());
                }
                let [k, v] = &written[&heads.kv_of];
                let dense = DenseAttention {
                    q: &values(inputs, node.inputs[0]),
                    k,
                    v,
                    shape: (heads.count, heads.kv.count, heads.kv.key_dim),
                    scale: f64::from(op.scale),
                    soft_cap: op.soft_cap.map(f64::from),
                    slopes: None,
                    sinks: None,
                };
                let first = |pos: usize| op.window.map_or(0, |w| (pos + 1).saturating_sub(w));
                let want = attention(&dense, |pos| (first(pos)..=pos).collect());
                let found = values(done, node.output);
                assert_eq!(found.len(), want.len());
                let largest = want.iter().fold(0.0f64, |max, x| max.max(x.abs()));
                for (found, want) in found.iter().zip(&want) {
                    let error = (f64::from(*found) - want).abs();
                    let what = format!("{name} layer {layer} on {}", isa.name());
                    assert!(error <= 2e-5 * largest, "{what}: {found} instead of {want}");
                }
                checked += 1;
            };
            let model = Model::from_weights(&tiny.file).expect("a model");
            observed(model, &tiny, usize::MAX, cpu, &mut check);
            let own = (0..config.layers).filter(|layer| config.has_kv(*layer)).count();
            assert_eq!((checked, written.len()), (config.layers, own), "{name}");
        }
    }
}

#[test]
fn a_page_has_rows_of_the_layers_with_keys_of_their_own_only() {
    let config = Model::from_weights(&Tiny::open("gemma4").file).expect("a model").config;
    let layout = KvLayout { dtype: KvDtype::F16, ..config.kv_layout() };
    // Four layers with heads of 8, one with a head of 16; two read the rows of others.
    assert_eq!(layout.layers.len(), 5);
    assert_eq!(layout.page_bytes(), layout.page_rows * 2 * 2 * (4 * 8 + 16));
    assert_eq!([3, 4, 5, 6].map(|layer| config.kv_layer(layer)), [3, 4, 3, 4]);
}

#[test]
fn the_embeddings_of_layers_are_read_from_the_file() {
    const TABLE: &str = "per_layer_token_embd.weight";
    for name in ["gemma3n", "gemma4"] {
        let graph = Model::from_weights(&Tiny::open(name).file).expect("a model").graph;
        let tables = graph.nodes().iter().filter_map(|node| match node.op {
            Op::Lookup { table, .. } => Some(&*graph.weights()[table.0].name),
            _ => None,
        });
        assert_eq!(tables.collect::<Vec<_>>(), [TABLE]);
        assert!(graph.matrices().all(|name| name != TABLE), "it would be packed");
    }
}

#[test]
fn layers_that_differ_can_share_neither_rows_nor_a_number_of_heads() {
    let file = Tiny::open("gemma4-keys-as-values").file;
    let own = Model::from_weights(&file).expect("a model");
    for sharing in ["layers=2", "heads=1"] {
        let mut model = own.clone();
        let error = model.share_kv(&sharing.parse().expect("a sharing")).expect_err(sharing);
        assert!(error.to_string().contains("layers 0 and 1 differ"), "{error}");
        assert_eq!(model.graph, own.graph, "{sharing}");
    }
}

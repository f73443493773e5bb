//! Models with several streams of hidden states: what files say of them, and how many nodes they have.

use super::variants::{Variant, cpu};
use super::{Tiny, ids, logits, reference};
use lapwing_kernels::model::Model;
use lapwing_kernels::op::Op;
use lapwing_kernels::weights::MetaValue;

/// The standard deviations that 95 % of normally distributed values do not exceed.
const DEVIATIONS: f32 = 1.644_853_4;

fn with(variant: Variant, keys: Vec<(&str, MetaValue)>) -> Variant {
    let add = |variant: Variant, (key, value)| variant.key(&format!("gemma3n.{key}"), value);
    keys.into_iter().fold(variant, add)
}

/// As converters write them.
fn stated(layers: usize, sparse: usize, shared: u32) -> Vec<(&'static str, MetaValue)> {
    let mut deviations = vec![f32::NEG_INFINITY; layers];
    deviations[..sparse].fill(DEVIATIONS);
    vec![
        ("altup.num_inputs", 4_u32.into()),
        ("altup.active_idx", 0_u32.into()),
        ("embedding_length_per_layer_input", 256_u32.into()),
        ("attention.shared_kv_layers", shared.into()),
        ("activation_sparsity_scale", deviations.into()),
    ]
}

#[test]
fn keys_that_state_what_files_without_them_have_change_nothing() {
    for (name, layers, sparse, shared) in [("gemma3n", 5, 5, 0), ("gemma3n-shared", 22, 10, 2)] {
        let (ids, file) = (ids(&reference(name)), format!("{name}.gguf"));
        let plain = logits(&Variant::of(&file).write(), &ids, 512, cpu());
        let variant = with(Variant::of(&file), stated(layers, sparse, shared));
        assert!(logits(&variant.write(), &ids, 512, cpu()) == plain, "{name}");
    }
}

#[test]
fn gates_are_as_sparse_as_the_file_says() {
    let sparse_layers = |deviations: Vec<f32>| {
        let keys = vec![("activation_sparsity_scale", deviations.into())];
        let file = with(Variant::of("gemma3n.gguf"), keys).write();
        let graph = Model::from_weights(&file).expect("a model").graph;
        let found = graph.nodes().iter().filter_map(|node| match node.op {
            Op::Excess { deviations } => Some((node.layer?, deviations)),
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    let dense = f32::NEG_INFINITY;
    assert_eq!(sparse_layers(vec![dense, 1.0, dense, -0.5, 0.0]), [(1, 1.0), (3, -0.5), (4, 0.0)]);
    assert_eq!(sparse_layers(vec![dense; 5]), []);
}

#[test]
fn other_streams_and_impossible_gates_are_refused_by_name() {
    let rows: [(&str, MetaValue); 7] = [
        ("altup.num_inputs", 3_u32.into()),
        ("altup.active_idx", 1_u32.into()),
        ("activation_sparsity_scale", vec![1.0_f32; 4].into()),
        ("activation_sparsity_scale", vec![f32::NAN; 5].into()),
        ("activation_sparsity_scale", vec![f32::INFINITY; 5].into()),
        ("attention.shared_kv_layers", 1_u32.into()),
        ("embedding_length_per_layer_input", 128_u32.into()),
    ];
    for (key, value) in rows {
        let error = with(Variant::of("gemma3n.gguf"), vec![(key, value)]).error().to_string();
        let by_name = error.contains(&format!("metadata key 'gemma3n.{key}'"));
        assert!(by_name || error.contains("per_layer_token_embd.weight"), "{error}");
    }
}

#[test]
fn later_rows_of_the_last_layer_are_selected_in_every_stream() {
    for name in ["gemma3n", "gemma3n-shared"] {
        let graph = Model::from_weights(&Tiny::open(name).file).expect("a model").graph;
        let selects = graph.nodes().iter().filter(|node| matches!(node.op, Op::SelectRows));
        // Four streams, attention, the branch beside it, and the embedding of the layer.
        assert_eq!(selects.count(), 7, "{name}");
    }
}

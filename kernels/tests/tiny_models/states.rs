//! Layers with a state, through the whole graph.

use std::sync::Arc;

use super::variants::{Variant, cpu};
use super::{Seen, Tiny, device, ids, isas, reference, run};
use lapwing_kernels::cpu::{Cpu, CpuDevice, Isa};
use lapwing_kernels::device::{
    Batch, BlockingDevice, DeviceError, DeviceInfo, DeviceKind, Fork, OpSet, Prepare, SpanStates,
    StageRun, TensorSet,
};
use lapwing_kernels::graph::{Graph, Node};
use lapwing_kernels::kv::{KvLayout, PageIds, StateLayout};
use lapwing_kernels::model::Model;
use lapwing_kernels::part::Part;

const MODELS: [&str; 10] = [
    "lfm2",
    "lfm2-windows",
    "qwen35",
    "granitehybrid",
    "falcon-h1",
    "mamba2",
    "mamba",
    "mamba-falcon",
    "plamo2",
    "bailingmoe3",
];

/// Runs a batch and returns its logits.
fn logits(device: &mut CpuDevice, graph: &Graph, batch: &Batch) -> Vec<Vec<f32>> {
    let mut tensors = TensorSet::default();
    run(device, graph, 0..graph.nodes().len(), batch, &mut tensors);
    let logits = tensors.take(graph.output()).expect("logits");
    (0..logits.rows()).map(|row| logits.row(row).to_vec()).collect()
}

#[test]
fn sequences_of_different_lengths_do_not_change_each_other() {
    for name in MODELS {
        let Tiny { file, ids } = Tiny::open(name);
        let model = Model::from_weights(&file).expect("a model");
        let graph = Arc::new(model.graph);
        let other: Vec<u32> = ids.iter().rev().copied().collect();
        for isa in isas() {
            let alone = |ids: &[u32]| super::logits(&file, ids, 512, Cpu::new(1, isa));
            let wanted = [alone(&ids), alone(&other)];
            let rows = 8 * KvLayout::PAGE_ROWS;
            let (mut device, _lease) = device(&model.config, &graph, &file, rows, Cpu::new(2, isa));
            let pages: [PageIds; 2] = [[6, 1, 7].into(), [3, 4, 0].into()];
            let mut found = [Vec::new(), Vec::new()];
            let end = ids.len();
            // The rows of each sequence in each batch.
            for parts in [[0..1, 0..17], [1..33, 17..18], [33..34, 18..18], [34..end, 18..end]] {
                let mut batch = Batch::default();
                for ((part, ids), pages) in parts.iter().zip([&ids, &other]).zip(&pages) {
                    if !part.is_empty() {
                        let rows = 0..part.len();
                        batch.push(&ids[part.clone()], part.start, pages.clone(), rows);
                    }
                }
                let mut rows = logits(&mut device, &graph, &batch).into_iter();
                for (part, found) in parts.iter().zip(&mut found) {
                    found.extend(rows.by_ref().take(part.len()));
                }
            }
            assert!(found == wanted, "{name} on {}", isa.name());
        }
    }
}

#[test]
fn a_sequence_goes_on_where_another_has_kept_its_states() {
    for name in MODELS {
        let Tiny { file, ids } = Tiny::open(name);
        let model = Model::from_weights(&file).expect("a model");
        let graph = Arc::new(model.graph);
        let cpu = Cpu::new(2, Isa::best());
        let (mut device, _lease) = device(&model.config, &graph, &file, 256, cpu.clone());
        let page_rows = KvLayout::PAGE_ROWS;
        let mut batch = Batch::default();
        batch.push(&ids, 0, vec![0, 1, 3], 0..0);
        batch.spans[0].states.keep = vec![(page_rows, 3)];
        _ = logits(&mut device, &graph, &batch);
        let other: Vec<u32> = ids[..page_rows].iter().chain(&[5, 90, 17, 3]).copied().collect();
        let mut batch = Batch::default();
        batch.push(&other[page_rows..], page_rows, vec![0, 2], 0..4);
        batch.spans[0].states = SpanStates { from: Some(3), to: 2, keep: Vec::new() };
        let wanted = super::logits(&file, &other, 512, cpu);
        assert!(logits(&mut device, &graph, &batch) == wanted[page_rows..], "{name}");
    }
}

#[test]
fn branches_and_parts_of_rows_are_refused() {
    let Tiny { file, ids } = Tiny::open("lfm2");
    let model = Model::from_weights(&file).expect("a model");
    let graph = Arc::new(model.graph);
    let node = graph.nodes().iter().position(|node| node.op.state().is_some());
    let node = node.expect("a convolution");
    assert!(!graph.can_cut_rows(node..node + 1) && !graph.can_cut_features(node..node + 1));
    let (mut device, _lease) = device(&model.config, &graph, &file, 256, Cpu::new(1, Isa::best()));
    let mut batch = Batch::default();
    batch.push(&ids[..4], 0, vec![0], 0..4);
    batch.push_branch(&[9], 2, [1].into(), Fork { after: 1, copy: Some((0, 1)) });
    let work = StageRun {
        nodes: 0..graph.nodes().len(),
        part: &Part::WHOLE,
        prepare: Prepare::Ahead,
        batch: &batch,
        inputs: &TensorSet::default(),
        writes: &graph.writes(0..graph.nodes().len()),
        outputs: &mut TensorSet::default(),
        observer: &mut Seen(Vec::new()),
    };
    let error = device.run(work).expect_err("branches");
    let what = "short_conv 'conv' over branches of a token tree".to_owned();
    assert_eq!(error, DeviceError::Unsupported { device: "cpu".to_owned(), what });
}

#[test]
fn ops_with_states_are_not_cut_and_no_npu_computes_them() {
    let graph = Model::from_weights(&Tiny::open("qwen35").file).expect("a model").graph;
    assert!(graph.has_state());
    let with_state = |node: &&Node| node.op.state().is_some();
    let gpu = DeviceInfo::new("gpu", DeviceKind::Gpu).with_ops(OpSet::COMMON);
    let npu = DeviceInfo::new("npu", DeviceKind::Npu);
    for node in graph.nodes().iter().filter(with_state) {
        let at = node.output.0;
        assert!(!graph.can_cut_rows(at..at + 1) && !graph.can_cut_features(at..at + 1));
        assert!(gpu.runs(&node.op) && !npu.runs(&node.op), "{}", node.role);
    }
}

#[test]
fn a_layer_may_have_several_states_beside_keys() {
    let config = Model::from_weights(&Tiny::open("falcon-h1").file).expect("a model").config;
    // Three rows of 6·20 values and 2·2·12 of queries and keys; six heads of 12 keys by 20 columns, stored as 32.
    let states = [3 * (120 + 48), 6 * 12 * 32].map(|values| StateLayout { values });
    let layout = config.kv_layout();
    assert_eq!((layout.layers.len(), &layout.states[..]), (2, &[states, states].concat()[..]));
    assert_eq!([0, 1].map(|layer| config.state_layer(layer)), [0, 2]);
}

#[test]
fn values_that_fade_on_their_own_are_stored_in_blocks() {
    let states = |name: &str| {
        let model = Model::from_weights(&Tiny::open(name).file).expect("a model");
        let layout = model.config.kv_layout();
        layout.states.iter().map(|state| state.values).collect::<Vec<_>>()
    };
    // Three rows of the values, and 12 keys of each: 64 values are four whole blocks, 72 end in a part of a fifth.
    assert_eq!(states("mamba-falcon"), [3 * 64, 12 * 64].repeat(3));
    assert_eq!(states("mamba"), [3 * 72, 12 * 80].repeat(3));
}

#[test]
fn a_layer_with_a_delta_net_has_no_keys() {
    let config = Model::from_weights(&Tiny::open("qwen35-mtp").file).expect("a model").config;
    assert_eq!((config.layers, config.predictors), (3, 1));
    assert_eq!([0, 1, 2].map(|layer| config.has_state(layer)), [true, false, true]);
    assert_eq!([0, 1, 2].map(|layer| config.has_kv(layer)), [false, true, false]);
}

#[test]
fn layers_without_keys_have_states() {
    let config = Model::from_weights(&Tiny::open("lfm2").file).expect("a model").config;
    let layout = config.kv_layout();
    assert_eq!(
        (layout.layers.len(), &layout.states[..]),
        (2, &[StateLayout { values: 64 }; 3][..])
    );
    assert_eq!(layout.state_bytes(), 3 * 64 * 4);
    assert_eq!([0, 2, 4].map(|layer| config.state_layer(layer)), [0, 1, 2]);
    assert_eq!([1, 3].map(|layer| config.kv_layer(layer)), [0, 1]);
}

/// Some converters say no query heads for such layers, others the model's number.
#[test]
fn layers_with_a_state_may_say_no_query_heads() {
    let heads = [0_u32, 4, 0];
    for name in ["jamba", "plamo2"] {
        let ids = ids(&reference(name));
        let logits = |file| super::logits(&file, &ids, 512, cpu());
        let model = || Variant::of(&format!("{name}.gguf"));
        let listed = model().key(&format!("{name}.attention.head_count"), heads.to_vec());
        assert!(logits(listed.write()) == logits(model().write()), "{name}");
    }
}

#[test]
fn query_heads_that_do_not_fit_a_layer_are_refused_by_name() {
    for heads in [vec![0, 0, 0], vec![4, 0, 4], vec![2_000_000, 4, 4], vec![4, 4]] {
        let key = "jamba.attention.head_count";
        let error = Variant::of("jamba.gguf").key(key, heads.clone()).error().to_string();
        assert!(error.contains(&format!("metadata key '{key}'")), "{heads:?}: {error}");
    }
    let key = "bailingmoe3.attention.head_count";
    let latent = Variant::of("bailingmoe3.gguf").key(key, vec![0_u32, 4, 0, 0, 4]);
    assert!(latent.error().to_string().contains(&format!("metadata key '{key}'")));
}

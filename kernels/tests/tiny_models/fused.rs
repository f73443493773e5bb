//! Fused ops: the same results as single ops, in few dispatches.

use super::{
    Stage, Tiny, device, exact_names, is_emulated, isas, logits, names, run, staged_logits,
};
use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_kernels::device::{
    Batch, BlockingDevice, DeviceError, Prepare, SlotPool, StageRun, TensorSet,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::merge::Merge;
use lapwing_kernels::model::{Model, ModelConfig};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{Part, Share};

#[test]
fn fused_ops_give_the_same_bits_as_single_ops() {
    for name in names() {
        let Tiny { file, ids } = Tiny::open(&name);
        for isa in isas() {
            // In stages of one node, nothing can be fused.
            let single = staged_logits(&file, &ids, 512, 1, Cpu::new(2, isa));
            let divisions = [(512, usize::MAX), (39, 3), (1, usize::MAX), (512, 2), (7, 5)];
            for &(chunk, stage) in &divisions[..if is_emulated() { 2 } else { 5 }] {
                let found = staged_logits(&file, &ids, chunk, stage, Cpu::new(2, isa));
                let what = format!("{name} on {}, stages of {stage}", isa.name());
                assert!(found == single, "{what}, chunks of {chunk}");
            }
        }
    }
}

/// The longest runs of nodes for which `can_cut` is true.
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

/// Logits of one chunk, with the nodes of `cuts` divided into `parts` and the others whole.
fn cut_logits(
    Tiny { file, ids }: &Tiny,
    config: &ModelConfig,
    graph: &Arc<Graph>,
    cuts: &[Range<usize>],
    parts: &[Part],
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
        let stage = Stage { graph, nodes: cut.clone(), batch: &batch };
        let outputs = parts.iter().map(|part| (part, stage.run(&mut device, part, &tensors)));
        let outputs = outputs.collect();
        let (writes, read, slots) = (&writes[..], &tensors, &slots);
        let merge = Merge { graph, batch: &batch, writes, read, slots };
        let (outputs, _) = merge.run(outputs).expect("all parts");
        tensors.keep(&graph.live_out(cut));
        tensors.append(outputs);
    }
    let tensor = tensors.take(graph.output()).expect("logits");
    (0..tensor.rows()).map(|r| tensor.row(r).to_vec()).collect()
}

/// Each slot is made by the part that has its expert, whether a row has experts of one part or of several.
#[test]
fn experts_of_parts_give_the_same_bits_as_those_of_the_whole() {
    let mut cut = 0;
    for name in names() {
        let tiny = Tiny::open(&name);
        let model = Model::from_weights(&tiny.file).expect("a model");
        let graph = Arc::new(model.graph);
        let cuts = cut_stages(&graph, |nodes| graph.can_cut_experts(nodes).is_some());
        let count = |nodes: &Range<usize>| graph.can_cut_experts(nodes.clone()).map(|op| op.count);
        let Some(count) = cuts.iter().filter_map(count).next() else { continue };
        let whole = logits(&tiny.file, &tiny.ids, 512, Cpu::new(2, Isa::best()));
        for borders in [vec![1], vec![count / 2], vec![count - 1], vec![1, count - 2], vec![]] {
            let starts = std::iter::once(0).chain(borders.iter().copied());
            let ends = borders.iter().copied().chain([count]);
            let parts: Vec<Part> = starts.zip(ends).map(|(a, b)| Part::of_experts(a..b)).collect();
            let found = cut_logits(&tiny, &model.config, &graph, &cuts, &parts);
            assert!(found == whole, "{name}: {parts:?}");
            cut += 1;
        }
    }
    let least = if is_emulated() { 10 } else { 31 };
    assert!(cut >= least, "only {cut} cuts");
}

#[test]
fn other_ops_are_not_computed_for_some_experts() {
    let tiny = Tiny::open("qwen3moe");
    let model = Model::from_weights(&tiny.file).expect("a model");
    let graph = Arc::new(model.graph);
    let cpu = Cpu::new(1, Isa::best());
    let (mut device, lease) = device(&model.config, &graph, &tiny.file, tiny.ids.len(), cpu);
    let mut batch = Batch::default();
    batch.push(&tiny.ids, 0, lease.page_ids().to_vec(), 0..tiny.ids.len());
    let (part, mut outputs, writes) = (Part::of_experts(0..1), TensorSet::default(), []);
    let error = device.run(StageRun {
        nodes: 0..1,
        part: &part,
        prepare: Prepare::Ahead,
        batch: &batch,
        inputs: &TensorSet::default(),
        writes: &writes,
        outputs: &mut outputs,
        observer: &mut (),
    });
    assert!(matches!(error, Err(DeviceError::Unsupported { .. })), "{error:?}");
}

#[test]
fn fused_ops_of_parts_give_the_same_bits_as_those_of_the_whole() {
    for name in names() {
        let tiny = Tiny::open(&name);
        let whole = logits(&tiny.file, &tiny.ids, 512, Cpu::new(2, Isa::best()));
        let model = Model::from_weights(&tiny.file).expect("a model");
        let graph = Arc::new(model.graph);
        let rows = [0..13, 13..14, 14..tiny.ids.len()]
            .map(|rows| Part { rows: Some(rows), ..Part::WHOLE });
        let features = [(0, 1), (1, 3)]
            .map(|(from, to)| Part { features: Share { from, to, of: 3 }, ..Part::WHOLE });
        let by_rows = cut_stages(&graph, |nodes| graph.can_cut_rows(nodes));
        let by_features = cut_stages(&graph, |nodes| graph.can_cut_features(nodes));
        assert!(by_rows.iter().chain(&by_features).any(|cut| cut.len() > 2), "{name}");
        for (cuts, parts) in [(&by_rows[..], &rows[..]), (&by_features[..], &features[..])] {
            let found = cut_logits(&tiny, &model.config, &graph, cuts, parts);
            assert!(found == whole, "{name}: {parts:?}");
        }
    }
}

#[test]
fn a_decode_step_dispatches_three_to_five_times_per_layer() {
    for name in exact_names() {
        let Tiny { file, ids } = Tiny::open(&name);
        let model = Model::from_weights(&file).expect("a model");
        // Products of 16 values are not divided, and factors on products are dispatches of their own.
        let has_factors = model.graph.nodes().iter().any(|n| matches!(n.op, Op::ScaleBy { .. }));
        if model.config.width < 32 || has_factors {
            continue;
        }
        let (graph, layers) = (Arc::new(model.graph), model.config.layers);
        let (mut device, lease) = device(&model.config, &graph, &file, 2, Cpu::new(2, Isa::best()));
        let mut tensors = TensorSet::default();
        for (position, id) in ids[..2].iter().enumerate() {
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

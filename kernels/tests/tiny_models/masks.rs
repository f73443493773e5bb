//! Attention masks through the whole graph: against the naive reference, and in chunks.

use std::sync::Arc;

use super::{Tiny, attending, device, logits, run};
use half::f16;
use lapwing_kernels::cpu::{Activations, Cpu, Isa};
use lapwing_kernels::device::{Batch, TensorSet};
use lapwing_kernels::graph::{Graph, ValueId};
use lapwing_kernels::mask::{AttentionRule, BlockList, Mask};
use lapwing_kernels::model::Model;
use lapwing_kernels::op::{AttentionOp, Op};
use lapwing_kernels::reference::{DenseAttention, attention, dequantize};
use lapwing_kernels::tensor::Tensor;
use lapwing_kernels::weights::WeightFile;

/// Models with fewer KV heads than query heads; the last two have windows of their own.
pub(super) const MODELS: [&str; 3] = ["llama", "gemma2", "gemma3"];

/// One with windows and sinks, whose layers do not all rotate.
pub(super) const SUNK: &str = "granite_swa";

fn models() -> impl Iterator<Item = &'static str> {
    MODELS.into_iter().chain([SUNK])
}

/// The sinks of an attention op.
pub(super) fn sinks(file: &WeightFile, graph: &Graph, op: &AttentionOp) -> Option<Vec<f64>> {
    let spec = &graph.weights()[op.sinks?.0];
    let bytes = file.tensor(&spec.name).expect("a tensor").read().expect("data");
    Some(dequantize(spec.dtype, &bytes).into_iter().map(f64::from).collect())
}

fn rules(texts: &[&str]) -> Vec<AttentionRule> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

/// Masks of awkward sizes: windows across page boundaries, blocks that rows see only in part, rows that
/// see nothing, and layers of different masks.
fn masks() -> Vec<Vec<AttentionRule>> {
    let texts: [&[&str]; 7] = [
        &["window=1"],
        &["window=31"],
        &["dilated=5x3"],
        &["dilated=1000x7"],
        &["block-sparse=13:0-0,1-0,1-1,3-1,3-3,4-0,4-4,5-2,7-7"],
        &["block-sparse=32:0-0,1-1,2-0,2-2,3-1,3-3;window=40"],
        &["window=9", "0:dilated=3x11", "1-1:causal"],
    ];
    let mut all: Vec<Vec<AttentionRule>> = texts.map(rules).into();
    let list = BlockList::local_and_global(8, 2, 1, 64).expect("a list");
    all.push(vec![Mask::blocks(list).into()]);
    all
}

/// Logits of all positions under these rules, in chunks; `check` sees each attention op.
fn masked(
    tiny: &Tiny,
    rules: &[AttentionRule],
    chunk: usize,
    cpu: Cpu,
    check: &mut dyn FnMut(&Graph, usize, &TensorSet, &TensorSet),
) -> Vec<Vec<f32>> {
    let mut model = Model::from_weights(&tiny.file).expect("a model");
    model.graph.set_attention(rules).expect("masks");
    observed(model, tiny, chunk, cpu, check)
}

/// Logits of all positions of a model, in chunks; `check` sees each attention op.
pub(super) fn observed(
    model: Model,
    Tiny { file, ids }: &Tiny,
    chunk: usize,
    cpu: Cpu,
    check: &mut dyn FnMut(&Graph, usize, &TensorSet, &TensorSet),
) -> Vec<Vec<f32>> {
    let graph = Arc::new(model.graph);
    let (mut device, lease) = device(&model.config, &graph, file, ids.len(), cpu);
    let mut rows = Vec::new();
    for (i, ids) in ids.chunks(chunk).enumerate() {
        let mut batch = Batch::default();
        batch.push(ids, i * chunk, lease.page_ids().to_vec(), 0..ids.len());
        let mut tensors = TensorSet::default();
        for node in 0..graph.nodes().len() {
            let copied = copy(&graph, node, &tensors);
            run(&mut device, &graph, node..node + 1, &batch, &mut tensors);
            if let Some(inputs) = copied {
                check(&graph, node, &inputs, &tensors);
            }
        }
        let tensor = tensors.take(graph.output()).expect("logits");
        rows.extend((0..tensor.rows()).map(|r| tensor.row(r).to_vec()));
    }
    rows
}

/// The inputs of an attention op.
fn copy(graph: &Graph, node: usize, tensors: &TensorSet) -> Option<TensorSet> {
    let node = &graph.nodes()[node];
    let Op::Attention(_) = node.op else { return None };
    let mut copied = TensorSet::default();
    for id in &node.inputs {
        copied.put(*id, Tensor::new(graph.value(*id).width, values(tensors, *id)));
    }
    Some(copied)
}

pub(super) fn values(tensors: &TensorSet, id: ValueId) -> Vec<f32> {
    tensors.get(id).and_then(|tensor| tensor.host()).expect("a value in memory").to_vec()
}

#[test]
fn every_mask_equals_the_reference_in_every_attention_op() {
    for name in models() {
        let tiny = Tiny::open(name);
        let config = Model::from_weights(&tiny.file).expect("a model").config;
        let heads = config.heads[0];
        assert!(heads.kv.count < heads.count, "{name}: grouped queries");
        for rules in masks() {
            for isa in attending() {
                let cpu = Cpu::new(2, isa).with_activations(Activations::F32);
                let mut checked = 0;
                let mut check = |graph: &Graph,
                                 node: usize,
                                 inputs: &TensorSet,
                                 done: &TensorSet| {
                    let node = &graph.nodes()[node];
                    let Op::Attention(op) = &node.op else { return };
                    let [q, k, v] = [0, 1, 2].map(|at| values(inputs, node.inputs[at]));
                    let stored = |x: Vec<f32>| -> Vec<f32> {
                        x.into_iter().map(|x| f16::from_f32(x).to_f32()).collect()
                    };
                    let sinks = sinks(&tiny.file, graph, op);
                    assert_eq!(sinks.is_some(), name == SUNK);
                    let dense = DenseAttention {
                        q: &q,
                        k: &stored(k),
                        v: &stored(v),
                        shape: (heads.count, heads.kv.count, heads.kv.key_dim),
                        scale: f64::from(op.scale),
                        slopes: None,
                        sinks: sinks.as_deref(),
                        soft_cap: op.soft_cap.map(f64::from),
                    };
                    // Directly from the rules and the architecture, not from their combination.
                    let rule = rules.iter().rev().find(|rule| rule.covers(op.layer));
                    let sees = |pos: usize, key: usize| {
                        rule.is_none_or(|rule| rule.mask.sees(pos, key))
                            && op.window.is_none_or(|window| key + window > pos)
                    };
                    let want =
                        attention(&dense, |pos| (0..=pos).filter(|key| sees(pos, *key)).collect());
                    let found = values(done, node.output);
                    let largest = want.iter().fold(0.0f64, |max, x| max.max(x.abs()));
                    for (found, want) in found.iter().zip(&want) {
                        let error = (f64::from(*found) - want).abs();
                        let what = format!("{name} {rules:?} layer {} on {}", op.layer, isa.name());
                        assert!(error <= 2e-5 * largest, "{what}: {found} instead of {want}");
                    }
                    assert_eq!(found.len(), want.len());
                    checked += 1;
                };
                masked(&tiny, &rules, usize::MAX, cpu, &mut check);
                assert_eq!(checked, config.layers, "{name}");
            }
        }
    }
}

#[test]
fn masked_logits_do_not_depend_on_chunks_or_threads_by_a_single_bit() {
    for name in models() {
        let tiny = Tiny::open(name);
        for rules in masks() {
            let of = |chunk: usize, threads: usize| {
                let cpu = Cpu::new(threads, Isa::best());
                masked(&tiny, &rules, chunk, cpu, &mut |_, _, _, _| {})
            };
            let whole = of(usize::MAX, 1);
            for (chunk, threads) in [(1, 1), (7, 2), (32, 3)] {
                assert!(of(chunk, threads) == whole, "{name} {rules:?}: {chunk} on {threads}");
            }
        }
    }
}

#[test]
fn a_mask_that_hides_nothing_changes_no_bit_and_others_change_some() {
    for name in models() {
        let tiny = Tiny::open(name);
        let of = |texts: &[&str]| {
            let cpu = Cpu::new(2, Isa::best());
            masked(&tiny, &rules(texts), usize::MAX, cpu, &mut |_, _, _, _| {})
        };
        let own = logits(&tiny.file, &tiny.ids, usize::MAX, Cpu::new(2, Isa::best()));
        for texts in [&[][..], &["causal"], &["window=100000"], &["window=3", "causal"]] {
            assert!(of(texts) == own, "{name} {texts:?}");
        }
        for texts in [&["window=5"], &["1:window=5"], &["dilated=4x2"], &["block-sparse=500:0-1"]] {
            assert!(of(texts) != own, "{name} {texts:?}");
        }
        assert!(of(&["dilated=100000x1"]) == own, "{name}: every position");
    }
}

#[test]
fn an_own_window_stays_in_force_and_later_calls_replace_earlier_ones() {
    let file = Tiny::open("gemma2").file;
    let mut model = Model::from_weights(&file).expect("a model");
    let before = model.graph.clone();
    let own = model.config.window.expect("a window");
    let texts = |graph: &Graph| -> Vec<String> {
        graph.attention().iter().map(ToString::to_string).collect()
    };
    model.graph.set_attention(&rules(&["window=100000"])).expect("a mask");
    assert_eq!(texts(&model.graph)[..2], [format!("0:window={own}"), "1:window=100000".to_owned()]);
    model.graph.set_attention(&rules(&["window=3"])).expect("a mask");
    assert_eq!(texts(&model.graph), [format!("0-{}:window=3", model.config.layers - 1)]);
    let wrong = format!("0-{}:causal", model.config.layers);
    let error = model.graph.set_attention(&rules(&[&wrong])).expect_err("a layer too many");
    assert!(error.to_string().contains(&wrong), "{error}");
    assert_eq!(texts(&model.graph), [format!("0-{}:window=3", model.config.layers - 1)]);
    model.graph.set_attention(&[]).expect("none");
    assert_eq!(model.graph, before);
}

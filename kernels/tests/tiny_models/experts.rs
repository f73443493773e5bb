//! Keys of mixtures of experts, and of architectures that have them.

use super::names::names;
use super::variants::Variant;
use super::{Tiny, ids, logits, reference};
use lapwing_kernels::cpu::{Activations, Cpu, Isa};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::model::{LayerAttention, Model};
use lapwing_kernels::op::Op;
use lapwing_kernels::weights::MetaValue;

#[test]
fn experts_that_no_layer_has_are_refused_by_name() {
    for arch in ["llama", "qwen2"] {
        let key = format!("{arch}.expert_count");
        let error = Variant::of(&format!("{arch}.gguf"))
            .key(&key, 8_u32)
            .key(&format!("{arch}.expert_used_count"), 2_u32)
            .error()
            .to_string();
        assert!(error.contains(&format!("metadata key '{key}'")), "{error}");
    }
}

#[test]
fn a_dense_model_may_call_its_block_an_expert() {
    let name = "hunyuan-dense.gguf";
    let file = |count: u32| Variant::of(name).key("hunyuan-dense.expert_count", count);
    assert!(Model::from_weights(&file(1).write()).is_ok());
    assert!(file(2).error().to_string().contains("hunyuan-dense.expert_count"));
}

#[test]
fn keys_of_experts_that_cannot_be_are_refused_by_name() {
    let rows: [(&str, MetaValue); 5] = [
        ("expert_used_count", 9_u32.into()),
        ("expert_gating_func", 5_u32.into()),
        ("expert_group_count", 3_u32.into()),
        ("expert_group_count", 8_u32.into()),
        ("expert_group_used_count", 5_u32.into()),
    ];
    for (key, value) in rows {
        let key = format!("bailingmoe2.{key}");
        let error = Variant::of("bailingmoe2.gguf").key(&key, value).error().to_string();
        assert!(error.contains(&format!("metadata key '{key}'")), "{error}");
    }
}

#[test]
fn keys_of_bounds_and_groups_that_cannot_be_are_refused_by_name() {
    let limits = |least: f32| -> MetaValue { vec![0.0, least, 0.0, 0.75, 0.0].into() };
    let rows: [(&str, &str, MetaValue); 11] = [
        ("step35", "swiglu_clamp_exp", limits(0.25)),
        ("step35", "swiglu_clamp_exp", vec![0.5_f32; 4].into()),
        ("step35", "swiglu_clamp_shexp", limits(-1.0)),
        ("step35", "rope.dimension_count", 6_u32.into()),
        ("step35", "rope.dimension_count_swa", 10_u32.into()),
        ("bailingmoe3", "kda.gate_lower_bound", 0.5_f32.into()),
        ("bailingmoe3", "kda.safe_gate", false.into()),
        ("grovemoe", "experts_per_group", 3_u32.into()),
        ("grovemoe", "expert_group_scale", f32::INFINITY.into()),
        ("maple", "swiglu_clamp_exp", 0.25_f32.into()),
        ("llama", "swiglu_clamp_shexp", 7.0_f32.into()),
    ];
    for (name, key, value) in rows {
        let key = format!("{name}.{key}");
        let error = Variant::of(&format!("{name}.gguf")).key(&key, value).error().to_string();
        assert!(error.contains(&format!("metadata key '{key}'")), "{error}");
    }
}

/// A bound that is larger than everything changes no more than rounding does, and a single one is that of all layers.
#[test]
fn bounds_of_gates_bound_what_is_beyond_them_only() {
    let cpu = || Cpu::new(2, Isa::best()).with_activations(Activations::F32);
    for (name, key) in [("step35", "swiglu_clamp_exp"), ("step35", "swiglu_clamp_shexp")] {
        let ids = ids(&reference(name));
        let with = |value: MetaValue| {
            let file = Variant::of(&format!("{name}.gguf")).key(&format!("{name}.{key}"), value);
            logits(&file.write(), &ids, 40, cpu())
        };
        let none = with(vec![0.0_f32; 5].into());
        let near = |a: &[Vec<f32>], b: &[Vec<f32>]| {
            let pairs = a.iter().flatten().zip(b.iter().flatten());
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        assert!(near(&none, &with(1e5_f32.into())) < 1e-4, "{key}");
        assert!(near(&none, &with(0.5_f32.into())) > 0.1, "{key}");
        assert_eq!(with(0.5_f32.into()), with(vec![0.5_f32; 5].into()), "{key}");
    }
}

#[test]
fn chunks_of_positions_begin_at_multiples_of_their_length() {
    let file = Variant::of("llama4.gguf").key("llama4.context_length", 20_000_u32).write();
    let model = Model::from_weights(&file).expect("a model");
    let chunk = LayerAttention::Chunk(8192);
    let expected = [chunk, chunk, chunk, LayerAttention::Full];
    assert_eq!([0, 1, 2, 3].map(|layer| model.config.layer_attention(layer)), expected);
    let masks: Vec<Mask> = (model.graph.nodes().iter())
        .filter_map(|node| match &node.op {
            Op::Attention(op) => Some(op.seen()),
            _ => None,
        })
        .collect();
    let sees = |layer: usize, pos, key| masks[layer].sees(pos, key);
    assert_eq!([sees(0, 8191, 0), sees(0, 8192, 8191), sees(0, 8192, 8192)], [true, false, true]);
    assert_eq!([sees(2, 19_999, 16_384), sees(2, 19_999, 16_383)], [true, false]);
    assert!(sees(3, 19_999, 0));
}

#[test]
fn no_router_is_requantised() {
    let mut routers = 0;
    for name in names() {
        let model = Model::from_weights(&Tiny::open(&name).file).expect("a model");
        let is_router = |weight: &&str| weight.contains("ffn_gate_inp.weight");
        assert_eq!(model.graph.matrices().find(is_router), None, "{name}");
        let weights = model.graph.weights().iter();
        routers += weights.filter(|weight| is_router(&&*weight.name)).count();
    }
    assert!(routers > 2, "{routers} routers");
}

//! Heads whose keys are longer than their values, and the keys of latent attention.

use super::variants::Variant;
use super::{ids, logits, reference};
use lapwing_kernels::cpu::{Activations, Cpu, Isa};
use lapwing_kernels::weights::MetaValue;

#[test]
fn keys_that_do_not_fit_latent_attention_are_refused_by_name() {
    let rows: [(&str, u32); 5] = [
        ("attention.head_count_kv", 2),
        ("rope.dimension_count", 12),
        ("attention.kv_lora_rank", 0),
        ("attention.kv_lora_rank", 15),
        ("attention.value_length", 70_000),
    ];
    for (key, value) in rows {
        let key = format!("minicpm3.{key}");
        let error = Variant::of("minicpm3.gguf").key(&key, value).error().to_string();
        let names = [format!("metadata key '{key}'"), "attn_kv_a_mqa.weight".to_owned()];
        assert!(error.contains(&names[usize::from(value == 15)]), "{error}");
    }
    let other: MetaValue = 16_u32.into();
    let plain = Variant::of("llama.gguf").key("llama.attention.kv_lora_rank", other);
    assert!(plain.error().to_string().contains("llama.attention.kv_lora_rank"));
}

/// Values of a model with values of 0, and those of the same model without these.
#[test]
fn values_of_zero_may_be_left_out_of_every_head() {
    const HEAD: usize = 16;
    const KEPT: usize = 10;
    let is_kept = |at: &usize| at % HEAD < KEPT;
    let (mut zeros, mut cut) = (Variant::of("llama.gguf"), Variant::of("llama.gguf"));
    let names: Vec<String> = cut.tensors.keys().cloned().collect();
    for name in names {
        let (dims, dtype, bytes) = cut.tensors[&name].clone();
        let value = dtype.row_bytes(1).expect("no blocks");
        let row = dims[0] * value;
        if name.contains("attn_v.weight") {
            let rows = |at: &usize| bytes[at * row..][..row].to_vec();
            let kept: Vec<u8> = (0..dims[1]).filter(is_kept).flat_map(|at| rows(&at)).collect();
            let zero = |at: usize| if is_kept(&at) { rows(&at) } else { vec![0; row] };
            let all = (0..dims[1]).flat_map(zero).collect();
            cut.tensors.insert(name.clone(), (vec![dims[0], kept.len() / row], dtype, kept));
            zeros.tensors.insert(name, (dims, dtype, all));
        } else if name.contains("attn_output.weight") {
            let of_row = |row: &[u8]| -> Vec<u8> {
                let kept = row.chunks(value).enumerate().filter(|(at, _)| is_kept(at));
                kept.flat_map(|(_, value)| value.to_vec()).collect()
            };
            let kept: Vec<u8> = bytes.chunks(row).flat_map(of_row).collect();
            let columns = kept.len() / value / dims[1];
            cut.tensors.insert(name, (vec![columns, dims[1]], dtype, kept));
        }
    }
    let cut = cut.key("llama.attention.value_length", KEPT as u32);
    let ids = ids(&reference("llama"));
    let of = |variant: &Variant| {
        let cpu = Cpu::new(2, Isa::best()).with_activations(Activations::F32);
        logits(&variant.write(), &ids, 32, cpu)
    };
    let [all, plain, cut] = [&zeros, &Variant::of("llama.gguf"), &cut].map(of);
    let distance = |a: &[Vec<f32>], b: &[Vec<f32>]| {
        let pairs = a.iter().flatten().zip(b.iter().flatten());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    assert!(distance(&all, &cut) <= 1e-4, "{}", distance(&all, &cut));
    assert!(distance(&all, &plain) > 0.1, "the values that are left out mattered");
}

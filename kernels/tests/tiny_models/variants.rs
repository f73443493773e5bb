//! Files with other keys and tensors than those of `tests/reference/tiny`: each key that changes results is read or
//! refused, and matrices may be parts of tensors.

use std::collections::BTreeMap;

use super::{distance, folder, ids, logits, reference};
use lapwing_kernels::cpu::{Activations, Cpu, Isa};
use lapwing_kernels::formats::DType;
use lapwing_kernels::kv::KvSharing;
use lapwing_kernels::model::{Model, ModelError};
use lapwing_kernels::weights::{GgufWriter, MetaValue, WeightFile};
use serde_json::Value;

/// A tensor: dimensions (columns first), format and data.
type Data = (Vec<usize>, DType, Vec<u8>);

/// A model file to be changed.
pub(super) struct Variant {
    file: WeightFile,
    keys: Vec<(String, MetaValue)>,
    pub(super) tensors: BTreeMap<String, Data>,
}

impl Variant {
    pub(super) fn of(name: &str) -> Variant {
        let file = WeightFile::open(&folder().join(name)).expect("a weight file");
        let tensors = file.tensors().map(|info| {
            let bytes = file.tensor(&info.name).expect("a tensor").read().expect("its data");
            (info.name.clone(), (info.shape.dims().to_vec(), info.dtype, bytes))
        });
        let tensors = tensors.collect();
        Variant { file, keys: Vec::new(), tensors }
    }

    pub(super) fn key(mut self, key: &str, value: impl Into<MetaValue>) -> Variant {
        self.keys.push((key.to_owned(), value.into()));
        self
    }

    /// Joins tensors that have the same columns, or vectors, in this order.
    fn join(mut self, names: &[String], joined: &str) -> Variant {
        let parts: Vec<Data> = names.iter().filter_map(|name| self.tensors.remove(name)).collect();
        let Some((dims, dtype, _)) = parts.first().cloned() else { return self };
        let last = dims.len() - 1;
        let mut all = dims;
        all[last] = parts.iter().map(|(dims, ..)| dims[last]).sum();
        let bytes = parts.iter().flat_map(|(.., bytes)| bytes.clone()).collect();
        self.tensors.insert(joined.to_owned(), (all, dtype, bytes));
        self
    }

    /// Queries, keys and values of each layer in one matrix, as `--fuse-qkv` of llama.cpp's converter has them.
    fn joined(mut self) -> Variant {
        for layer in 0..Model::from_weights(&self.file).expect("a model").config.layers {
            for kind in ["weight", "bias"] {
                let names = ["q", "k", "v"].map(|part| format!("blk.{layer}.attn_{part}.{kind}"));
                self = self.join(&names, &format!("blk.{layer}.attn_qkv.{kind}"));
            }
        }
        self
    }

    /// More rows of embeddings and of the output matrix than tokens: copies of the first rows.
    fn padded(mut self, rows: usize) -> Variant {
        for name in ["token_embd.weight", "output.weight"] {
            let Some((dims, dtype, bytes)) = self.tensors.get_mut(name) else { continue };
            let more = rows * dtype.row_bytes(dims[0]).expect("whole blocks");
            bytes.extend_from_within(..more);
            dims[1] += rows;
        }
        self
    }

    pub(super) fn write(&self) -> WeightFile {
        let mut writer = GgufWriter::new();
        let is_kept = |key: &str| self.keys.iter().all(|(other, _)| other != key);
        for (key, value) in self.file.metadata().iter().filter(|(key, _)| is_kept(key)) {
            writer.meta_of(key, value);
        }
        for (key, value) in &self.keys {
            writer.meta(key, value.clone());
        }
        for (name, (dims, dtype, bytes)) in &self.tensors {
            writer.tensor(name, dims, *dtype, bytes.clone());
        }
        let path = tempfile::NamedTempFile::new().expect("a file");
        let mut bytes = Vec::new();
        writer.write_to(&mut bytes).expect("a GGUF file");
        std::fs::write(path.path(), bytes).expect("written");
        WeightFile::open(path.path()).expect("a weight file")
    }

    pub(super) fn error(&self) -> ModelError {
        Model::from_weights(&self.write()).expect_err("a refusal")
    }
}

pub(super) fn cpu() -> Cpu {
    Cpu::new(2, Isa::best())
}

fn value(json: &Value) -> MetaValue {
    match json {
        Value::Array(all) => {
            all.iter().map(|v| v.as_bool().expect("a bool")).collect::<Vec<_>>().into()
        }
        number if number.is_u64() => (number.as_u64().expect("a number") as u32).into(),
        number => (number.as_f64().expect("a number") as f32).into(),
    }
}

#[test]
fn keys_of_windows_are_read() {
    let text = std::fs::read_to_string(folder().join("variants.exact")).expect("reference");
    let all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(all.len() >= 8);
    for wanted in all {
        let mut variant = Variant::of(wanted["file"].as_str().expect("a file"));
        for (key, json) in wanted["keys"].as_object().expect("keys") {
            variant = variant.key(key, value(json));
        }
        // Without pairs of bfloat16 in attention.
        let cpu = cpu().with_activations(Activations::F32);
        let found = logits(&variant.write(), &ids(&wanted), 512, cpu);
        let distance = distance(&found, &wanted, "exact");
        assert!(distance <= 0.008, "{}: {distance}", wanted["keys"]);
    }
}

#[test]
fn a_list_of_windows_has_a_value_for_each_layer() {
    const KEY: &str = "gemma2.attention.sliding_window_pattern";
    let short = Variant::of("gemma2.gguf").key(KEY, vec![true, false, true]);
    let error = short.error().to_string();
    assert!(error.contains(KEY) && error.contains("each of the 4 layers"), "{error}");
    let numbers = Variant::of("gemma2.gguf").key(KEY, vec![1_u32, 0, 1, 0]).write();
    let (same, ids) = (Variant::of("gemma2.gguf").write(), ids(&reference("gemma2")));
    assert!(logits(&numbers, &ids, 512, cpu()) == logits(&same, &ids, 512, cpu()));
}

#[test]
fn queries_keys_and_values_may_be_one_tensor() {
    for name in ["llama", "qwen2", "qwen3", "gemma3", "format-q4_k", "format-q8_0", "format-bf16"] {
        let separate = Variant::of(&format!("{name}.gguf"));
        let joined = Variant::of(&format!("{name}.gguf")).joined();
        assert!(joined.tensors.len() < separate.tensors.len());
        let (separate, joined, ids) = (separate.write(), joined.write(), ids(&reference(name)));
        let (separate, joined) = (&separate, &joined);
        assert!(logits(joined, &ids, 512, cpu()) == logits(separate, &ids, 512, cpu()), "{name}");
    }
}

/// Heads that share keys and values keep the first head of each group, which is a part of a part.
#[test]
fn keys_of_a_joined_tensor_can_be_shared() {
    let sharing: KvSharing = "heads=1".parse().expect("a sharing");
    let tensors = |file: &WeightFile| {
        let mut model = Model::from_weights(file).expect("a model");
        model.share_kv(&sharing).expect("it fits");
        let graph = model.graph;
        let all = (0..graph.weights().len()).map(lapwing_kernels::graph::WeightId);
        let read = |id| graph.tensor(id, file).expect("a tensor").read().expect("data");
        all.map(read).collect::<Vec<_>>()
    };
    for name in ["llama", "qwen2"] {
        let separate = Variant::of(&format!("{name}.gguf")).write();
        let joined = Variant::of(&format!("{name}.gguf")).joined().write();
        assert!(tensors(&separate) == tensors(&joined), "{name}");
    }
}

#[test]
fn rows_of_embeddings_without_a_token_have_no_logits() {
    for name in ["llama", "llama-tied", "format-q4_k"] {
        let exact = Variant::of(&format!("{name}.gguf")).write();
        let padded = Variant::of(&format!("{name}.gguf")).padded(32).write();
        let ids = ids(&reference(name));
        assert_eq!(Model::from_weights(&padded).expect("a model").graph.vocab(), 288);
        let (exact, padded) = (logits(&exact, &ids, 512, cpu()), logits(&padded, &ids, 512, cpu()));
        assert!(padded == exact, "{name}");
    }
}

#[test]
fn biases_of_projections_are_optional() {
    let mut without = Variant::of("qwen2.gguf");
    let mut with_zeros = Variant::of("qwen2.gguf");
    without.tensors.retain(|name, _| !name.ends_with(".bias"));
    let biases = with_zeros.tensors.iter_mut().filter(|(name, _)| name.ends_with(".bias"));
    biases.for_each(|(_, (.., bytes))| bytes.fill(0));
    let ids = ids(&reference("qwen2"));
    let (without, with_zeros) = (without.write(), with_zeros.write());
    assert!(logits(&without, &ids, 512, cpu()) == logits(&with_zeros, &ids, 512, cpu()));
}

#[test]
fn a_key_that_would_change_results_is_refused_by_name() {
    let rows: [(&str, MetaValue); 16] = [
        ("attention.scale", 0.5_f32.into()),
        ("attention.clamp_kqv", 8.0_f32.into()),
        ("attention.max_alibi_bias", 8.0_f32.into()),
        ("attention.key_length_swa", 8_u32.into()),
        ("attention.sliding_window", 64_u32.into()),
        ("attention.shared_kv_layers", 1_u32.into()),
        ("attention.causal", false.into()),
        ("logit_scale", 0.25_f32.into()),
        ("residual_scale", 0.25_f32.into()),
        ("embedding_scale", 12.0_f32.into()),
        ("embedding_length_out", 32_u32.into()),
        ("use_parallel_residual", true.into()),
        ("rope.dimension_sections", vec![4_u32, 2, 2, 0].into()),
        ("rope.scaling.type", "dynamic".into()),
        ("rope.scaling.yarn_log_multiplier", 0.1_f32.into()),
        ("hidden_activation", "relu".into()),
    ];
    for (key, value) in rows {
        let key = format!("llama.{key}");
        let error = Variant::of("llama.gguf").key(&key, value).error().to_string();
        assert!(error.contains(&format!("metadata key '{key}'")), "{error}");
    }
}

#[test]
fn a_key_that_changes_nothing_is_accepted() {
    let rows: [(&str, MetaValue); 16] = [
        ("attention.scale", 0.25_f32.into()),
        ("attention.clamp_kqv", 0.0_f32.into()),
        ("attention.sliding_window", 256_u32.into()),
        ("attention.key_length_swa", 16_u32.into()),
        ("logit_scale", 1.0_f32.into()),
        ("residual_scale", 0.0_f32.into()),
        ("embedding_length_out", 64_u32.into()),
        ("use_parallel_residual", false.into()),
        ("rope.scaling.finetuned", true.into()),
        ("rope.scaling.yarn_ext_factor", (-1.0_f32).into()),
        ("rope.freq_base_swa", 500.0_f32.into()),
        ("hidden_activation", "silu".into()),
        ("tensor_data_layout", "Meta AI original pth".into()),
        ("vocab_size", 320_u32.into()),
        ("expert_used_count", 0_u32.into()),
        ("notes_of_its_author", "of no other program".into()),
    ];
    let ids = ids(&reference("llama"));
    let plain = logits(&Variant::of("llama.gguf").write(), &ids, 512, cpu());
    let all = rows.into_iter().fold(Variant::of("llama.gguf"), |variant, (key, value)| {
        variant.key(&format!("llama.{key}"), value)
    });
    assert!(logits(&all.write(), &ids, 512, cpu()) == plain);
}

#[test]
fn layers_that_do_not_fit_each_other_are_refused_by_name() {
    let rows: [(&str, MetaValue); 6] = [
        ("attention.shared_kv_layers", 6_u32.into()),
        ("attention.shared_kv_layers", 7_u32.into()),
        ("attention.value_length_swa", 4_u32.into()),
        ("rope.dimension_count_swa", 10_u32.into()),
        ("attention.head_count_kv", vec![1_u32, 1].into()),
        ("feed_forward_length", vec![16_u32, 16, 16, 16, 16, 32, 0].into()),
    ];
    for (key, value) in rows {
        let key = format!("gemma4.{key}");
        let error = Variant::of("gemma4.gguf").key(&key, value).error().to_string();
        assert!(error.contains(&format!("metadata key '{key}'")), "{error}");
    }
}

#[test]
fn counts_of_blocks_that_do_not_fit_each_other_are_refused_by_name() {
    const HEADS: &str = "attention.head_count_kv";
    let rows: [(&str, &str, MetaValue, &str); 4] = [
        ("hrm_text", "hrm.l_cycles", 3_u32.into(), "block_count"),
        ("nanbeige", "num_loops", 4000_u32.into(), "num_loops"),
        ("deci", "feed_forward_length", vec![48_u32, 32, 48, 0, 0].into(), "feed_forward_length"),
        ("deci", HEADS, vec![2_u32, 0, 1, 0, 1].into(), HEADS),
    ];
    for (name, key, value, named) in rows {
        let variant = Variant::of(&format!("{name}.gguf")).key(&format!("{name}.{key}"), value);
        let error = variant.error().to_string();
        assert!(error.contains(&format!("metadata key '{name}.{named}'")), "{error}");
    }
}

/// As some converters write them.
#[test]
fn matrices_of_keys_that_nothing_reads_change_nothing() {
    let plain = Variant::of("gemma4.gguf");
    let mut more = Variant::of("gemma4.gguf");
    for part in ["k", "v"] {
        let name = |layer: usize| format!("blk.{layer}.attn_{part}.weight");
        let data = more.tensors[&name(3)].clone();
        more.tensors.insert(name(5), data);
    }
    let ids = ids(&reference("gemma4"));
    assert!(logits(&more.write(), &ids, 512, cpu()) == logits(&plain.write(), &ids, 512, cpu()));
}

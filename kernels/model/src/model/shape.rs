//! Models by shape: op graphs of published models without weights, for planning and simulation.
//! They come from the same builder as the graphs of weight files.

use super::build::build;
use super::tensors::{TensorSpec, Tensors};
use super::{Architecture, Model, ModelConfig, ModelError};
use crate::formats::DType;
use crate::weights::{Metadata, Value};

/// Published sizes of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Name on the command line, such as `llama-3-8b`.
    pub name: &'static str,
    /// Name in reports.
    pub title: &'static str,
    /// Architecture, as in `general.architecture`.
    pub arch: &'static str,
    /// Transformer layers.
    pub layers: usize,
    /// Hidden size: values per token between layers.
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Values per head.
    pub head_dim: usize,
    /// Intermediate size of the feed-forward blocks.
    pub ffn_width: usize,
    /// Vocabulary size.
    pub vocab: usize,
    /// Whether the output matrix is the embedding table.
    pub tied: bool,
    /// Whether queries, keys and values have biases.
    pub qkv_bias: bool,
    /// Context length of the training, in tokens.
    pub context: usize,
    /// Rotary base.
    pub rope_base: f32,
    /// Epsilon of the RMS norms.
    pub norm_eps: f32,
    /// Hugging Face repository whose `config.json` has these numbers.
    pub source: &'static str,
}

/// Llama 3 with 8 billion parameters.
const LLAMA_3_8B: ModelShape = ModelShape {
    name: "llama-3-8b",
    title: "Llama-3-8B",
    arch: "llama",
    layers: 32,
    width: 4096,
    heads: 32,
    kv_heads: 8,
    head_dim: 128,
    ffn_width: 14_336,
    vocab: 128_256,
    tied: false,
    qkv_bias: false,
    context: 8192,
    rope_base: 500_000.0,
    norm_eps: 1e-5,
    source: "meta-llama/Meta-Llama-3-8B",
};

const SHAPES: &[ModelShape] = &[
    LLAMA_3_8B,
    ModelShape {
        name: "llama-2-7b",
        title: "Llama-2-7B",
        kv_heads: 32,
        ffn_width: 11_008,
        vocab: 32_000,
        context: 4096,
        rope_base: 10_000.0,
        source: "meta-llama/Llama-2-7b-hf",
        ..LLAMA_3_8B
    },
    ModelShape {
        name: "llama-3.2-3b",
        title: "Llama-3.2-3B",
        layers: 28,
        width: 3072,
        heads: 24,
        ffn_width: 8192,
        tied: true,
        context: 131_072,
        source: "meta-llama/Llama-3.2-3B",
        ..LLAMA_3_8B
    },
    ModelShape {
        name: "internlm2-1.8b",
        title: "InternLM2-1.8B",
        arch: "internlm2",
        layers: 24,
        width: 2048,
        heads: 16,
        ffn_width: 8192,
        vocab: 92_544,
        context: 32_768,
        rope_base: 1_000_000.0,
        source: "internlm/internlm2-1_8b",
        ..LLAMA_3_8B
    },
    ModelShape {
        name: "qwen1.5-1.8b",
        title: "Qwen1.5-1.8B",
        arch: "qwen2",
        qkv_bias: true,
        layers: 24,
        width: 2048,
        heads: 16,
        kv_heads: 16,
        ffn_width: 5504,
        vocab: 151_936,
        context: 32_768,
        rope_base: 1_000_000.0,
        norm_eps: 1e-6,
        source: "Qwen/Qwen1.5-1.8B",
        ..LLAMA_3_8B
    },
    ModelShape {
        name: "qwen2-1.5b",
        title: "Qwen2-1.5B",
        arch: "qwen2",
        qkv_bias: true,
        layers: 28,
        width: 1536,
        heads: 12,
        kv_heads: 2,
        ffn_width: 8960,
        vocab: 151_936,
        tied: true,
        context: 32_768,
        rope_base: 1_000_000.0,
        norm_eps: 1e-6,
        source: "Qwen/Qwen2-1.5B-Instruct",
        ..LLAMA_3_8B
    },
];

impl ModelShape {
    /// All shapes that have a name.
    pub fn all() -> &'static [ModelShape] {
        SHAPES
    }

    /// The shape of that name.
    pub fn by_name(name: &str) -> Option<&'static ModelShape> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    /// Hyper-parameters and op graph. Matrices get the format Q4_0, vectors F32; a simulation sets
    /// the bits per weight itself. The factors that divide Llama 3.2's rotary frequencies are stored
    /// in weight files only, and are left out.
    ///
    /// # Errors
    /// [`ModelError::UnknownArchitecture`] if the architecture is not in the table.
    pub fn model(&self) -> Result<Model, ModelError> {
        let config = self.config()?;
        let context = config.context;
        build(config, &ShapeTensors(self), None, context)
    }

    fn config(&self) -> Result<ModelConfig, ModelError> {
        let arch = Architecture::by_name(self.arch)
            .ok_or_else(|| ModelError::UnknownArchitecture { found: self.arch.to_owned() })?;
        let config = ModelConfig::of(arch, &self.metadata())?;
        Ok(ModelConfig { name: Some(self.title.to_owned()), ..config })
    }

    /// The keys that a weight file of this shape would have.
    fn metadata(&self) -> Metadata {
        let counts = [
            ("block_count", self.layers),
            ("embedding_length", self.width),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_dim),
            ("feed_forward_length", self.ffn_width),
            ("context_length", self.context),
        ];
        let numbers = [
            ("rope.freq_base", self.rope_base),
            ("attention.layer_norm_rms_epsilon", self.norm_eps),
        ];
        let counts = counts.map(|(key, count)| (key, Value::U64(count as u64)));
        let all = counts.into_iter().chain(numbers.map(|(key, number)| (key, Value::F32(number))));
        Metadata::new(all.map(|(key, value)| (format!("{}.{key}", self.arch), value)).collect())
    }
}

/// Tensors that a weight file of this shape would have.
struct ShapeTensors<'a>(&'a ModelShape);

impl Tensors for ShapeTensors<'_> {
    fn find(&self, name: &str) -> Option<TensorSpec> {
        let shape = self.0;
        let (width, ffn) = (shape.width, shape.ffn_width);
        let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
        let matrix = |rows, cols| Some(TensorSpec { rows, cols, dtype: DType::Q4_0 });
        let vector = |cols| Some(TensorSpec { rows: 1, cols, dtype: DType::F32 });
        let biased = |cols| if shape.qkv_bias { vector(cols) } else { None };
        let role = match name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            Some((_, role)) => role,
            None => name,
        };
        match role {
            "token_embd.weight" => matrix(shape.vocab, width),
            "output.weight" if shape.tied => None,
            "output.weight" => matrix(shape.vocab, width),
            "attn_q.weight" => matrix(q, width),
            "attn_k.weight" | "attn_v.weight" => matrix(kv, width),
            "attn_output.weight" => matrix(width, q),
            "ffn_gate.weight" | "ffn_up.weight" => matrix(ffn, width),
            "ffn_down.weight" => matrix(width, ffn),
            "attn_q.bias" => biased(q),
            "attn_k.bias" | "attn_v.bias" => biased(kv),
            "attn_q_norm.weight" | "attn_k_norm.weight" => vector(shape.head_dim),
            role if role.ends_with("norm.weight") => vector(width),
            _ => None,
        }
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Op;

    /// Weights of all matmuls.
    fn read_weights(shape: &ModelShape) -> usize {
        let graph = shape.model().expect("a model").graph;
        let matmuls = graph.nodes().iter().filter_map(|node| match node.op {
            Op::MatMul { weight, .. } => Some(&graph.weights()[weight.0]),
            _ => None,
        });
        matmuls.map(|weight| weight.rows * weight.cols).sum()
    }

    /// `rope_theta` and `rms_norm_eps` of each source.
    #[test]
    fn shapes_have_the_published_rope_base_and_epsilon() {
        let published = [
            ("llama-3-8b", 500_000.0, 1e-5),
            ("llama-2-7b", 10_000.0, 1e-5),
            ("llama-3.2-3b", 500_000.0, 1e-5),
            ("internlm2-1.8b", 1_000_000.0, 1e-5),
            ("qwen1.5-1.8b", 1_000_000.0, 1e-6),
            ("qwen2-1.5b", 1_000_000.0, 1e-6),
        ];
        assert_eq!(published.len(), ModelShape::all().len());
        for (name, base, eps) in published {
            let model = ModelShape::by_name(name).expect("is known").model().expect("a model");
            assert_eq!((model.config.rope_base, model.config.norm_eps), (base, eps), "{name}");
            assert_eq!(model.graph.ropes()[0].base, base, "{name}");
        }
    }

    #[test]
    fn shapes_have_the_published_number_of_weights() {
        // 7.505 G for Llama-3-8B. The others are the authors' parameter counts, without the
        // embedding table unless it is also the output matrix.
        let published = [
            ("llama-3-8b", 7.505e9),
            ("llama-2-7b", 6.607e9),
            ("llama-3.2-3b", 3.213e9),
            ("internlm2-1.8b", 1.699e9),
            ("qwen1.5-1.8b", 1.525e9),
            ("qwen2-1.5b", 1.543e9),
        ];
        assert_eq!(published.len(), ModelShape::all().len());
        for (name, want) in published {
            let found = read_weights(ModelShape::by_name(name).expect("is known")) as f64;
            assert!((found / want - 1.0).abs() < 2e-3, "{name}: {found:e} {want:e}");
        }
    }
}

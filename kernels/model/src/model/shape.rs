//! Models by shape: op graphs of published models without weights, for planning and simulation.
//! They come from the same builder as the graphs of weight files.

use self::known::SHAPES;
use super::build::{Wanted, build};
use super::tensors::{TensorSpec, Tensors};
use super::{Architecture, Model, ModelConfig, ModelError, ModelPart};
use crate::formats::DType;
use crate::weights::{Metadata, Value};

mod known;

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
    /// Sliding window of each second layer, in positions.
    pub window: Option<usize>,
    /// Mixture of experts in each layer, in place of a feed-forward block.
    pub experts: Option<ShapeExperts>,
    /// Hugging Face repository whose `config.json` has these numbers.
    pub source: &'static str,
}

/// Experts of a [`ModelShape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeExperts {
    /// Experts of a layer, each with the intermediate size of the shape.
    pub count: usize,
    /// Experts of a row.
    pub used: usize,
    /// Whether they, the router and the output of attention have biases, and attention has sinks, as in gpt-oss.
    pub has_biases: bool,
}

impl ModelShape {
    /// All shapes that have a name.
    pub fn all() -> &'static [ModelShape] {
        SHAPES
    }

    /// The shape of that name.
    pub fn by_name(name: &str) -> Option<&'static ModelShape> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    /// Hyper-parameters and op graph. Matrices get the format Q4_0, vectors F32; a simulation of a SoC sets
    /// the bits per weight itself. The factors that divide Llama 3.2's rotary frequencies are stored
    /// in weight files only, and are left out.
    ///
    /// # Errors
    /// [`ModelError::UnknownArchitecture`] if the architecture is not in the table.
    pub fn model(&self) -> Result<Model, ModelError> {
        self.model_in(DType::Q4_0)
    }

    /// As [`model`](ModelShape::model), with matrices in a format, whose blocks divide their columns.
    ///
    /// # Errors
    /// As [`model`](ModelShape::model).
    pub fn model_in(&self, dtype: DType) -> Result<Model, ModelError> {
        let config = self.config()?;
        let context = config.context;
        let wanted = Wanted { part: ModelPart::Whole, tokens: None, context };
        build(config, &ShapeTensors { shape: self, dtype }, wanted)
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
        let experts = self.experts.map(|ShapeExperts { count, used, .. }| {
            [("expert_count", count), ("expert_used_count", used)]
        });
        let window = self.window.map(|window| ("attention.sliding_window", window));
        let counts = counts.into_iter().chain(experts.into_iter().flatten()).chain(window);
        let counts = counts.map(|(key, count)| (key, Value::U64(count as u64)));
        let all = counts.chain(numbers.map(|(key, number)| (key, Value::F32(number))));
        Metadata::new(all.map(|(key, value)| (format!("{}.{key}", self.arch), value)).collect())
    }
}

/// Tensors that a weight file of this shape would have.
struct ShapeTensors<'a> {
    shape: &'a ModelShape,
    /// Format of the matrices.
    dtype: DType,
}

impl Tensors for ShapeTensors<'_> {
    fn find(&self, name: &str) -> Option<TensorSpec> {
        let ShapeTensors { shape, dtype } = *self;
        let (width, ffn) = (shape.width, shape.ffn_width);
        let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
        let matrix = |rows, cols| Some(TensorSpec { rows, cols, dtype });
        let vector = |cols| Some(TensorSpec { rows: 1, cols, dtype: DType::F32 });
        let has_biases = shape.experts.is_some_and(|experts| experts.has_biases);
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
            "ffn_gate.weight" | "ffn_up.weight" if shape.experts.is_none() => matrix(ffn, width),
            "ffn_down.weight" if shape.experts.is_none() => matrix(width, ffn),
            "attn_q.bias" => biased(q),
            "attn_k.bias" | "attn_v.bias" => biased(kv),
            "attn_q_norm.weight" | "attn_k_norm.weight" => vector(shape.head_dim),
            role if role.starts_with("ffn_gate_inp.") || role.contains("_exps.") => {
                shape.experts.and_then(|experts| self.of_experts(role, experts))
            }
            "attn_output.bias" if has_biases => vector(width),
            "attn_sinks.weight" if has_biases => vector(shape.heads),
            role if role.ends_with("norm.weight") => vector(width),
            _ => None,
        }
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl ShapeTensors<'_> {
    /// A tensor of the experts of a layer, or of their router.
    fn of_experts(&self, role: &str, experts: ShapeExperts) -> Option<TensorSpec> {
        let ShapeTensors { shape, dtype } = *self;
        let (width, ffn) = (shape.width, shape.ffn_width);
        let matrix = |rows, cols| TensorSpec { rows: experts.count * rows, cols, dtype };
        let table = |rows, cols| TensorSpec { rows, cols, dtype: DType::F32 };
        let biased = |cols| experts.has_biases.then(|| table(experts.count, cols));
        match role {
            "ffn_gate_inp.weight" => Some(table(experts.count, width)),
            "ffn_gate_inp.bias" => experts.has_biases.then(|| table(1, experts.count)),
            "ffn_gate_exps.weight" | "ffn_up_exps.weight" => Some(matrix(ffn, width)),
            "ffn_down_exps.weight" => Some(matrix(width, ffn)),
            "ffn_gate_exps.bias" | "ffn_up_exps.bias" => biased(ffn),
            "ffn_down_exps.bias" => biased(width),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

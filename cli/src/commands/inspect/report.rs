//! The report on a model file, and its JSON form.

use std::collections::BTreeMap;

use lapwing_engine::Engine;
use lapwing_kernels::kv::{KvDtype, KvLayout};
use lapwing_kernels::model::{LayerHeads, ModelConfig};
use lapwing_kernels::weights::{TensorInfo, Value, WeightFile};
use serde::Serialize;
use serde_json::Value as Json;

use super::per_layer::PerLayer;
use crate::cli::requant::RequantReport;
use crate::cli::stage_report::StageReport;

/// Elements shown of an array without `--full`.
const ELEMENTS_MAX: usize = 8;
/// Characters shown of a text without `--full`.
const CHARS_MAX: usize = 120;

/// A model file.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) paths: Vec<String>,
    pub(super) bytes: u64,
    pub(super) architecture: Option<String>,
    pub(super) parameters: u64,
    pub(super) metadata: BTreeMap<String, Entry>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) formats: Vec<Format>,
    pub(super) hyper_parameters: Option<HyperParameters>,
    pub(super) kv_bytes_per_token: Option<usize>,
    /// Of the states of layers.
    pub(super) state_bytes_per_sequence: Option<usize>,
    /// Requantised matrices, if `--requant` is given.
    pub(super) requant: Option<RequantReport>,
    pub(super) placement: Option<PlacementReport>,
    /// The same as text.
    #[serde(skip)]
    pub(super) placement_text: Option<String>,
    pub(super) cannot_run: Option<String>,
}

/// A metadata value.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) value: Json,
    /// Full length, if the value was abbreviated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) length: Option<usize>,
}

/// A tensor.
#[derive(Debug, Serialize)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) format: String,
    pub(super) bytes: usize,
}

/// All tensors of one format.
#[derive(Debug, Serialize)]
pub(super) struct Format {
    pub(super) format: String,
    pub(super) tensors: usize,
    pub(super) bytes: u64,
}

/// Hyper-parameters read from the metadata.
#[derive(Debug, Serialize)]
pub(super) struct HyperParameters {
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) heads: PerLayer,
    pub(super) kv_heads: PerLayer,
    /// Values of a head's keys, and of its values.
    pub(super) head_dim: PerLayer,
    pub(super) value_dim: PerLayer,
    pub(super) ffn_width: PerLayer,
    /// Mixtures of experts, if layers have them.
    pub(super) experts: Option<Experts>,
    pub(super) context: usize,
    pub(super) vocabulary: usize,
    pub(super) norm_eps: f32,
    /// Whether the model makes embeddings only, and takes positions from a table.
    #[serde(skip)]
    pub(super) encoder: bool,
    /// Layers with rotary embedding.
    #[serde(skip)]
    pub(super) rotated_layers: usize,
    pub(super) rope_dims: PerLayer,
    pub(super) rope_base: f32,
    pub(super) rope_scaling: String,
    pub(super) window: Option<usize>,
    pub(super) attention_cap: Option<f32>,
    pub(super) logit_cap: Option<f32>,
    pub(super) chat_template: bool,
}

/// How many experts a layer has, and each row.
#[derive(Debug, Serialize)]
pub(super) struct Experts {
    pub(super) count: usize,
    pub(super) used: usize,
}

/// The placement of a full chunk.
#[derive(Debug, Serialize)]
pub(super) struct PlacementReport {
    pub(super) strategy: String,
    pub(super) reason: String,
    pub(super) stages: Vec<StageReport>,
}

impl Report {
    /// The contents of the file.
    pub(super) fn of_file(file: &WeightFile, full: bool) -> Report {
        let mut metadata = BTreeMap::new();
        for (key, value) in file.metadata().iter() {
            metadata.insert(key.to_owned(), Entry::of(value, full));
        }
        Report {
            paths: file.paths().iter().map(|path| path.display().to_string()).collect(),
            bytes: file.bytes_total(),
            architecture: file
                .metadata()
                .opt_str("general.architecture")
                .ok()
                .flatten()
                .map(str::to_owned),
            parameters: file.tensors().map(|tensor| tensor.shape.len() as u64).sum(),
            metadata,
            tensors: file.tensors().map(Tensor::of).collect(),
            formats: formats(file),
            hyper_parameters: None,
            kv_bytes_per_token: None,
            state_bytes_per_sequence: None,
            requant: None,
            placement: None,
            placement_text: None,
            cannot_run: None,
        }
    }

    /// Adds what an engine with that KV cache makes of it.
    pub(super) fn add_engine(&mut self, engine: &Engine, kv: KvDtype) {
        let config = engine.model();
        let layout = KvLayout { dtype: kv, ..config.kv_layout() };
        self.kv_bytes_per_token = Some(layout.row_bytes());
        self.state_bytes_per_sequence = Some(layout.state_bytes());
        self.hyper_parameters = Some(HyperParameters::of(config, engine));
        self.requant = engine.requantized().map(RequantReport::of);
        let placement = engine.placement();
        let stages = placement.stages.iter().map(StageReport::of);
        self.placement_text = Some(placement.to_string());
        self.placement = Some(PlacementReport {
            strategy: placement.strategy.clone(),
            reason: placement.reason.clone(),
            stages: stages.collect(),
        });
    }
}

impl Entry {
    fn of(value: &Value, full: bool) -> Entry {
        let (json, length) = json(value, full);
        Entry { kind: value.type_name(), value: json, length }
    }
}

/// The value, and its full length if it was abbreviated.
fn json(value: &Value, full: bool) -> (Json, Option<usize>) {
    let integer = |v: i64| (Json::from(v), None);
    match value {
        Value::U8(v) => integer((*v).into()),
        Value::I8(v) => integer((*v).into()),
        Value::U16(v) => integer((*v).into()),
        Value::I16(v) => integer((*v).into()),
        Value::U32(v) => integer((*v).into()),
        Value::I32(v) => integer((*v).into()),
        Value::I64(v) => integer(*v),
        Value::U64(v) => (Json::from(*v), None),
        // By its shortest decimal form: 0.1, not the nearest binary64 value.
        Value::F32(v) => (v.to_string().parse::<f64>().map_or(Json::Null, Json::from), None),
        Value::F64(v) => (Json::from(*v), None),
        Value::Bool(v) => (Json::from(*v), None),
        Value::String(text) => {
            let text = String::from_utf8_lossy(text.as_bytes());
            let count = text.chars().count();
            if full || count <= CHARS_MAX {
                return (Json::from(text.into_owned()), None);
            }
            let start: String = text.chars().take(CHARS_MAX).collect();
            (Json::from(format!("{start}…")), Some(count))
        }
        Value::Array(array) => {
            let shown = if full { array.len() } else { array.len().min(ELEMENTS_MAX) };
            let elements = array.values().take(shown).map(|element| json(&element, full).0);
            let cut = shown < array.len();
            (Json::Array(elements.collect()), cut.then_some(array.len()))
        }
    }
}

impl Tensor {
    fn of(info: &TensorInfo) -> Tensor {
        Tensor {
            name: info.name.clone(),
            shape: info.shape.dims().to_vec(),
            format: info.dtype.to_string(),
            bytes: info.bytes,
        }
    }
}

/// Totals by format, the largest first.
fn formats(file: &WeightFile) -> Vec<Format> {
    let mut totals: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for tensor in file.tensors() {
        let total = totals.entry(tensor.dtype.to_string()).or_default();
        *total = (total.0 + 1, total.1 + tensor.bytes as u64);
    }
    let mut formats: Vec<Format> = totals
        .into_iter()
        .map(|(format, (tensors, bytes))| Format { format, tensors, bytes })
        .collect();
    formats.sort_by_key(|format| std::cmp::Reverse(format.bytes));
    formats
}

impl HyperParameters {
    fn of(config: &ModelConfig, engine: &Engine) -> HyperParameters {
        let each = |of: fn(&LayerHeads) -> usize| PerLayer::of(config.heads.iter().map(of));
        HyperParameters {
            layers: config.layers,
            width: config.width,
            heads: each(|heads| heads.count),
            kv_heads: each(|heads| heads.kv.count),
            head_dim: each(|heads| heads.kv.key_dim),
            value_dim: each(|heads| heads.kv.value_dim),
            ffn_width: PerLayer::of(config.ffn_widths.iter().copied()),
            experts: config
                .experts
                .as_ref()
                .map(|experts| Experts { count: experts.count, used: experts.used }),
            context: config.context,
            vocabulary: engine.tokenizer().vocab_size(),
            norm_eps: config.norm_eps,
            encoder: config.arch.is_encoder(),
            rotated_layers: config.rotated.iter().filter(|is_rotated| **is_rotated).count(),
            rope_dims: each(|heads| heads.rope_dims),
            rope_base: config.rope_base,
            rope_scaling: format!("{:?}", config.rope_scaling).to_lowercase(),
            window: config.window,
            attention_cap: config.attention_cap,
            logit_cap: config.logit_cap,
            chat_template: engine.chat_template().is_some(),
        }
    }
}

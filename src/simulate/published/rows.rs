//! The forms of published numbers, decisions and orders.

use std::fmt;

use serde::Deserialize;

/// The part that a published number plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
pub enum Role {
    /// A parameter was fitted to it.
    #[serde(rename = "pin")]
    Pin,
    /// Nothing was fitted to it, and it must be met.
    #[serde(rename = "check")]
    Check,
    /// Published loosely, or at odds with other published numbers: shown, not judged.
    #[serde(rename = "stated")]
    Stated,
    /// Published, and not in this repository: a prediction can be compared blind.
    #[serde(rename = "held back")]
    HeldBack,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Pin => "pin",
            Role::Check => "check",
            Role::Stated => "stated",
            Role::HeldBack => "held back",
        })
    }
}

/// What is taken from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Prompt tokens per second.
    PrefillTokensPerSecond,
    /// Time of the prompt, in ms.
    PrefillMs,
    /// That without the preparation of graphs.
    PrefillButPreparationMs,
    /// Preparation of graphs, in ms.
    PreparationMs,
    /// Generated tokens per second.
    DecodeTokensPerSecond,
    /// Power during the prompt, in W.
    PrefillW,
    /// Power during generation, in W.
    DecodeW,
    /// Energy of the prompt, in J.
    PrefillJ,
    /// First start to last end, in ms.
    MakespanMs,
    /// Bytes that generation moves, by its time, in GB/s.
    DecodeGbPerS,
    /// Time of one product measured alone, in µs.
    AloneUs,
    /// A product's weights by its time in a running queue, in GB/s.
    ProductGbPerS,
}

impl Quantity {
    /// Its unit; a ratio has none.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::PrefillTokensPerSecond | Quantity::DecodeTokensPerSecond => "tok/s",
            Quantity::PrefillMs
            | Quantity::PrefillButPreparationMs
            | Quantity::PreparationMs
            | Quantity::MakespanMs => "ms",
            Quantity::PrefillW | Quantity::DecodeW => "W",
            Quantity::PrefillJ => "J",
            Quantity::AloneUs => "µs",
            Quantity::DecodeGbPerS | Quantity::ProductGbPerS => "GB/s",
        }
    }
}

/// A published number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name, unique.
    pub id: String,
    /// The table or figure, by its subject.
    pub group: String,
    /// What it is.
    pub what: String,
    /// The run that it is taken from.
    pub run: Option<Run>,
    /// The run by whose quantity it is divided.
    pub by: Option<Run>,
    /// The product that is measured alone, instead of a run.
    pub product: Option<Product>,
    /// The product by whose quantity that is divided.
    pub by_product: Option<Product>,
    /// The graphs of a layer of that many rows that are prepared, instead of a run.
    pub graphs: Option<usize>,
    /// Lengths at which both runs are made, instead of their own.
    #[serde(default)]
    pub prompts: Vec<usize>,
    /// What is taken of the values at these lengths.
    pub over: Option<Over>,
    /// What is taken from a run.
    pub quantity: Quantity,
    /// The number; none if it is held back.
    pub published: Option<f64>,
    /// The part it plays.
    pub role: Role,
    /// Where it comes from.
    pub source: String,
}

impl Row {
    /// Its unit.
    pub fn unit(&self) -> &'static str {
        if self.by.is_some() || self.by_product.is_some() { "×" } else { self.quantity.unit() }
    }

    /// The model.
    pub fn model(&self) -> &str {
        self.run.as_ref().map_or(MODEL, |run| &run.model)
    }
}

/// What is taken of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Their mean.
    Mean,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// A run of the simulator. Fields as the options of `lapwing simulate`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Model.
    #[serde(default = "model")]
    pub model: String,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Steps of generation after the first token.
    #[serde(default)]
    pub decode: usize,
    /// Strategy.
    pub strategy: String,
    /// Fast synchronisation.
    #[serde(default = "yes")]
    pub fast_sync: bool,
    /// Order swap.
    #[serde(default = "yes")]
    pub order_swap: bool,
    /// What runs beside it.
    pub interference: Option<String>,
    /// Rows of a chunk.
    pub chunk: Option<usize>,
}

/// The model that most was published of.
pub(in crate::simulate) const MODEL: &str = "llama-3-8b";

fn model() -> String {
    MODEL.to_owned()
}

fn yes() -> bool {
    true
}

/// One matrix product.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// Device, by its name.
    pub device: String,
    /// Outputs.
    pub n: usize,
    /// Reduction.
    pub k: usize,
    /// Tokens.
    pub m: usize,
    /// What measuring it alone adds that a running queue does not have, in µs. On the GPU a slow
    /// synchronisation comes on top.
    #[serde(default)]
    pub constant_us: f64,
    /// On the NPU, operands are not swapped.
    #[serde(default)]
    pub straight: bool,
}

/// A decision of the published solver.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedDecision {
    /// Outputs.
    pub n: usize,
    /// Reduction.
    pub k: usize,
    /// Tokens; of a range its ends and one between.
    pub m: Vec<usize>,
    /// What it decided.
    pub published: String,
    /// That, as a kind of cut.
    pub cut: CutKind,
    /// Share of the outputs that it gave the GPU, if it was published.
    pub gpu_share: Option<f64>,
    /// Where that stands.
    pub source: String,
}

/// Kinds of cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutKind {
    /// None.
    Whole,
    /// By outputs.
    Row,
    /// By outputs, and tokens padded.
    Hybrid,
    /// By tokens.
    Sequence,
}

/// Two quantities of which one must be less.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Table or figure.
    pub group: String,
    /// What holds.
    pub what: String,
    /// The run of the lesser quantity.
    pub less: Run,
    /// What it is divided by.
    pub less_by: Option<Run>,
    /// It is multiplied by this.
    #[serde(default = "unity")]
    pub less_times: f64,
    /// The run of the greater one.
    pub more: Run,
    /// What that is divided by.
    pub more_by: Option<Run>,
    /// What is taken from the runs.
    pub quantity: Quantity,
    /// What is taken from the second, if it is another.
    pub more_quantity: Option<Quantity>,
}

fn unity() -> f64 {
    1.0
}

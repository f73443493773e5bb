//! Types of published numbers, decisions and orders.

use std::fmt;

use serde::Deserialize;

/// The role of a published number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
pub enum Role {
    /// A parameter was fitted to it.
    #[serde(rename = "pin")]
    Pin,
    /// Not fitted to; the simulation must match it.
    #[serde(rename = "check")]
    Check,
    /// Published loosely, or in conflict with other published numbers: shown, not judged.
    #[serde(rename = "stated")]
    Stated,
    /// Published, but kept out of this repository, so that a prediction can be compared blind.
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

/// The quantity that is taken from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Prompt tokens per second.
    PrefillTokensPerSecond,
    /// Prefill time, in ms.
    PrefillMs,
    /// Prefill time without graph preparation, in ms.
    PrefillButPreparationMs,
    /// Time of graph preparation, in ms.
    PreparationMs,
    /// Generated tokens per second.
    DecodeTokensPerSecond,
    /// Mean power of prefill, in W.
    PrefillW,
    /// Mean power of decode, in W.
    DecodeW,
    /// Energy of prefill, in J.
    PrefillJ,
    /// First start to last end, in ms.
    MakespanMs,
    /// Bandwidth of decode: bytes moved divided by its time, in GB/s.
    DecodeGbPerS,
    /// Time of a matmul measured in isolation, in µs.
    AloneUs,
    /// Bandwidth of a matmul: bytes of its weights divided by its time in a running queue, in GB/s.
    ProductGbPerS,
    /// Time before a matmul in a running queue, in µs.
    LaunchUs,
    /// The time that is added to it if its input comes from another processor, in µs.
    EntryUs,
    /// Frames per second of the game.
    FramesPerSecond,
}

impl Quantity {
    /// Whether it is taken from a single matmul.
    pub fn is_of_product(self) -> bool {
        let of =
            [Quantity::AloneUs, Quantity::ProductGbPerS, Quantity::LaunchUs, Quantity::EntryUs];
        of.contains(&self)
    }

    /// Its unit; ratios have none.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::PrefillTokensPerSecond | Quantity::DecodeTokensPerSecond => "tok/s",
            Quantity::PrefillMs
            | Quantity::PrefillButPreparationMs
            | Quantity::PreparationMs
            | Quantity::MakespanMs => "ms",
            Quantity::PrefillW | Quantity::DecodeW => "W",
            Quantity::PrefillJ => "J",
            Quantity::AloneUs | Quantity::LaunchUs | Quantity::EntryUs => "µs",
            Quantity::FramesPerSecond => "frames/s",
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
    /// Group: a table or figure, named by its subject.
    pub group: String,
    /// Description.
    pub what: String,
    /// The run.
    pub run: Option<Run>,
    /// Run whose quantity it is divided by.
    pub by: Option<Run>,
    /// Matmul that is measured in isolation, instead of a run.
    pub product: Option<Product>,
    /// Matmul whose quantity it is divided by.
    pub by_product: Option<Product>,
    /// Rows of a layer's graphs that are prepared, instead of a run.
    pub graphs: Option<usize>,
    /// Prompt lengths at which both runs are made, instead of their own.
    #[serde(default)]
    pub prompts: Vec<usize>,
    /// Reduction over the values at these lengths.
    pub over: Option<Over>,
    /// Quantity that is taken from a run.
    pub quantity: Quantity,
    /// The published number; `None` if it is held back.
    pub published: Option<f64>,
    /// Relative standard error of a pin: of its rounding, or of what is not known about how it was measured.
    #[serde(default = "spread")]
    pub spread: f64,
    /// Its role.
    pub role: Role,
    /// Its source.
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

/// Reduction of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Their mean.
    Mean,
    /// Their minimum.
    Min,
    /// Their maximum.
    Max,
}

/// A run of the simulator, with the options of `lapwing simulate`.
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
    /// Other load on the GPU.
    pub interference: Option<String>,
    /// Rows of a chunk.
    pub chunk: Option<usize>,
    /// Devices that compute, joined by `+`; those of the scenario if it is not given.
    pub device: Option<String>,
}

/// The model of most published numbers.
pub(in crate::simulate) const MODEL: &str = "llama-3-8b";

fn model() -> String {
    MODEL.to_owned()
}

fn spread() -> f64 {
    0.01
}

fn yes() -> bool {
    true
}

/// A single matmul.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// Device, by its name.
    pub device: String,
    /// Output channels.
    pub n: usize,
    /// Input channels.
    pub k: usize,
    /// Tokens.
    pub m: usize,
    /// Additional time of an isolated measurement that a running queue does not have, in µs. On the
    /// GPU, a slow synchronisation is added.
    #[serde(default)]
    pub constant_us: f64,
    /// Whether the NPU multiplies without swapping operands.
    #[serde(default)]
    pub straight: bool,
}

/// A decision of the published solver.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedDecision {
    /// Output channels.
    pub n: usize,
    /// Input channels.
    pub k: usize,
    /// Tokens; for a range, its ends and one value between.
    pub m: Vec<usize>,
    /// The decision, as text.
    pub published: String,
    /// The decision, as a kind of cut.
    pub cut: CutKind,
    /// Share of the output channels given to the GPU, if it was published.
    pub gpu_share: Option<f64>,
    /// Its source.
    pub source: String,
}

/// Kinds of cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutKind {
    /// Not cut.
    Whole,
    /// Cut by output channels.
    Row,
    /// Cut by output channels, with padded tokens.
    Hybrid,
    /// Cut by tokens.
    Sequence,
}

/// Two quantities, of which the first must be less.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Group: a table or figure.
    pub group: String,
    /// The statement that must hold.
    pub what: String,
    /// The run of the lesser quantity.
    pub less: Run,
    /// Run whose quantity it is divided by.
    pub less_by: Option<Run>,
    /// Factor that it is multiplied by.
    #[serde(default = "unity")]
    pub less_times: f64,
    /// The run of the greater quantity.
    pub more: Run,
    /// Run whose quantity it is divided by.
    pub more_by: Option<Run>,
    /// Quantity taken from the runs.
    pub quantity: Quantity,
    /// Quantity taken from the second run, if it is another one.
    pub more_quantity: Option<Quantity>,
}

fn unity() -> f64 {
    1.0
}

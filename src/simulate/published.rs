//! What was published, as data: `published.toml` says of each number where it comes from, how it is
//! simulated, and what part it plays.

use std::fmt;

use serde::Deserialize;

use super::SimulateError;

/// Published numbers, decisions and orders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Numbers.
    #[serde(default, rename = "row")]
    pub rows: Vec<Row>,
    /// What the published solver decided.
    #[serde(default, rename = "decision")]
    pub decisions: Vec<PublishedDecision>,
    /// Orders that hold.
    #[serde(default, rename = "order")]
    pub orders: Vec<Order>,
}

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
    /// Time of one product measured alone, in µs.
    AloneUs,
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
        if self.by.is_some() { "×" } else { self.quantity.unit() }
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
}

/// The model that most was published of.
pub(super) const MODEL: &str = "llama-3-8b";

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

impl Published {
    /// What comes with Lapwing.
    ///
    /// # Errors
    /// Never, unless the file that comes with Lapwing is broken.
    pub fn built_in() -> Result<Published, SimulateError> {
        Published::parse(include_str!("published.toml"))
    }

    /// Reads numbers in the form of the file that comes with Lapwing.
    ///
    /// # Errors
    /// [`SimulateError::Published`] that names the line.
    pub fn parse(text: &str) -> Result<Published, SimulateError> {
        let wrong = |reason: String| SimulateError::Published { reason };
        let published: Published = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let rows = &published.rows;
        for (at, row) in rows.iter().enumerate() {
            let id = &row.id;
            if rows[..at].iter().any(|other| other.id == *id) {
                return Err(wrong(format!("row '{id}' is there twice")));
            }
            let sources = [row.run.is_some(), row.product.is_some(), row.graphs.is_some()];
            if sources.iter().filter(|given| **given).count() != 1 {
                return Err(wrong(format!(
                    "row '{id}' must have either a run, a product or graphs"
                )));
            }
            if row.product.is_some() != (row.quantity == Quantity::AloneUs)
                || row.graphs.is_some() && row.quantity != Quantity::PreparationMs
            {
                return Err(wrong(format!(
                    "row '{id}': the quantity of products is alone_us, that of graphs preparation_ms"
                )));
            }
            if row.published.is_some() == (row.role == Role::HeldBack) {
                return Err(wrong(format!(
                    "row '{id}' must have a published number, unless it is held back"
                )));
            }
            if row.published.is_some_and(|number| !(number.is_finite() && number > 0.0)) {
                return Err(wrong(format!("row '{id}': published must be a positive number")));
            }
            if row.prompts.is_empty() != row.over.is_none() {
                return Err(wrong(format!("row '{id}' must have both prompts and over, or none")));
            }
        }
        Ok(published)
    }

    /// The groups, in the order of the file.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.group.as_str()) {
                groups.push(&row.group);
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_held_back_number_is_in_the_file() {
        let published = Published::built_in().expect("it is well-formed");
        let held = published.rows.iter().filter(|row| row.role == Role::HeldBack);
        assert!(held.clone().count() > 30);
        assert!(held.clone().all(|row| row.published.is_none()));
        assert_eq!(published.rows.iter().filter(|row| row.role == Role::Check).count(), 7);
        assert_eq!(published.decisions.len(), 9);
    }

    #[test]
    fn a_broken_row_says_what_is_wrong_with_it() {
        let row = "[[row]]\nid = \"a\"\ngroup = \"g\"\nwhat = \"w\"\nsource = \"s\"\n";
        let run = "run = { prompt = 1, strategy = \"pipe\" }\n";
        let cases = [
            (format!("{row}{run}quantity = \"prefill_ms\"\nrole = \"pin\""), "published number"),
            (
                format!(
                    "{row}{run}quantity = \"prefill_ms\"\nrole = \"held back\"\npublished = 1.0"
                ),
                "held back",
            ),
            (
                format!("{row}quantity = \"prefill_ms\"\nrole = \"pin\"\npublished = 1.0"),
                "either a run",
            ),
            (
                format!("{row}{run}quantity = \"alone_us\"\nrole = \"pin\"\npublished = 1.0"),
                "of products",
            ),
            (format!("{row}{run}quantity = \"speed\"\nrole = \"pin\"\npublished = 1.0"), "speed"),
            (
                format!("{row}{run}quantity = \"prefill_ms\"\nrole = \"pin\"\npublished = -1.0"),
                "posi",
            ),
            (format!("{row}{run}colour = 3"), "colour"),
        ];
        for (text, says) in cases {
            let error = Published::parse(&text).expect_err(says);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

//! Published numbers beside simulated ones.

use serde::Serialize;

use super::decisions::{Decision, decide};
use super::error::SimulateError;
use super::published::{Order, Published, Role, Row};
use super::runs::Runs;
use super::scenario::Scenario;

/// Largest error of a check.
pub const CHECK_ERROR_MAX: f64 = 0.10;

/// Published numbers, decisions and orders, and what the simulator says.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The preset.
    pub soc: String,
    /// Numbers that are not held back.
    pub rows: Vec<Reproduced>,
    /// Numbers that are.
    pub held_back: Vec<HeldBack>,
    /// Orders.
    pub orders: Vec<ReproducedOrder>,
    /// Decisions of the solver.
    pub decisions: Vec<Decision>,
    /// What the numbers say beside.
    pub notes: Vec<String>,
    /// Whether every check is within [`CHECK_ERROR_MAX`] and every order holds.
    pub ok: bool,
}

/// A published number and the model's.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// Name of the row.
    pub id: String,
    /// Table or figure.
    pub group: String,
    /// What it is.
    pub what: String,
    /// Model that it is of.
    pub of: String,
    /// The published number.
    pub paper: f64,
    /// The simulator's.
    pub model: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// (Model − paper) / paper.
    pub error: f64,
    /// The part it plays.
    pub role: Role,
    /// Where it comes from.
    pub source: String,
}

impl Reproduced {
    /// Whether it is a check that is missed.
    pub fn is_missed(&self) -> bool {
        self.role == Role::Check && self.is_far()
    }

    /// Whether it is stated otherwise: not judged, but not met within [`CHECK_ERROR_MAX`] either.
    pub fn disagrees(&self) -> bool {
        self.role == Role::Stated && self.is_far()
    }

    fn is_far(&self) -> bool {
        self.error.is_nan() || self.error.abs() > CHECK_ERROR_MAX
    }
}

/// A number that is published, and not in this repository.
#[derive(Clone, Debug, Serialize)]
pub struct HeldBack {
    /// Name of the row.
    pub id: String,
    /// Table or figure.
    pub group: String,
    /// What it is.
    pub what: String,
    /// Model that it is of.
    pub of: String,
    /// The prediction, if it was asked for.
    pub model: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// Which published number it will be compared with.
    pub source: String,
}

/// An order and whether it holds.
#[derive(Clone, Debug, Serialize)]
pub struct ReproducedOrder {
    /// What should hold.
    pub what: String,
    /// What should be less.
    pub less: f64,
    /// What should be more.
    pub more: f64,
    /// Whether it is so.
    pub ok: bool,
}

/// What is to be reproduced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// One table or figure, by its subject or by what a paper calls it; none for all.
    pub group: Option<&'a str>,
    /// Predict what is held back, too.
    pub predictions: bool,
}

impl Reproduction {
    /// Runs everything with the preset of the scenario; equal runs are made once.
    ///
    /// # Errors
    /// When there is no such group, or a run fails.
    pub fn new(
        base: &Scenario,
        published: &Published,
        wanted: Wanted<'_>,
    ) -> Result<Reproduction, SimulateError> {
        base.soc()?;
        let wanted_group = wanted.group.map(|name| published.group(name)).transpose()?;
        let mut runs = Runs::default();
        let in_group = |group: &str| wanted_group.is_none_or(|name| name == group);
        let (mut rows, mut held_back) = (Vec::new(), Vec::new());
        for row in published.rows.iter().filter(|row| in_group(&row.group)) {
            match row.published {
                Some(paper) => rows.push(reproduced(row, paper, runs.value(base, row)?)),
                None => {
                    let model = match wanted.predictions {
                        true => Some(runs.value(base, row)?),
                        false => None,
                    };
                    held_back.push(held(row, model));
                }
            }
        }
        let orders = published.orders.iter().filter(|order| in_group(&order.group));
        let orders: Vec<ReproducedOrder> =
            orders.map(|order| ordered(base, order, &mut runs)).collect::<Result<_, _>>()?;
        let decisions = match in_group("table3") {
            true => decide(base, &published.decisions)?,
            false => Vec::new(),
        };
        let ok = !rows.iter().any(Reproduced::is_missed) && orders.iter().all(|order| order.ok);
        let mut notes = Vec::new();
        if in_group("power") {
            notes.extend(full_power(base, &rows, &mut runs)?);
        }
        let soc = base.soc_name();
        Ok(Reproduction { soc, rows, held_back, orders, decisions, notes, ok })
    }
}

fn reproduced(row: &Row, paper: f64, model: f64) -> Reproduced {
    Reproduced {
        id: row.id.clone(),
        group: row.group.clone(),
        what: row.what.clone(),
        of: row.model().to_owned(),
        paper,
        model,
        unit: row.unit(),
        error: (model - paper) / paper,
        role: row.role,
        source: row.source.clone(),
    }
}

/// What a GPU that draws as much beside the NPU as alone would mean (device model, 3.7).
fn full_power(
    base: &Scenario,
    rows: &[Reproduced],
    runs: &mut Runs,
) -> Result<Option<String>, SimulateError> {
    let Some(row) = rows.iter().find(|row| row.id == "power-tensor") else { return Ok(None) };
    let mut full = base.clone();
    full.set("power.co_run", "1")?;
    for (key, value) in [("strategy", "tensor-level"), ("prompt", "256"), ("decode", "0")] {
        full.set(key, value)?;
    }
    let Some(watts) = runs.run(&full)?.prefill_w else { return Ok(None) };
    let paper = row.paper;
    let verdict = match watts > paper * (1.0 + CHECK_ERROR_MAX) {
        true => "φ = 1 is refuted by the paper",
        false => "φ = 1 is not refuted",
    };
    Ok(Some(format!(
        "a GPU that drew as much beside the NPU as alone (power.co_run, φ = 1) would make \
         Hetero-tensor draw {watts:.2} W in prefill, where {paper:.2} W are published: {verdict}"
    )))
}

fn held(row: &Row, model: Option<f64>) -> HeldBack {
    HeldBack {
        id: row.id.clone(),
        group: row.group.clone(),
        what: row.what.clone(),
        of: row.model().to_owned(),
        model,
        unit: row.unit(),
        source: row.source.clone(),
    }
}

fn ordered(
    base: &Scenario,
    order: &Order,
    runs: &mut Runs,
) -> Result<ReproducedOrder, SimulateError> {
    let less = runs.ratio(base, (&order.less, order.less_by.as_ref()), order.quantity)?;
    let quantity = order.more_quantity.unwrap_or(order.quantity);
    let more = runs.ratio(base, (&order.more, order.more_by.as_ref()), quantity)?;
    let less = less * order.less_times;
    Ok(ReproducedOrder { what: order.what.clone(), less, more, ok: less < more })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(role: Role, error: f64) -> Reproduced {
        Reproduced {
            id: "a".to_owned(),
            group: "g".to_owned(),
            what: "w".to_owned(),
            of: "m".to_owned(),
            paper: 1.0,
            model: 1.0 + error,
            unit: "s",
            error,
            role,
            source: "s".to_owned(),
        }
    }

    #[test]
    fn an_error_that_is_no_number_passes_for_small() {
        for (error, far) in [(0.1, false), (-0.1, false), (0.11, true), (f64::NAN, true)] {
            assert_eq!(row(Role::Check, error).is_missed(), far, "{error}");
            assert_eq!(row(Role::Stated, error).disagrees(), far, "{error}");
            assert!(!row(Role::Pin, error).is_missed() && !row(Role::Pin, error).disagrees());
        }
    }
}

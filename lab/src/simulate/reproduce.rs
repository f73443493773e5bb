//! Compares published numbers with simulated ones.

use serde::Serialize;

use super::crossings::Crossings;
use super::decisions::{Decision, decide};
use super::error::SimulateError;
use super::published::{Order, Published, Role, Row};
use super::runs::Runs;
use super::scenario::Scenario;
use super::uncertainty::Uncertainty;

mod contradictions;

/// What the checks prove, and what they do not.
const CHECKS_NOTE: &str = "no parameter was fitted to a check, but the form of the models was chosen \
    with these published numbers in view. Not all checks are independent: two published speeds are \
    derived from others (63.7 tok/s from 190.5, 180.5 tok/s from 247.9; see their sources)";

/// Largest relative error of a check.
pub const CHECK_ERROR_MAX: f64 = 0.10;

/// Published numbers, decisions and orders, with the simulated ones.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Reproduction {
    /// The preset.
    pub soc: String,
    /// The numbers that are not held back.
    pub rows: Vec<Reproduced>,
    /// The numbers that are held back.
    pub held_back: Vec<HeldBack>,
    /// Orders.
    pub orders: Vec<ReproducedOrder>,
    /// Decisions of the strategy `tensor-level`.
    pub decisions: Vec<Decision>,
    /// What crosses between processors in a layer of Llama-3-8B.
    pub crossings: Vec<Crossings>,
    /// Further findings.
    pub notes: Vec<String>,
    /// Whether every check is within [`CHECK_ERROR_MAX`] and every order holds.
    pub ok: bool,
}

/// A published number and the simulated one.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Reproduced {
    /// Name of the row.
    pub id: String,
    /// Table or figure.
    pub group: String,
    /// Description.
    pub what: String,
    /// Name of the model.
    pub of: String,
    /// The published number.
    pub paper: f64,
    /// The simulated number.
    pub model: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// (Model − paper) / paper.
    pub error: f64,
    /// Where the simulated number may be, by 95 %, for all that the pins say: the error of the numbers, not of the form.
    pub interval: [f64; 2],
    /// Its role.
    pub role: Role,
    /// Its source.
    pub source: String,
}

impl Reproduced {
    /// Whether it is a check that is off by more than [`CHECK_ERROR_MAX`].
    pub fn is_missed(&self) -> bool {
        self.role == Role::Check && self.is_far()
    }

    /// Whether it is a check that is outside the interval of its prediction.
    pub fn is_outside(&self) -> bool {
        let [low, high] = self.interval;
        self.role == Role::Check && !(low..=high).contains(&self.paper)
    }

    /// Whether it is a stated number that is off by more than [`CHECK_ERROR_MAX`].
    pub fn disagrees(&self) -> bool {
        self.role == Role::Stated && self.is_far()
    }

    fn is_far(&self) -> bool {
        self.error.is_nan() || self.error.abs() > CHECK_ERROR_MAX
    }
}

/// A number that is published, but not in this repository.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct HeldBack {
    /// Name of the row.
    pub id: String,
    /// Table or figure.
    pub group: String,
    /// Description.
    pub what: String,
    /// Name of the model.
    pub of: String,
    /// The prediction, if requested.
    pub model: Option<f64>,
    /// Its interval, as of [`Reproduced`].
    pub interval: Option<[f64; 2]>,
    /// Its unit.
    pub unit: &'static str,
    /// The published number to compare it with.
    pub source: String,
}

/// An order, and whether it holds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReproducedOrder {
    /// The statement.
    pub what: String,
    /// The lesser quantity.
    pub less: f64,
    /// The greater quantity.
    pub more: f64,
    /// Whether it holds.
    pub ok: bool,
}

/// Options of a reproduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReproduceOptions<'a> {
    /// One group, by its subject or figure number; `None` for all.
    pub group: Option<&'a str>,
    /// Whether numbers that are held back are predicted.
    pub predictions: bool,
}

impl Reproduction {
    /// Runs everything with the preset of the scenario; equal runs are made only once.
    ///
    /// # Errors
    /// When there is no such group, or a run fails.
    pub fn new(
        base: &Scenario,
        published: &Published,
        options: ReproduceOptions<'_>,
    ) -> Result<Reproduction, SimulateError> {
        base.soc()?;
        let group_name = options.group.map(|name| published.group(name)).transpose()?;
        let mut runs = Runs::default();
        let in_group = |group: &str| group_name.is_none_or(|name| name == group);
        let (mut rows, mut held_back) = (Vec::new(), Vec::new());
        let mut open = Uncertainty::new(base, published, &mut runs)?;
        for row in published.rows.iter().filter(|row| in_group(&row.group)) {
            if row.published.is_none() && !options.predictions {
                held_back.push(prediction(row, None));
                continue;
            }
            let model = runs.value(base, row)?;
            let found = Found { model, interval: open.interval(row, model)? };
            match row.published {
                Some(paper) => rows.push(reproduced(row, paper, found)),
                None => held_back.push(prediction(row, Some(found))),
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
        if rows.iter().any(|row| row.role == Role::Check) {
            notes.push(CHECKS_NOTE.to_owned());
        }
        if in_group("power") {
            notes.extend(contradictions::full_power(base, &rows, &mut runs)?);
        }
        let crossings = match in_group("fast-sync") {
            true => Crossings::of_both(base)?,
            false => Vec::new(),
        };
        if in_group("fast-sync") {
            notes.extend(contradictions::slow_costs(base, &mut runs)?);
        }
        notes.extend(contradictions::shares(&decisions));
        let soc = base.soc_name();
        Ok(Reproduction { soc, rows, held_back, orders, decisions, crossings, notes, ok })
    }
}

/// A simulated number and its interval.
struct Found {
    model: f64,
    interval: [f64; 2],
}

fn reproduced(row: &Row, paper: f64, found: Found) -> Reproduced {
    let Found { model, interval } = found;
    Reproduced {
        id: row.id.clone(),
        group: row.group.clone(),
        what: row.what.clone(),
        of: row.model().to_owned(),
        paper,
        model,
        unit: row.unit(),
        error: (model - paper) / paper,
        interval,
        role: row.role,
        source: row.source.clone(),
    }
}

fn prediction(row: &Row, found: Option<Found>) -> HeldBack {
    HeldBack {
        id: row.id.clone(),
        group: row.group.clone(),
        what: row.what.clone(),
        of: row.model().to_owned(),
        model: found.as_ref().map(|found| found.model),
        interval: found.map(|found| found.interval),
        unit: row.unit(),
        source: row.source.clone(),
    }
}

fn ordered(
    base: &Scenario,
    order: &Order,
    runs: &mut Runs,
) -> Result<ReproducedOrder, SimulateError> {
    let less = runs.ratio(base, &order.less, order.less_by.as_ref(), order.quantity)?;
    let quantity = order.more_quantity.unwrap_or(order.quantity);
    let more = runs.ratio(base, &order.more, order.more_by.as_ref(), quantity)?;
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
            interval: [0.95, 1.2],
            role,
            source: "s".to_owned(),
        }
    }

    #[test]
    fn a_check_outside_its_interval_is_marked() {
        let at = |paper| Reproduced { paper, ..row(Role::Check, 0.0) };
        assert!(at(0.9).is_outside() && at(1.3).is_outside() && at(f64::NAN).is_outside());
        assert!(!at(1.0).is_outside());
        assert!(!Reproduced { paper: 0.9, ..row(Role::Stated, 0.0) }.is_outside());
    }

    #[test]
    fn a_nan_error_is_a_missed_check() {
        for (error, far) in [(0.1, false), (-0.1, false), (0.11, true), (f64::NAN, true)] {
            assert_eq!(row(Role::Check, error).is_missed(), far, "{error}");
            assert_eq!(row(Role::Stated, error).disagrees(), far, "{error}");
            assert!(!row(Role::Pin, error).is_missed() && !row(Role::Pin, error).disagrees());
        }
    }
}

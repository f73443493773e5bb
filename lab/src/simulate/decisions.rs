//! How `tensor-level` divides single matmuls.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::part::{OperandOrder, Part, Share};
use lapwing_plan::soc::{Soc, SyncMode, WeightBits, Workload};
use lapwing_plan::solve::{Candidate, Cut, Problem, Solution, Solver};
use lapwing_plan::strategy::{PlanInput, TensorLevel};
use lapwing_plan::time::Job;
use lapwing_plan::{DeviceId, device_of};
use serde::Serialize;

use super::error::SimulateError;
use super::products::{KINDS, PRODUCT, graph, shape};
use super::published::{CutKind, PublishedDecision};
use super::scenario::Scenario;

/// A published decision, and that of the strategy `tensor-level`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The matmul, as `[outputs,inputs]`.
    pub product: String,
    /// Tokens: a number or a range.
    pub tokens: String,
    /// The published decision.
    pub paper: String,
    /// The strategy's decision; for a range, at its ends and at a length between. A cut that gains less than
    /// [`TensorLevel::GAIN`] is none.
    pub model: String,
    /// Whether both agree at every length: the same kind of cut, with shares that differ by at most a seventh.
    pub same: bool,
    /// Number of lengths at which they agree, and of all.
    pub lengths: [usize; 2],
    /// Relative extra time of the published decision by our model; for a range, the maximum. `None` if
    /// both agree, or if our graphs have no such cut.
    pub longer: Option<f64>,
    /// The times behind the decision, next to those of the published one where they differ.
    pub reason: String,
}

/// Largest difference of two shares that count as equal: the solver divides on a grid of 256 outputs,
/// while published ratios consist of small integers.
const SHARE_TOLERANCE: f64 = 1.0 / 7.0;

/// The solver's decision for each published one.
pub(super) fn decide(
    base: &Scenario,
    published: &[PublishedDecision],
) -> Result<Vec<Decision>, SimulateError> {
    let soc = base.soc()?;
    Ok(published.iter().map(|decision| one(soc, decision)).collect())
}

fn one(soc: &Soc, published: &PublishedDecision) -> Decision {
    let PublishedDecision { n, k, m, .. } = published;
    let tokens = match &m[..] {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    };
    let mut decided: Vec<String> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    let mut agreed = 0;
    let mut longer: Option<f64> = None;
    for rows in m {
        let solution = solve(soc, *n, *k, *rows);
        let Some(best) = chosen(&solution) else {
            reasons.push(format!("at {rows}, the solver finds no candidate"));
            continue;
        };
        let ours = describe(best, *n);
        if !decided.contains(&ours) {
            decided.push(ours);
        }
        let matches = is_same(best, published);
        let at = if m.len() > 1 { format!("at {rows}, ") } else { String::new() };
        if !matches {
            let (share, reason) = explain(soc, &solution, published, *rows);
            longer = match (longer, share) {
                (Some(most), Some(share)) => Some(most.max(share)),
                (most, share) => most.or(share),
            };
            let bound = beyond_launch(soc, published, *rows);
            reasons.push(format!("{at}{reason}{bound}"));
        } else if reasons.is_empty() && *rows == m[0] {
            reasons.push(best.to_string());
        }
        agreed += usize::from(matches);
    }
    Decision {
        product: format!("[{n},{k}]"),
        tokens,
        paper: published.published.clone(),
        model: decided.join(" / "),
        same: agreed == m.len() && agreed > 0,
        lengths: [agreed, m.len()],
        longer,
        reason: reasons.join("; "),
    }
}

/// What the strategy does.
fn chosen(solution: &Solution) -> Option<&Candidate> {
    solution.worthwhile(TensorLevel::GAIN).first().copied()
}

/// Longest launch of a graph, in µs: the constant of an isolated graph of one row in Table 3.
const LAUNCH_MAX: f64 = 160.0;

/// Whether some launch that the published numbers allow gives the published decision.
fn beyond_launch(soc: &Soc, published: &PublishedDecision, rows: usize) -> String {
    let PublishedDecision { n, k, .. } = published;
    let gives = |launch: &f64| {
        let mut soc = soc.clone();
        let set = soc.set("npu.launch", *launch);
        let solution = solve(&soc, *n, *k, rows);
        set.is_ok() && chosen(&solution).is_some_and(|found| is_same(found, published))
    };
    let launches: Vec<f64> = (0..=8).map(|eighths| LAUNCH_MAX / 8.0 * f64::from(eighths)).collect();
    match launches.iter().find(|launch| gives(launch)) {
        Some(launch) => format!("; the published decision with a launch of {launch:.0} µs"),
        None => format!("; no launch of up to {LAUNCH_MAX:.0} µs gives the published decision"),
    }
}

fn solve(soc: &Soc, n: usize, k: usize, m: usize) -> Arc<Solution> {
    let graph = graph(n, k);
    let workload = Workload { graph: Arc::clone(&graph), bits: WeightBits::default() };
    let cost = soc.cost(&KINDS, &workload, SyncMode::Fast);
    let devices = Soc::devices(&KINDS);
    let input = PlanInput {
        model: Default::default(),
        graph: &graph,
        devices: &devices,
        cost: &cost,
        chunk_rows: m,
    };
    let home = device_of(&devices, DeviceKind::Gpu).unwrap_or(DeviceId(0));
    let shape = shape(m);
    let (first, end) = (PRODUCT, PRODUCT + 1);
    Solver::new().solve(&input, Problem { first, end, shape: &shape, home, divide: true })
}

/// Share of the outputs that the GPU computes.
fn gpu_share(candidate: &Candidate, n: usize) -> f64 {
    let parts = candidate.parts.iter().filter(|part| KINDS[part.device.0] == DeviceKind::Gpu);
    parts.map(|part| part.part.features.of_width(n).len() as f64 / n as f64).sum()
}

fn kind(candidate: &Candidate) -> CutKind {
    match candidate.cut {
        Cut::Whole => CutKind::Whole,
        Cut::Row => CutKind::Row,
        Cut::Hybrid => CutKind::Hybrid,
        Cut::Sequence | Cut::MultiSequence => CutKind::Sequence,
    }
}

fn is_same(candidate: &Candidate, published: &PublishedDecision) -> bool {
    let near = |share: f64| (gpu_share(candidate, published.n) - share).abs() <= SHARE_TOLERANCE;
    kind(candidate) == published.cut && published.gpu_share.is_none_or(near)
}

fn describe(candidate: &Candidate, n: usize) -> String {
    let npu = candidate.parts.iter().find(|part| KINDS[part.device.0] == DeviceKind::Npu);
    let graphs = npu.map_or(String::new(), |npu| {
        let graphs: Vec<String> = npu.part.graphs.iter().map(usize::to_string).collect();
        graphs.join(" + ")
    });
    let share = gpu_share(candidate, n) * 100.0;
    match (kind(candidate), npu) {
        (CutKind::Whole, None) => "GPU only".to_owned(),
        (CutKind::Whole, Some(_)) => format!("NPU only, {graphs}"),
        (CutKind::Sequence, _) => format!("{}, NPU {graphs}", candidate.cut.name()),
        _ => format!("{}, GPU {share:.0} %, NPU {graphs}", candidate.cut.name()),
    }
}

/// Extra time of the published decision by our model, and the reason why ours differs.
fn explain(
    soc: &Soc,
    solution: &Solution,
    published: &PublishedDecision,
    rows: usize,
) -> (Option<f64>, String) {
    let Some(best) = chosen(solution) else { return (None, String::new()) };
    let ours = describe(best, published.n);
    let us = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    let of = |theirs: Duration| {
        let share = theirs.as_secs_f64() / best.total().as_secs_f64() - 1.0;
        (
            Some(share),
            format!("{ours} takes {}, the published decision {}", us(best.total()), us(theirs)),
        )
    };
    if let Some(theirs) = solution.candidates.iter().find(|known| is_same(known, published)) {
        return of(theirs.total());
    }
    let alike = solution.candidates.iter().find(|known| kind(known) == published.cut);
    if let (CutKind::Row, Some(share), Some(alike)) = (published.cut, published.gpu_share, alike) {
        let (known, text) = of(row_cut(soc, published, rows, share) + alike.sync + alike.copy);
        return (
            known,
            format!(
                "{text}: the published ratio is that of times measured in isolation, with constants that \
                 a running queue does not have"
            ),
        );
    }
    let text = format!(
        "{ours} takes {}; these graphs add up to the length, so nothing is padded",
        us(best.total())
    );
    (None, text)
}

/// Units in which a published share is expressed.
const UNITS: usize = 60;

/// max T_i of a row cut with that share on the GPU.
fn row_cut(soc: &Soc, published: &PublishedDecision, rows: usize, share: f64) -> Duration {
    let PublishedDecision { n, k, .. } = published;
    let workload = Workload { graph: graph(*n, *k), bits: WeightBits::default() };
    let times = soc.times(&KINDS, &workload, SyncMode::Fast);
    let batch = shape(rows).batch();
    let (first, end) = (PRODUCT, PRODUCT + 1);
    let time = |(device, share): (usize, f64)| {
        let features = Share { from: 0, to: (share * UNITS as f64).round() as usize, of: UNITS };
        let (graphs, order) = match KINDS[device] {
            DeviceKind::Npu => (vec![rows], OperandOrder::Swapped),
            _ => (Vec::new(), OperandOrder::Straight),
        };
        let part = Part { features, graphs, order, ..Part::WHOLE };
        let crossed = KINDS[device] != DeviceKind::Gpu;
        let job = Job { crossed, ..Job::alone(first..end, &part, &batch) };
        times[device].run_time(&job)
    };
    [(0, share), (1, 1.0 - share)].into_iter().map(time).max().unwrap_or_default()
}

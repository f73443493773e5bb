//! Single matmuls: their time in isolation, and how the solver divides them.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceKind, GraphKey, ModelId};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};
use lapwing_plan::Phase;
use lapwing_plan::soc::{Soc, SyncMode, WeightBits, Workload};
use lapwing_plan::solve::{Candidate, Cut, Problem, Solution, Solver};
use lapwing_plan::strategy::{ChunkShape, PlanInput};
use lapwing_plan::time::{Border, Job};
use lapwing_plan::{DeviceId, device_of};
use serde::Serialize;

use super::error::SimulateError;
use super::published::{CutKind, Product, PublishedDecision};
use super::scenario::Scenario;

/// A published decision and the solver's decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The matmul, as `[outputs,inputs]`.
    pub product: String,
    /// Tokens: a number or a range.
    pub tokens: String,
    /// The published decision.
    pub paper: String,
    /// The solver's decision; for a range, at its ends and at a length between.
    pub model: String,
    /// Whether both agree: the same kind of cut, with shares that differ by at most a seventh.
    pub same: bool,
    /// Relative extra time of the published decision by our model; for a range, the maximum. `None` if
    /// both agree, or if our graphs have no such cut.
    pub longer: Option<f64>,
    /// The times behind the decision, next to those of the published one where they differ.
    pub reason: String,
}

/// The matmul's node; the node before it makes its input.
const PRODUCT: usize = 1;
/// The processors; the first one has the values.
const KINDS: [DeviceKind; 2] = [DeviceKind::Gpu, DeviceKind::Npu];
/// Largest difference of two shares that count as equal: the solver divides on a grid of 256 outputs,
/// while published ratios consist of small integers.
const SHARE_TOLERANCE: f64 = 1.0 / 7.0;

/// A graph of one matmul.
fn graph(n: usize, k: usize) -> Arc<Graph> {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows, cols| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols, dtype: DType::Q4_0 })
    };
    let (table, weight) = (weight("input", 1, k), weight("product", n, k));
    let mut push = |op, inputs: &[_], width| {
        graph.push(NewNode { op, inputs, width, layer: None, role: "product" })
    };
    let x = push(Op::Embed { table, scale: 1.0 }, &[], k);
    push(Op::MatMul { weight, bias: None }, &[x], n);
    Arc::new(graph)
}

fn shape(m: usize) -> ChunkShape {
    let phase = if m == 1 { Phase::Decode } else { Phase::Prefill };
    ChunkShape { phase, rows: m, selected: 1, context: 0, prompt: m }
}

/// Time of a matmul measured as in HeteroInfer's Table 3, in isolation, in µs.
pub(super) fn alone_us(soc: &Soc, product: &Product) -> Result<f64, SimulateError> {
    let (kind, us) = queued_us(soc, product)?;
    let sync = match kind {
        DeviceKind::Gpu => soc.value("sync.slow").unwrap_or_default(),
        _ => 0.0,
    };
    Ok(us + sync + product.constant_us)
}

/// Bandwidth in GB/s: bytes of a matmul's weights divided by its time in a running queue.
pub(super) fn gb_per_s(soc: &Soc, product: &Product) -> Result<f64, SimulateError> {
    let WeightBits::Fixed(bits) = WeightBits::default() else { return Ok(f64::NAN) };
    let bytes = product.n as f64 * product.k as f64 * bits / 8.0;
    Ok(bytes / queued_us(soc, product)?.1 / 1e3)
}

/// Time of a matmul in a running queue, in µs.
fn queued_us(soc: &Soc, product: &Product) -> Result<(DeviceKind, f64), SimulateError> {
    let Product { device, n, k, m, straight, .. } = product;
    let kind = KINDS.into_iter().find(|kind| kind.name() == device);
    let kind = kind.ok_or_else(|| SimulateError::Published {
        reason: format!("matmuls cannot be measured on '{device}'; it must be gpu or npu"),
    })?;
    let workload = Workload { graph: graph(*n, *k), bits: WeightBits::default() };
    let times = soc.times(&[kind], &workload, SyncMode::Slow);
    let mut part = Part::WHOLE;
    if kind == DeviceKind::Npu {
        let order = if *straight { OperandOrder::Straight } else { OperandOrder::Swapped };
        part = Part { graphs: vec![*m], order, ..Part::WHOLE };
    }
    let batch = shape(*m).batch();
    let (first, end) = (PRODUCT, PRODUCT + 1);
    let job = Job { first, end, part: &part, batch: &batch, crossed: false, border: Border::NONE, queued: true };
    Ok((kind, times[0].node_time(&job, PRODUCT).as_secs_f64() * 1e6))
}

/// Time to prepare the graphs of one layer for a prompt of that many rows, in ms. Graphs have
/// multiples of [`Share::ALIGN`] rows.
pub(super) fn preparation_ms(soc: &Soc, graph: &Arc<Graph>, rows: usize) -> f64 {
    let workload = Workload { graph: Arc::clone(graph), bits: WeightBits::default() };
    let times = soc.times(&[DeviceKind::Npu], &workload, SyncMode::Fast);
    let layer = |node: &usize| graph.nodes()[*node].layer == Some(0);
    let nodes: Vec<usize> = (0..graph.nodes().len()).filter(layer).collect();
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return 0.0 };
    let (features, order) = (Share::WHOLE, OperandOrder::Swapped);
    let rows = rows.next_multiple_of(Share::ALIGN);
    let key =
        GraphKey { model: ModelId::default(), nodes: *first..last + 1, features, rows, order };
    times[0].prepare_time(&key).as_secs_f64() * 1e3
}

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
    let mut same = !m.is_empty();
    let mut longer: Option<f64> = None;
    for rows in m {
        let solution = solve(soc, *n, *k, *rows);
        let Some(best) = solution.best() else {
            same = false;
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
            reasons.push(format!("{at}{reason}"));
        } else if reasons.is_empty() && *rows == m[0] {
            reasons.push(best.to_string());
        }
        same &= matches;
    }
    Decision {
        product: format!("[{n},{k}]"),
        tokens,
        paper: published.published.clone(),
        model: decided.join(" / "),
        same,
        longer,
        reason: reasons.join("; "),
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
    let Some(best) = solution.best() else { return (None, String::new()) };
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
        let job = Job { first, end, part: &part, batch: &batch, crossed, border: Border::NONE, queued: false };
        times[device].run_time(&job)
    };
    [(0, share), (1, 1.0 - share)].into_iter().map(time).max().unwrap_or_default()
}

//! Each block divided between devices, or not, as the solver predicts to be fastest.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::OperandOrder;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use crate::blocks::{Block, BlockKind, blocks};
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::registry::Parameter;
use crate::route::Route;
use crate::solve::candidate::{Candidate, Solution};
use crate::solve::solver::{Problem, Solver};
use crate::solve::terms::{Entry, entry_time, submit_time};
use crate::stage::{Stage, StageWork};
use crate::time::{Border, Crossing};

/// Hetero-tensor of HeteroLLM (arXiv 2501.14794). Each block of matmuls is divided as the solver
/// proposes, unless the gain is too small; each other block runs undivided. The route minimises the
/// sum of max T_i + T_sync + T_copy over all blocks. The cost of a block depends on the device of the
/// block before it, so the minimum is a shortest path through the candidates of all blocks.
#[derive(Debug)]
pub struct TensorLevel {
    solver: Solver,
    gain: f64,
}

impl Default for TensorLevel {
    fn default() -> TensorLevel {
        TensorLevel::with_gain(TensorLevel::GAIN)
    }
}

impl TensorLevel {
    /// A smaller gain of a cut is within the error of the predictions.
    pub const GAIN: f64 = 1.02;

    /// A strategy with an empty solver cache, for one engine.
    pub fn new() -> TensorLevel {
        TensorLevel::default()
    }

    /// As [`new`](TensorLevel::new), where a cut must beat the fastest undivided candidate by at least this factor.
    pub fn with_gain(gain: f64) -> TensorLevel {
        TensorLevel { solver: Solver::default(), gain }
    }

    /// The solution of each distinct block for a chunk, with the first block of that kind.
    pub fn solutions(
        &self,
        input: &PlanInput<'_>,
        shape: &ChunkShape,
    ) -> Vec<(Block, Arc<Solution>)> {
        let mut distinct: Vec<(Block, Arc<Solution>)> = Vec::new();
        for block in blocks(input.graph) {
            let solution = self.solution(input, shape, &block);
            if !distinct.iter().any(|(_, known)| Arc::ptr_eq(known, &solution)) {
                distinct.push((block, solution));
            }
        }
        distinct
    }

    fn solution(&self, input: &PlanInput<'_>, shape: &ChunkShape, block: &Block) -> Arc<Solution> {
        let (first, end) = (block.nodes.start, block.nodes.end);
        let divide = block.kind == BlockKind::Matmul;
        self.solver.solve(input, Problem { first, end, shape, home: home(input), divide })
    }
}

/// The device on which values are kept between blocks: the first that runs every op.
fn home(input: &PlanInput<'_>) -> DeviceId {
    let nodes = input.graph.nodes();
    let runs_all = |d: &usize| nodes.iter().all(|node| input.devices[*d].runs(&node.op));
    DeviceId((0..input.devices.len()).find(runs_all).unwrap_or(0))
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "tensor-level",
    "each block divided, or not, as the solver predicts to be fastest",
    &[Parameter::new(
        "gain",
        "factor by which a cut must be faster than the fastest device alone",
        TensorLevel::GAIN,
        1.0..=100.0,
    )],
    |_, p| Arc::new(TensorLevel::with_gain(p.value("gain"))),
);

impl Strategy for TensorLevel {
    fn name(&self) -> &str {
        "tensor-level"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let blocks = blocks(input.graph);
        let solutions: Vec<Arc<Solution>> =
            blocks.iter().map(|block| self.solution(input, shape, block)).collect();
        let choices: Vec<Vec<&Candidate>> =
            solutions.iter().map(|solution| solution.worthwhile(self.gain)).collect();
        let batch = input.batch(shape);
        let finder = PathFinder { input, batch: &batch, home: home(input) };
        let path = finder.shortest(&choices);
        let mut stages: Vec<Stage> = Vec::new();
        let (mut cut, mut total) = (0, Duration::ZERO);
        for (block, choice) in blocks.iter().zip(&path) {
            total = choice.reached;
            cut += usize::from(choice.candidate.parts.len() > 1);
            let parts = choice.candidate.parts.clone();
            let stage = Stage {
                work: StageWork::Nodes,
                nodes: block.nodes.clone(),
                parts,
                prepare: Default::default(),
            };
            append(input, &mut stages, stage);
        }
        let tried: usize = distinct(&solutions).map(|s| s.tried).sum();
        let reason = format!(
            "least sum of max T_i + T_sync + T_copy over {} blocks, {cut} of them divided; {tried} parts evaluated; {}",
            blocks.len(),
            input.cost.source(),
        );
        Route::new(stages, reason, Some(total), input.route_for(shape))
    }
}

fn distinct(solutions: &[Arc<Solution>]) -> impl Iterator<Item = &Arc<Solution>> {
    solutions
        .iter()
        .enumerate()
        .filter(|(at, solution)| !solutions[..*at].iter().any(|known| Arc::ptr_eq(known, solution)))
        .map(|(_, solution)| solution)
}

/// Adds a stage, or extends the last stage if one device can run both undivided in one submission.
fn append(input: &PlanInput<'_>, stages: &mut Vec<Stage>, stage: Stage) {
    let multiplies = |nodes: std::ops::Range<usize>| {
        input.graph.nodes()[nodes].iter().any(|node| matches!(node.op, Op::MatMul { .. }))
    };
    if let Some(last) = stages.last_mut()
        && let ([a], [b]) = (&mut last.parts[..], &stage.parts[..])
        && a.device == b.device
        && a.part.graphs == b.part.graphs
    {
        // The operand order matters to matmuls only.
        let order = match (multiplies(last.nodes.clone()), multiplies(stage.nodes.clone())) {
            (true, true) if a.part.order == b.part.order => Some(a.part.order),
            (true, true) => None,
            (true, false) => Some(a.part.order),
            (false, true) => Some(b.part.order),
            (false, false) => Some(OperandOrder::Straight),
        };
        if let Some(order) = order {
            a.part.order = order;
            last.nodes.end = stage.nodes.end;
            return;
        }
    }
    stages.push(stage);
}

/// Where the values of a block are: on one device, or (`None`) merged from several.
type Place = Option<DeviceId>;

/// A block on the shortest path.
struct Choice<'a> {
    candidate: &'a Candidate,
    /// Time from the start of the route to the end of the block.
    reached: Duration,
}

/// Finds the fastest choice of candidates.
struct PathFinder<'a> {
    input: &'a PlanInput<'a>,
    batch: &'a Batch,
    home: DeviceId,
}

impl PathFinder<'_> {
    /// The candidate of each block on the fastest path through all blocks.
    fn shortest<'s>(&self, choices: &[Vec<&'s Candidate>]) -> Vec<Choice<'s>> {
        struct Step<'s> {
            place: Place,
            reached: Duration,
            candidate: &'s Candidate,
            before: Option<usize>,
        }
        let mut layers: Vec<Vec<Step<'s>>> = Vec::new();
        for choice in choices {
            let mut layer: Vec<Step<'s>> = Vec::new();
            for &candidate in choice {
                let place = match &candidate.parts[..] {
                    [one] => Some(one.device),
                    _ => None,
                };
                let mut offer = |before: Option<usize>, reached: Duration| {
                    let step = Step { place, reached, candidate, before };
                    match layer.iter_mut().find(|step| step.place == place) {
                        None => layer.push(step),
                        Some(known) if reached < known.reached => *known = step,
                        Some(_) => {}
                    }
                };
                match layers.last() {
                    None => offer(None, self.time(candidate, None, true)),
                    Some(last) => last.iter().enumerate().for_each(|(at, step)| {
                        let time = self.time(candidate, step.place, false);
                        offer(Some(at), step.reached + time);
                    }),
                }
            }
            layers.push(layer);
        }
        let end = layers.last().and_then(|layer| {
            layer.iter().enumerate().min_by_key(|(_, step)| step.reached).map(|(at, _)| at)
        });
        let mut path = Vec::with_capacity(layers.len());
        let mut at = end;
        for layer in layers.iter().rev() {
            let Some(step) = at.and_then(|at| layer.get(at)) else { break };
            path.push(Choice { candidate: step.candidate, reached: step.reached });
            at = step.before;
        }
        path.reverse();
        path
    }

    /// Time of a candidate after a block whose values are in place `before`. The inputs of the first
    /// block are on every device.
    fn time(&self, candidate: &Candidate, before: Place, is_first: bool) -> Duration {
        let cost = self.input.cost;
        let slowest = candidate.parts.iter().zip(&candidate.times).map(|(part, time)| {
            let device = part.device;
            // What the candidate's time has, and what it has after the block before it.
            let one = Border { buffers: 1, shared: false };
            let away = entry_time(cost, device, self.batch, one);
            let border = Border { shared: before.is_none(), ..one };
            let entry = entry_time(cost, device, self.batch, border);
            let bare = if device == self.home { *time } else { time.saturating_sub(away) };
            if is_first || (before == Some(device) && candidate.parts.len() > 1) {
                bare
            } else if before == Some(device) {
                // Both blocks are one stage, with one submission.
                let entry = Entry { part: part.part.clone(), ..Entry::default() };
                bare.saturating_sub(submit_time(cost, device, self.batch, entry))
            } else {
                let from = before.unwrap_or_else(|| self.another(device));
                bare + entry + cost.sync_time(Crossing { from, to: device })
            }
        });
        slowest.max().unwrap_or_default() + candidate.copy
    }

    /// Any other device, as the origin of values that were merged from several devices.
    fn another(&self, device: DeviceId) -> DeviceId {
        let others = (0..self.input.devices.len()).map(DeviceId).find(|other| *other != device);
        others.unwrap_or(device)
    }
}

//! The solver, which caches the solutions of equal blocks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;

use super::candidate::{Candidate, Solution};
use super::space::Space;
use super::{features, tokens};
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::strategy::interface::PlanInput;

/// A block to run.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// First node.
    pub first: usize,
    /// One past the last node.
    pub end: usize,
    /// Shape of the chunk.
    pub shape: &'a ChunkShape,
    /// The device that holds the inputs and runs the next block.
    pub home: DeviceId,
    /// Whether the block may be divided. If not, only undivided candidates are tried.
    pub divide: bool,
}

/// Solves blocks. Equal blocks of different layers are solved once.
#[derive(Debug, Default)]
pub struct Solver {
    cache: Mutex<HashMap<Key, Arc<Solution>>>,
}

/// Everything that a solution depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    nodes: Vec<NodeKey>,
    read: usize,
    written: usize,
    rows: usize,
    selected: usize,
    context: usize,
    home: DeviceId,
    divide: bool,
}

/// Everything that the time of a node depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NodeKey {
    op: &'static str,
    width: usize,
    inner: usize,
    dtype: Option<DType>,
    mask: Option<Mask>,
    selected: bool,
}

/// Maximum cached solutions.
const CACHE_MAX: usize = 8192;

impl Solver {
    /// A solver with an empty cache. It serves one engine: the cache assumes a fixed graph, devices
    /// and cost model.
    pub fn new() -> Solver {
        Solver::default()
    }

    /// The best candidates for a block, fastest first. Empty if no device can run the block.
    pub fn solve(&self, input: &PlanInput<'_>, problem: Problem<'_>) -> Arc<Solution> {
        let key = Key::of(input.graph, &problem);
        if let Some(known) = self.cache().get(&key) {
            return Arc::clone(known);
        }
        let solution = Arc::new(solve(input, problem));
        let mut cache = self.cache();
        if cache.len() == CACHE_MAX {
            cache.clear();
        }
        cache.insert(key, Arc::clone(&solution));
        solution
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Solution>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn of(graph: &Graph, problem: &Problem<'_>) -> Key {
        let Problem { first, end, shape, home, divide } = *problem;
        let nodes: Vec<NodeKey> = (first..end).map(|node| NodeKey::of(graph, node)).collect();
        let attends = nodes.iter().any(|node| node.op == "attention");
        let written = graph.writes(first..end).iter().map(|v| graph.value(*v).width).sum();
        let read = graph.live_in(first..end).iter().map(|v| graph.value(*v).width).sum();
        let ChunkShape { rows, selected, context, .. } = *shape;
        let context = if attends { context } else { 0 };
        Key { nodes, read, written, rows, selected, context, home, divide }
    }
}

impl NodeKey {
    fn of(graph: &Graph, node: usize) -> NodeKey {
        let node = &graph.nodes()[node];
        let weight = match &node.op {
            Op::RmsNorm { weight, .. } => *weight,
            Op::Embed { table, .. } | Op::Lookup { table, .. } => Some(*table),
            op => op.matrices().first().copied(),
        };
        let weight = weight.map(|id| &graph.weights()[id.0]);
        let value = graph.value(node.output);
        NodeKey {
            op: node.op.name(),
            width: value.width,
            inner: match &node.op {
                Op::RmsNorm { group, .. } => *group,
                _ => weight.map_or(0, |w| w.cols),
            },
            dtype: weight.map(|w| w.dtype),
            mask: if let Op::Attention(op) = &node.op { Some(op.seen()) } else { None },
            selected: value.rows == RowSet::Selected,
        }
    }
}

fn solve(input: &PlanInput<'_>, problem: Problem<'_>) -> Solution {
    let Problem { first, end, shape, home, divide } = problem;
    let graph = input.graph;
    let nodes = &graph.nodes()[first..end];
    let selected = nodes.iter().all(|n| graph.value(n.output).rows == RowSet::Selected);
    let runs = |d: &usize| nodes.iter().all(|node| input.devices[*d].runs(&node.op));
    let mut space = Space {
        cost: input.cost,
        graph,
        input,
        nodes: first..end,
        batch: input.batch(shape),
        rows: if selected { shape.selected } else { shape.rows },
        home,
        devices: (0..input.devices.len()).filter(runs).map(DeviceId).collect(),
        tried: 0,
        best: HashMap::new(),
    };
    for device in space.devices.clone() {
        if let Some((part, time)) = space.fastest(device, Part::WHOLE, space.rows) {
            space.offer(vec![(device, (part, time))]);
        }
    }
    let sets = if divide { space.sets() } else { Vec::new() };
    for set in sets {
        if graph.can_cut_features(first..end) {
            features::try_all(&mut space, &set);
        }
        if graph.can_cut_rows(first..end) {
            tokens::try_all(&mut space, &set);
        }
    }
    let tried = space.tried;
    let mut candidates: Vec<Candidate> = space.best.into_values().collect();
    // Ties go to fewer parts, then to lower device numbers.
    candidates.sort_by_cached_key(|c| {
        (c.total(), c.parts.len(), c.parts.iter().map(|p| p.device).collect::<Vec<_>>())
    });
    Solution { candidates, tried }
}

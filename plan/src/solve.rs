//! The solver (S2-38): the fastest way to run a block, on one device or divided between several.
//!
//! T = min( max_i T_i(p_i) + T_sync + T_copy , T_i(all) + T_sync ), over all sets of devices, all
//! p with Σ p_i = all on the grid of S2-33, and all ways to fill static graphs. Row cuts and
//! sequence cuts are both tried; padding with a row cut is the hybrid cut (S2-31), several graph
//! sizes in turn with the rest elsewhere the multi-sequence cut (S2-30). T_sync is 0 where the
//! whole block stays on the device that holds its inputs and runs what follows. T_copy is the time
//! to merge the parts of a cut; a block in one piece has nothing to merge. If a cut brings nothing,
//! there is none.
//!
//! Between two devices every border on the grid is tried. Between three or four, row cuts are
//! searched over at most 16 places (the largest such grid that divides the units evenly), where the
//! best is found by dynamic programming over the devices; units then move from part to part by ever
//! smaller steps down to one, which ends at the best where wider parts take longer. Sequence cuts are
//! searched exhaustively, by branch and bound, over at most 32 places, which are multiples of 32
//! rows, and not refined: up to 32 · 32 rows the result is the best of the grid. Of more than four
//! devices only the four that are fastest alone are combined.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;
use lapwing_kernels::quant::DType;

use super::cost::CostModel;
use super::strategy::{ChunkShape, PlanInput};
use super::time::{Crossing, Job};
use super::{DeviceId, StagePart};

mod covers;
mod features;
mod tokens;

pub use covers::covers;

/// Row cuts are aligned to this where the width allows (S2-33), else to the 32 of
/// [`Share::ALIGN`](lapwing_kernels::part::Share::ALIGN).
pub const WIDE_ALIGN: usize = 256;

/// Sequence cuts are aligned to this (S2-33).
pub const SEQUENCE_ALIGN: usize = 32;

/// How a block is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Not at all.
    Whole,
    /// By features (S2-25).
    Row,
    /// By features, with rows padded to a standard size (S2-31).
    Hybrid,
    /// By tokens (S2-29).
    Sequence,
    /// By tokens, with several standard sizes in turn on one device (S2-30).
    MultiSequence,
}

impl Cut {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cut::Whole => "whole",
            Cut::Row => "row cut",
            Cut::Hybrid => "hybrid cut",
            Cut::Sequence => "sequence cut",
            Cut::MultiSequence => "multi-sequence cut",
        }
    }
}

/// A way to run a block, with the terms of its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How it is divided.
    pub cut: Cut,
    /// Who runs what.
    pub parts: Vec<StagePart>,
    /// T_i: time of each part, submission included.
    pub times: Vec<Duration>,
    /// T_sync: to the devices and back.
    pub sync: Duration,
    /// T_copy: putting the parts together.
    pub copy: Duration,
}

impl Candidate {
    /// max T_i + T_sync + T_copy.
    pub fn total(&self) -> Duration {
        self.slowest().saturating_add(self.sync).saturating_add(self.copy)
    }

    /// max T_i.
    pub fn slowest(&self) -> Duration {
        self.times.iter().max().copied().unwrap_or_default()
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: max(", self.cut.name())?;
        for (at, time) in self.times.iter().enumerate() {
            write!(f, "{}{time:.1?}", if at > 0 { ", " } else { "" })?;
        }
        let (sync, copy, total) = (self.sync, self.copy, self.total());
        write!(f, ") + sync {sync:.1?} + copy {copy:.1?} = {total:.1?}")
    }
}

/// The best way of each kind to run a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// For each set of devices and each kind of cut the fastest; the fastest of all first.
    pub candidates: Vec<Candidate>,
    /// Divisions whose time was computed.
    pub tried: usize,
}

impl Solution {
    /// The winner.
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first()
    }
}

/// A block to solve.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// First node.
    pub first: usize,
    /// One past the last node.
    pub end: usize,
    /// Shape of the chunk.
    pub shape: &'a ChunkShape,
    /// The device that holds the inputs and runs what follows.
    pub home: DeviceId,
    /// Whether it may be divided; else only the fastest way on each device is looked for.
    pub divide: bool,
}

/// Solves blocks, and remembers: equal blocks of different layers are solved once.
#[derive(Debug, Default)]
pub struct Solver {
    memo: Mutex<HashMap<Key, Arc<Solution>>>,
}

/// What a solution depends on.
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

/// What a node's time depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeKey {
    op: &'static str,
    width: usize,
    inner: usize,
    dtype: Option<DType>,
    window: Option<usize>,
    selected: bool,
}

/// Most solutions kept.
const MEMO_MAX: usize = 8192;

impl Solver {
    /// A solver that remembers nothing yet. It is for one engine: a solution holds for the graph,
    /// devices and cost model that it was asked with.
    pub fn new() -> Solver {
        Solver::default()
    }

    /// All ways to run a block, best first. Empty if no device can run it.
    pub fn solve(&self, input: &PlanInput<'_>, question: Question<'_>) -> Arc<Solution> {
        let key = Key::of(input.graph, &question);
        if let Some(known) = self.memo().get(&key) {
            return Arc::clone(known);
        }
        let solution = Arc::new(solve(input, question));
        let mut memo = self.memo();
        if memo.len() == MEMO_MAX {
            memo.clear();
        }
        memo.insert(key, Arc::clone(&solution));
        solution
    }

    fn memo(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Solution>>> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn of(graph: &Graph, question: &Question<'_>) -> Key {
        let Question { first, end, shape, home, divide } = *question;
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
            Op::MatMul { weight, .. } | Op::RmsNorm { weight, .. } => Some(*weight),
            Op::Embed { table, .. } => Some(*table),
            _ => None,
        };
        let weight = weight.map(|id| &graph.weights()[id.0]);
        let value = graph.value(node.output);
        NodeKey {
            op: node.op.name(),
            width: value.width,
            inner: weight.map_or(0, |w| w.cols),
            dtype: weight.map(|w| w.dtype),
            window: if let Op::Attention(op) = &node.op { op.window } else { None },
            selected: value.rows == RowSet::Selected,
        }
    }
}

/// What all candidates of a block share.
struct Space<'a> {
    cost: &'a dyn CostModel,
    graph: &'a Graph,
    input: &'a PlanInput<'a>,
    nodes: Range<usize>,
    batch: Batch,
    /// Rows of what the block computes.
    rows: usize,
    home: DeviceId,
    /// Devices that can run the block.
    devices: Vec<DeviceId>,
    tried: usize,
    best: HashMap<(Vec<DeviceId>, Cut), Candidate>,
}

/// A part and its time.
type Timed = (Part, Duration);

fn solve(input: &PlanInput<'_>, question: Question<'_>) -> Solution {
    let Question { first, end, shape, home, divide } = question;
    let graph = input.graph;
    let nodes = &graph.nodes()[first..end];
    let selected = nodes.iter().all(|n| graph.value(n.output).rows == RowSet::Selected);
    let runs = |d: &usize| nodes.iter().all(|node| input.devices[*d].runs(&node.op));
    let mut space = Space {
        cost: input.cost,
        graph,
        input,
        nodes: first..end,
        batch: shape.batch(),
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
    // Whole before cut, fewer parts before more, lower devices first where times are equal.
    candidates.sort_by_cached_key(|c| {
        (c.total(), c.parts.len(), c.parts.iter().map(|p| p.device).collect::<Vec<_>>())
    });
    Solution { candidates, tried }
}

impl Space<'_> {
    /// Sets of two to four devices; of more than four devices only the four fastest are combined.
    fn sets(&self) -> Vec<Vec<DeviceId>> {
        let alone = |device: &DeviceId| {
            self.best.get(&(vec![*device], Cut::Whole)).map_or(Duration::MAX, Candidate::total)
        };
        let mut devices = self.devices.clone();
        devices.sort_by_key(alone);
        devices.truncate(4);
        devices.sort_unstable();
        let subsets = 1..1_usize << devices.len();
        subsets
            .filter(|subset| subset.count_ones() >= 2)
            .map(|subset| {
                (0..devices.len()).filter(|d| subset >> d & 1 == 1).map(|d| devices[d]).collect()
            })
            .collect()
    }

    /// The part as the device runs it fastest: graphs and order of operands chosen. `None` if the
    /// device has no graphs for so many rows.
    fn fastest(&mut self, device: DeviceId, part: Part, rows: usize) -> Option<Timed> {
        let mut best: Option<Timed> = None;
        for filled in covers::filled(&self.input.devices[device.0], &part, rows) {
            let job = Job {
                first: self.nodes.start,
                end: self.nodes.end,
                part: &filled,
                batch: &self.batch,
                crossed: device != self.home,
                queued: false,
            };
            self.tried += 1;
            let time = self.cost.job_time(device, &job);
            if best.as_ref().is_none_or(|(_, known)| time < *known) {
                best = Some((filled, time));
            }
        }
        best
    }

    /// Keeps a candidate if it is the fastest of its kind.
    fn offer(&mut self, parts: Vec<(DeviceId, Timed)>) {
        let devices: Vec<DeviceId> = parts.iter().map(|(device, _)| *device).collect();
        let sync = self.sync_time(&devices);
        let copy = if parts.len() > 1 { self.copy_time() } else { Duration::ZERO };
        let cut = self.kind(&parts);
        let times = parts.iter().map(|(_, (_, time))| *time).collect();
        let parts =
            parts.into_iter().map(|(device, (part, _))| StagePart { device, part }).collect();
        let candidate = Candidate { cut, parts, times, sync, copy };
        let mut key = devices;
        key.sort_unstable();
        let known = self.best.get(&(key.clone(), cut));
        if known.is_none_or(|known| candidate.total() < known.total()) {
            self.best.insert((key, cut), candidate);
        }
    }

    fn kind(&self, parts: &[(DeviceId, Timed)]) -> Cut {
        let graphs = || parts.iter().map(|(_, (part, _))| &part.graphs);
        match parts {
            [_] => Cut::Whole,
            [(_, (first, _)), ..] if first.features.is_whole() => {
                match graphs().any(|g| g.len() > 1) {
                    true => Cut::MultiSequence,
                    false => Cut::Sequence,
                }
            }
            _ => match graphs().any(|g| g.iter().sum::<usize>() > self.rows) {
                true => Cut::Hybrid,
                false => Cut::Row,
            },
        }
    }

    /// From home to the slowest device and back, and what home adds because its next inputs come
    /// from elsewhere.
    fn sync_time(&self, devices: &[DeviceId]) -> Duration {
        if devices == [self.home] {
            return Duration::ZERO;
        }
        let way = |from, to| self.cost.sync_time(Crossing { from, to });
        let both = devices.iter().map(|d| way(self.home, *d) + way(*d, self.home));
        both.max().unwrap_or_default() + entry_time(self.cost, self.home, &self.batch)
    }

    /// Every value that the block hands on is read and written once.
    fn copy_time(&self) -> Duration {
        self.cost.copy_time(merge_bytes(self.graph, self.nodes.clone(), &self.batch))
    }
}

/// Bytes that are read and written to put the parts of a cut together.
pub fn merge_bytes(graph: &Graph, nodes: Range<usize>, batch: &Batch) -> u64 {
    let written = graph.writes(nodes).into_iter().map(|value| {
        let value = graph.value(value);
        Part::WHOLE.rows_of(value, batch).len() * value.width * size_of::<f32>()
    });
    2 * written.sum::<usize>() as u64
}

/// Submission of a job without nodes.
pub(super) fn submit_time(
    cost: &dyn CostModel,
    device: DeviceId,
    batch: &Batch,
    crossed: bool,
) -> Duration {
    let part = &Part::WHOLE;
    cost.job_time(device, &Job { first: 0, end: 0, part, batch, crossed, queued: false })
}

/// What a device adds to a job because its inputs come from elsewhere.
pub(super) fn entry_time(cost: &dyn CostModel, device: DeviceId, batch: &Batch) -> Duration {
    let submit = |crossed| submit_time(cost, device, batch, crossed);
    submit(true).saturating_sub(submit(false))
}

#[cfg(test)]
mod tests;

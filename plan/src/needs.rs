//! What a chunk needs of each device: by these times one tells how long devices must take at least, whatever routes chunks have.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_kernels::graph::RowSet;
use lapwing_kernels::part::{OperandOrder, Part};
use lapwing_traces::division::divided_time;

use crate::device::{DeviceId, needs_graphs, takes_rows};
use crate::shape::{OpShape, rows_of};
use crate::strategy::interface::PlanInput;
use crate::time::Job;

/// What a chunk needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Its blocks.
    pub blocks: Vec<BlockNeed>,
    /// Time of its longest chain of blocks if all devices share in each of them.
    pub path: Duration,
}

/// Blocks that take the same times: ops of the same shape.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNeed {
    /// How many there are.
    pub count: u32,
    /// Predicted time of one of them on each device alone, by number: without submission, conversion and synchronisation, which
    /// stages share, and at the best rate for any of its rows. `None` for a device that cannot run it.
    pub times: Vec<Option<Duration>>,
}

/// What the needs of a batch depend on. Contexts are rounded down a little, so that one shape serves many batches and needs are never too
/// large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NeedShape {
    rows: usize,
    selected: usize,
    context: usize,
    is_one_sequence: bool,
}

/// Contexts are rounded down to so many bits.
const BITS: u32 = 4;

impl NeedShape {
    pub(crate) fn of(batch: &Batch) -> NeedShape {
        let context = batch.spans.iter().map(|span| span.start).min().unwrap_or(0);
        let dropped = (usize::BITS - context.leading_zeros()).saturating_sub(BITS);
        NeedShape {
            rows: batch.rows(),
            selected: batch.selected.len(),
            context: context >> dropped << dropped,
            is_one_sequence: batch.spans.len() == 1,
        }
    }

    /// A batch of this shape. Rows of several sequences do not see each other.
    fn batch(&self) -> Batch {
        let mut batch = Batch { passes_on: true, ..Batch::default() };
        if self.is_one_sequence {
            let selected = self.rows.saturating_sub(self.selected)..self.rows;
            batch.push(&vec![0; self.rows], self.context, Vec::new(), selected);
            return batch;
        }
        for row in 0..self.rows {
            batch.push(&[0], self.context, Vec::new(), 0..usize::from(row < self.selected));
        }
        batch
    }
}

impl Needs {
    /// The needs of a chunk of that shape.
    pub(crate) fn new(input: &PlanInput<'_>, shape: &NeedShape) -> Needs {
        let batch = Batch { model: input.model, ..shape.batch() };
        let mut least = Least { input, batch, submit: Vec::new(), known: HashMap::new() };
        least.submit = (0..input.devices.len()).map(|d| least.job(d, 0, 0, &Part::WHOLE)).collect();
        let values = input.graph.nodes().iter().map(|node| node.output.0 + 1).max();
        let mut ends = vec![0.0_f64; values.unwrap_or(0)];
        let mut blocks: BTreeMap<Vec<Option<Duration>>, u32> = BTreeMap::new();
        for (at, node) in input.graph.nodes().iter().enumerate() {
            let times = least.times(at);
            let begin = node
                .inputs
                .iter()
                .filter_map(|value| ends.get(value.0))
                .copied()
                .fold(0.0, f64::max);
            ends[node.output.0] = begin + shared(&times);
            *blocks.entry(times).or_default() += 1;
        }
        let path = Duration::from_nanos(ends.into_iter().fold(0.0, f64::max) as u64);
        let is_work = |times: &[Option<Duration>]| {
            times.iter().flatten().next().is_some()
                && times.iter().flatten().all(|it| !it.is_zero())
        };
        let blocks = blocks.into_iter().filter(|(times, _)| is_work(times));
        Needs { blocks: blocks.map(|(times, count)| BlockNeed { count, times }).collect(), path }
    }
}

/// Time in ns of a block in which all devices share.
fn shared(times: &[Option<Duration>]) -> f64 {
    divided_time(times.iter().flatten().map(|time| time.as_nanos() as f64))
}

/// Least times of ops.
struct Least<'a> {
    input: &'a PlanInput<'a>,
    batch: Batch,
    /// Submission on each device.
    submit: Vec<Duration>,
    /// Times by the shape of an op, of the op before it, and by the rows that it computes.
    known: HashMap<(OpShape, Option<OpShape>, bool), Vec<Option<Duration>>>,
}

impl Least<'_> {
    fn times(&mut self, node: usize) -> Vec<Option<Duration>> {
        let shape = |node| OpShape::of(self.input.graph, node, &Part::WHOLE);
        let key = (shape(node), node.checked_sub(1).map(shape), self.has_all_rows(node));
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let devices = 0..self.input.devices.len();
        let times: Vec<_> = devices.map(|device| self.time(device, node)).collect();
        self.known.insert(key, times.clone());
        times
    }

    fn has_all_rows(&self, node: usize) -> bool {
        let graph = self.input.graph;
        graph.value(graph.nodes()[node].output).rows != RowSet::Selected
    }

    /// Time of an op on a device that can run it.
    fn time(&self, device: usize, node: usize) -> Option<Duration> {
        let info = &self.input.devices[device];
        let rows = rows_of(self.input.graph, node, &Part::WHOLE, &self.batch);
        if !info.runs(&self.input.graph.nodes()[node].op) || !takes_rows(info, rows) {
            return None;
        }
        let whole = self.of_part(device, node, &Part::WHOLE);
        if !needs_graphs(info) {
            return Some(whole);
        }
        let orders = [OperandOrder::Straight, OperandOrder::Swapped];
        let sizes = info.sizes.iter().copied().filter(|size| (1..rows).contains(size));
        let sizes = sizes.filter(|_| self.has_all_rows(node)).chain([rows]);
        let parts = sizes.flat_map(|size| orders.map(|order| (size, order)));
        let times = parts.map(|(size, order)| {
            let own_rows = self.has_all_rows(node).then_some(0..size);
            let part = Part { rows: own_rows, order, ..Part::WHOLE };
            let time = self.of_part(device, node, &part).as_secs_f64() * rows as f64 / size as f64;
            Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)
        });
        times.chain([whole]).min()
    }

    /// Time that a part of an op adds to a stage: alone, or after the op before it, with which it may share a kernel.
    fn of_part(&self, device: usize, node: usize, part: &Part) -> Duration {
        let job = |first, end| self.job(device, first, end, part);
        let alone = job(node, node + 1).saturating_sub(self.submit[device]);
        let before = node.checked_sub(1).filter(|before| {
            self.input.devices[device].runs(&self.input.graph.nodes()[*before].op)
        });
        let added = before.map(|before| job(before, node + 1).saturating_sub(job(before, node)));
        added.map_or(alone, |added| added.min(alone))
    }

    fn job(&self, device: usize, first: usize, end: usize, part: &Part) -> Duration {
        let job = Job { queued: true, ..Job::alone(first..end, part, &self.batch) };
        self.input.cost.job_time(DeviceId(device), &job)
    }
}

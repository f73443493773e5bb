//! The blocks of a graph as a chain, of which each runs on one device, and its least predicted time.

use std::ops::Range;
use std::time::Duration;

use lapwing_kernels::device::{Batch, MemoryDomain};
use lapwing_kernels::part::{OperandOrder, Part, Share};

use crate::blocks::blocks;
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, needs_graphs, takes_rows};
use crate::shape::transfer_bytes;
use crate::stage::Stage;
use crate::strategy::interface::PlanInput;
use crate::strategy::options::OrderSwap;
use crate::strategy::order::Matmuls;
use crate::strategy::route_builder::RouteBuilder;
use crate::strategy::sizes;
use crate::time::{Border, Crossing, Job};

/// The blocks of the graph, in order.
pub(in crate::strategy) struct Chain<'a> {
    input: &'a PlanInput<'a>,
    batch: Batch,
    blocks: Vec<Link>,
}

/// A block of the chain.
struct Link {
    nodes: Range<usize>,
    /// Rows that it computes.
    rows: usize,
    /// Operand order on each device.
    order: Vec<OperandOrder>,
}

/// The times of a chain: of each block on each device, and of each border between two devices.
pub(in crate::strategy) struct Table {
    /// By block and device; `None` if the device cannot run the block.
    blocks: Vec<Vec<Option<Times>>>,
    /// By block, device of the block before it, and device: synchronisation, and copies between memories.
    borders: Vec<Vec<Vec<Duration>>>,
}

/// Times of a block on a device.
#[derive(Clone, Copy)]
struct Times {
    /// In a stage of its own, as the first of the chain.
    first: Duration,
    /// In a stage of its own, after another device.
    crossed: Duration,
    /// What it adds to the stage of the block before it on the same device.
    joined: Duration,
}

/// Least time up to the end of a block that runs on a device, and the device of the block before it;
/// `None` if the device cannot run the block.
type Best = Option<(Duration, usize)>;

impl<'a> Chain<'a> {
    pub(in crate::strategy) fn new(
        input: &'a PlanInput<'a>,
        shape: &'a ChunkShape,
        swap: OrderSwap,
    ) -> Chain<'a> {
        let stages = RouteBuilder::new(input, shape).order_swap(swap);
        let mut links: Vec<Link> = Vec::new();
        for block in blocks(input.graph) {
            let nodes = block.nodes;
            let rows = stages.rows(&nodes);
            let order = input.devices.iter().enumerate().map(|(at, info)| {
                let graphs = sizes::multi(rows, &info.sizes);
                let features = Share::WHOLE;
                let matmuls = Matmuls { graph: input.graph, features, rows: &graphs, swap };
                match links.last() {
                    // A block without matmuls takes the order of the block before it, to join its stage.
                    Some(before) if !matmuls.any(nodes.clone()) => before.order[at],
                    _ => matmuls.order(nodes.clone()),
                }
            });
            let order = order.collect();
            links.push(Link { nodes, rows, order });
        }
        Chain { input, batch: input.batch(shape), blocks: links }
    }

    /// The nodes of a block.
    pub(in crate::strategy) fn nodes(&self, block: usize) -> Range<usize> {
        self.blocks[block].nodes.clone()
    }

    /// Number of blocks.
    pub(in crate::strategy) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The block as a stage on a device; `None` if the device cannot run it.
    pub(in crate::strategy) fn stage(&self, block: usize, device: usize) -> Option<Stage> {
        let Link { nodes, rows, order } = &self.blocks[block];
        let info = &self.input.devices[device];
        let ops = &self.input.graph.nodes()[nodes.clone()];
        if !takes_rows(info, *rows) || !ops.iter().all(|node| info.runs(&node.op)) {
            return None;
        }
        let part = match needs_graphs(info) {
            true => Part {
                graphs: sizes::multi(*rows, &info.sizes),
                order: order[device],
                ..Part::WHOLE
            },
            false => Part::WHOLE,
        };
        Some(Stage::one(DeviceId(device), nodes.clone(), part))
    }

    fn time(&self, stage: &Stage, crossed: bool) -> Duration {
        let (first, end, batch) = (stage.nodes.start, stage.nodes.end, &self.batch);
        let of = &stage.parts[0];
        let border = Border::entering(self.input.graph, first..end, crossed);
        let job = Job { first, end, part: &of.part, batch, crossed, border, queued: false };
        self.input.cost.job_time(of.device, &job)
    }

    fn times(&self, block: usize, device: usize) -> Option<Times> {
        let stage = self.stage(block, device)?;
        let [first, crossed] = [false, true].map(|crossed| self.time(&stage, crossed));
        let before = block.checked_sub(1).and_then(|before| self.stage(before, device));
        let joined = match before {
            Some(before) if before.parts == stage.parts => {
                let nodes = before.nodes.start..stage.nodes.end;
                let both = self.time(&Stage { nodes, ..stage }, false);
                both.saturating_sub(self.time(&before, false))
            }
            _ => first,
        };
        Some(Times { first, crossed, joined })
    }

    /// Time from the end of the block before `block` on one device until it can start on another: all values that are live there
    /// are copied if the devices have different memories.
    fn border(&self, block: usize, crossing: Crossing) -> Duration {
        let PlanInput { graph, devices, cost, .. } = *self.input;
        let [from, to] = [crossing.from, crossing.to].map(|device| devices[device.0].memory);
        let sync = cost.sync_time(crossing);
        if from == to {
            return sync;
        }
        let live = graph.live_in(self.blocks[block].nodes.start..graph.nodes().len());
        let bytes = transfer_bytes(graph, &live, &self.batch);
        let copies = [(from, crossing.from), (to, crossing.to)].into_iter();
        let copies = copies.filter(|(memory, _)| *memory != MemoryDomain::Host);
        sync + copies.map(|(_, device)| cost.transfer_time(device, bytes)).sum::<Duration>()
    }

    /// All times.
    pub(in crate::strategy) fn table(&self) -> Table {
        let devices = self.input.devices.len();
        let blocks = (0..self.blocks.len())
            .map(|block| (0..devices).map(|device| self.times(block, device)).collect());
        let border = |block: usize, from: usize, to: usize| match from == to || block == 0 {
            true => Duration::ZERO,
            false => self.border(block, Crossing { from: DeviceId(from), to: DeviceId(to) }),
        };
        let borders = (0..self.blocks.len()).map(|block| {
            let from = |from| (0..devices).map(|to| border(block, from, to)).collect();
            (0..devices).map(from).collect()
        });
        Table { blocks: blocks.collect(), borders: borders.collect() }
    }
}

impl Table {
    /// Number of devices.
    pub(super) fn devices(&self) -> usize {
        self.blocks.first().map_or(0, Vec::len)
    }

    /// Number of blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Time that a block on a device adds after a block on another; `before` is `None` for the first block. `None` if the device
    /// cannot run it.
    pub(super) fn step(
        &self,
        block: usize,
        before: Option<usize>,
        device: usize,
    ) -> Option<Duration> {
        let times = self.blocks[block][device]?;
        Some(match before {
            None => times.first,
            Some(before) if before == device => times.joined,
            Some(before) => self.borders[block][before][device] + times.crossed,
        })
    }

    /// Least time of the chain with blocks on devices where they are allowed, and the device of each block; `None` if a block has
    /// no device.
    pub(super) fn solve(
        &self,
        is_allowed: impl Fn(usize, usize) -> bool,
    ) -> Option<(Duration, Vec<usize>)> {
        self.solve_priced(|_, time| time, is_allowed)
    }

    /// As [`solve`](Table::solve), with the least sum of what the times of blocks on devices cost.
    pub(in crate::strategy) fn solve_priced(
        &self,
        cost: impl Fn(usize, Duration) -> Duration,
        is_allowed: impl Fn(usize, usize) -> bool,
    ) -> Option<(Duration, Vec<usize>)> {
        let step = |block: usize, before: Option<usize>, device: usize| {
            self.step(block, before, device).map(|time| cost(device, time))
        };
        let devices = self.devices();
        let mut table: Vec<Vec<Best>> = Vec::with_capacity(self.blocks.len());
        for block in 0..self.blocks.len() {
            let row = (0..devices).map(|device| {
                if !is_allowed(block, device) {
                    return None;
                }
                let Some(before) = table.last() else {
                    return Some((step(block, None, device)?, device));
                };
                let from = |other: usize| {
                    let (time, _) = before[other]?;
                    Some((time + step(block, Some(other), device)?, other))
                };
                (0..devices).filter_map(from).min()
            });
            let row = row.collect();
            table.push(row);
        }
        let last = table.last()?;
        let ends = (0..devices).filter_map(|device| last[device].map(|(time, _)| (time, device)));
        let (total, mut device) = ends.min()?;
        let mut chosen = vec![device; self.blocks.len()];
        for block in (1..self.blocks.len()).rev() {
            device = table[block][device]?.1;
            chosen[block - 1] = device;
        }
        Some((total, chosen))
    }
}

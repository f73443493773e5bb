//! Each block of ops on one device, with the least predicted time of the whole chain.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, DeviceKind};
use lapwing_kernels::part::{OperandOrder, Part, Share};

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::order::Matmuls;
use super::roles::Needs;
use super::route_builder::RouteBuilder;
use super::sizes;
use crate::blocks::blocks;
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, needs_graphs, takes_rows};
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::Stage;
use crate::time::{Crossing, Job};

/// Each block of ops on one device, with the least predicted time of the whole chain:
/// min over d₁ … d_n of Σ_i T(i, d_i) + Σ_{d_i ≠ d_{i−1}} T_sync(d_{i−1}, d_i), over the devices that
/// can run block i. Dynamic programming over blocks × devices finds the exact minimum if the time of
/// a stage is its submission plus the sum of its nodes. The NPU runs its rows in several standard
/// graphs with little padding. No block is divided.
#[derive(Clone, Copy, Debug, Default)]
pub struct AutoPlace {
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "auto-place",
    "each block of ops on one device, with the least predicted time of the whole chain",
    &[],
    |o, _| Arc::new(AutoPlace { order_swap: o.order_swap }),
);

impl Strategy for AutoPlace {
    fn name(&self) -> &str {
        "auto-place"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let needs = Needs { strategy: self.name(), devices: input.devices };
        let missing = || needs.missing(DeviceKind::Cpu);
        let chain = Chain::new(input, shape, self.order_swap);
        let (total, devices) = chain.solve().ok_or_else(missing)?;
        let mut stages = RouteBuilder::new(input, shape).order_swap(self.order_swap);
        for (block, device) in devices.into_iter().enumerate() {
            stages.push(chain.stage(block, device).ok_or_else(missing)?);
        }
        let stages = stages.into_list();
        let reason = format!(
            "{} {}, the fastest chain of undivided blocks, by {}",
            stages.len(),
            if stages.len() == 1 { "stage" } else { "stages" },
            input.cost.source()
        );
        Route::new(stages, reason, Some(total), input.route_for(shape))
    }
}

/// The blocks of the graph, in order.
struct Chain<'a> {
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

/// Least time up to the end of a block that runs on a device, and the device of the block before it;
/// `None` if the device cannot run the block.
type Best = Option<(Duration, usize)>;

impl<'a> Chain<'a> {
    fn new(input: &'a PlanInput<'a>, shape: &'a ChunkShape, swap: OrderSwap) -> Chain<'a> {
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

    /// The block as a stage on a device; `None` if the device cannot run it.
    fn stage(&self, block: usize, device: usize) -> Option<Stage> {
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

    fn time(&self, nodes: Range<usize>, device: usize, part: &Part) -> Duration {
        let batch = &self.batch;
        let (first, end) = (nodes.start, nodes.end);
        let job = Job { first, end, part, batch, crossed: false, queued: false };
        self.input.cost.job_time(DeviceId(device), &job)
    }

    /// Time of a block in a stage of its own, and time that it adds to the stage of the block before
    /// it on the same device.
    fn times(&self, block: usize, device: usize) -> Option<(Duration, Duration)> {
        let stage = self.stage(block, device)?;
        let part = &stage.parts[0].part;
        let alone = self.time(stage.nodes.clone(), device, part);
        let before = block.checked_sub(1).and_then(|before| self.stage(before, device));
        let joined = match before {
            Some(before) if before.parts == stage.parts => {
                let both = self.time(before.nodes.start..stage.nodes.end, device, part);
                both.saturating_sub(self.time(before.nodes, device, part))
            }
            _ => alone,
        };
        Some((alone, joined))
    }

    /// Least time of the chain, and the device of each block; `None` if a block has no device.
    fn solve(&self) -> Option<(Duration, Vec<usize>)> {
        let devices = self.input.devices.len();
        let mut table: Vec<Vec<Best>> = Vec::with_capacity(self.blocks.len());
        for block in 0..self.blocks.len() {
            let row = (0..devices).map(|device| {
                let (alone, joined) = self.times(block, device)?;
                let Some(before) = table.last() else { return Some((alone, device)) };
                let from = |other: usize| {
                    let (time, _) = before[other]?;
                    let crossing = Crossing { from: DeviceId(other), to: DeviceId(device) };
                    Some(match other == device {
                        true => (time + joined, other),
                        false => (time + self.input.cost.sync_time(crossing) + alone, other),
                    })
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

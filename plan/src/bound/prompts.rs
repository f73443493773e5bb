//! The least work of prompts, by a cost model.

use std::ops::Range;

use lapwing_kernels::device::DeviceInfo;
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part};

use super::RequestWork;
use crate::blocks::{Block, blocks};
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::phase::Phase;
use crate::solve::terms::{Entry, submit_time};
use crate::strategy::interface::PlanInput;
use crate::time::Job;

/// Prompt rows of the smallest chunks that are tried.
const ROWS_LEAST: usize = 32;

/// What prompts of so many tokens need at least, each with the logits of its last token, all of which have arrived at time 0. Chunks
/// hold rows of one prompt or of several.
pub fn work_of_prompts(input: &PlanInput<'_>, prompts: &[usize]) -> Vec<RequestWork> {
    let graph_blocks = blocks(input.graph);
    let rates: Vec<LaneRates<'_>> = (0..input.devices.len())
        .map(|device| LaneRates::of(input, DeviceId(device), &graph_blocks, prompts.len().max(1)))
        .collect();
    let work = |rows: &usize| {
        let at = |time: &dyn Fn(&LaneRates<'_>, usize) -> f64| -> Vec<Vec<f64>> {
            let of_block = |block| rates.iter().map(|lane| time(lane, block)).collect();
            (0..graph_blocks.len()).map(of_block).collect()
        };
        RequestWork {
            blocks: at(&|lane, block| lane.prompt_time(block, *rows)),
            last_row: at(&|lane, block| lane.row_time(block, *rows)),
            ..RequestWork::default()
        }
    };
    prompts.iter().map(work).collect()
}

/// The best rates of a device.
struct LaneRates<'a> {
    input: &'a PlanInput<'a>,
    device: DeviceId,
    blocks: &'a [Block],
    /// Time in ns of a row of each block, or where only selected rows are computed of a request's; infinite where it cannot run.
    rows: Vec<f64>,
    /// Share of the time of blocks that they take together with their neighbours.
    together: Vec<f64>,
}

impl<'a> LaneRates<'a> {
    fn of(
        input: &'a PlanInput<'a>,
        device: DeviceId,
        blocks: &'a [Block],
        requests: usize,
    ) -> LaneRates<'a> {
        let mut lane = LaneRates {
            input,
            device,
            blocks,
            rows: Vec::new(),
            together: vec![1.0; blocks.len()],
        };
        lane.rows = blocks.iter().map(|block| lane.rate(block, requests)).collect();
        let mut at = 0;
        while at < blocks.len() {
            let run = blocks[at..].iter().take_while(|block| lane.runs(block)).count();
            let share = lane.share_together(at..at + run);
            lane.together[at..at + run].fill(share);
            at += run.max(1);
        }
        lane
    }

    fn info(&self) -> &DeviceInfo {
        &self.input.devices[self.device.0]
    }

    fn runs(&self, block: &Block) -> bool {
        let graph = self.input.graph;
        let mut nodes = graph.nodes()[block.nodes.clone()].iter();
        let has_sizes = !self.info().is_static() || !self.info().sizes.is_empty();
        has_sizes && nodes.all(|node| self.info().runs(&node.op))
    }

    /// Time in ns of nodes of a chunk, without submission.
    fn time(&self, nodes: &Range<usize>, shape: &ChunkShape) -> f64 {
        let batch = self.input.batch(shape);
        let orders = [OperandOrder::Straight, OperandOrder::Swapped];
        let orders = if self.info().is_static() { &orders[..] } else { &orders[..1] };
        let times = orders.iter().map(|order| {
            let part = Part { order: *order, ..Part::WHOLE };
            let Range { start: first, end } = *nodes;
            let job = Job { queued: true, ..Job::alone(first..end, &part, &batch) };
            self.input.cost.job_time(self.device, &job)
        });
        let least = times.min().unwrap_or_default();
        let submit = submit_time(self.input.cost, self.device, &batch, Entry::default());
        least.saturating_sub(submit).as_nanos() as f64
    }

    /// Rows of chunks, of which the best is taken.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let most = self.input.chunk_rows.max(1);
        let doubled = std::iter::successors(Some(ROWS_LEAST), |rows| Some(rows * 2));
        doubled.take_while(move |rows| *rows < most).chain([most])
    }

    /// Least time of a row of a block, or where only selected rows are computed of a request's.
    fn rate(&self, block: &Block, requests: usize) -> f64 {
        if !self.runs(block) {
            return f64::INFINITY;
        }
        if selects(self.input.graph, block) {
            let rows = requests.min(self.input.chunk_rows.max(1));
            return self.time(&block.nodes, &chunk(rows, rows, 0)) / rows as f64;
        }
        let rates =
            self.sizes().map(|rows| self.time(&block.nodes, &chunk(rows, 1, 0)) / rows as f64);
        rates.fold(f64::INFINITY, f64::min)
    }

    /// What adjacent blocks take together, of the sum of their times. A model of whole stages has less than the sum.
    fn share_together(&self, run: Range<usize>) -> f64 {
        let shape = chunk(self.input.chunk_rows.max(1), 1, 0);
        let own = &self.blocks[run];
        let (Some(first), Some(last)) = (own.first(), own.last()) else { return 1.0 };
        let whole = self.time(&(first.nodes.start..last.nodes.end), &shape);
        let sum: f64 = own.iter().map(|block| self.time(&block.nodes, &shape)).sum();
        if sum > 0.0 { (whole / sum).min(1.0) } else { 1.0 }
    }

    /// Least time of a block of a whole prompt.
    fn prompt_time(&self, at: usize, rows: usize) -> f64 {
        let block = &self.blocks[at];
        let time = match (selects(self.input.graph, block), attends(self.input.graph, block)) {
            (true, _) => self.rows[at],
            (false, true) if self.rows[at].is_finite() => {
                let totals = self.sizes().map(|size| self.in_chunks(block, rows, size));
                totals.fold(f64::INFINITY, f64::min)
            }
            _ => self.rows[at] * rows as f64,
        };
        time * self.together[at]
    }

    /// Least time of a block of a prompt's last row.
    fn row_time(&self, at: usize, rows: usize) -> f64 {
        let block = &self.blocks[at];
        let time = match attends(self.input.graph, block) && self.rows[at].is_finite() {
            true => {
                // A chunk of many rows may have a better rate than the row alone.
                let most = self.input.chunk_rows.clamp(1, rows.max(1));
                let whole = self.time(&block.nodes, &chunk(most, 1, rows - most.min(rows)));
                whole / most as f64
            }
            false => self.rows[at],
        };
        time * self.together[at]
    }

    /// Time of a block of a prompt in chunks of that size.
    fn in_chunks(&self, block: &Block, rows: usize, size: usize) -> f64 {
        let starts = (0..rows).step_by(size);
        starts.map(|start| self.time(&block.nodes, &chunk(size.min(rows - start), 1, start))).sum()
    }
}

/// Whether a block computes selected rows only.
fn selects(graph: &Graph, block: &Block) -> bool {
    let mut nodes = graph.nodes()[block.nodes.clone()].iter();
    nodes.all(|node| graph.value(node.output).rows == RowSet::Selected)
}

/// Whether the time of a block depends on the rows before a chunk.
fn attends(graph: &Graph, block: &Block) -> bool {
    let mut nodes = graph.nodes()[block.nodes.clone()].iter();
    nodes.any(|node| matches!(node.op, Op::Attention(_)))
}

/// A chunk of a prompt.
fn chunk(rows: usize, selected: usize, context: usize) -> ChunkShape {
    ChunkShape { phase: Phase::Prefill, rows, selected, context, prompt: context + rows }
}

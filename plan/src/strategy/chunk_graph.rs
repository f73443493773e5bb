//! Chunks whose linear layers and attention overlap.

use std::sync::Arc;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::roles::Needs;
use super::static_npu::StaticNpu;
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::registry::Parameter;
use crate::route::Route;

/// The chunk-sharing graph of mllm-NPU (arXiv 2407.05858). The static ops between two attentions
/// are one graph on the NPU; embedding, rotary embedding and attention run on the CPU. The prompt is
/// cut into chunks of one size C, so one graph serves every chunk, and the attention of chunk k
/// overlaps the linear layers of chunk k + 1. With n = ⌈S/C⌉ chunks,
/// T ≥ max(n·T_npu(C), Σ_i T_cpu(chunk i)), where chunk i (from 1) attends to i·C keys. Selected
/// rows and decode run on the CPU, or on the GPU if there is no CPU.
#[derive(Clone, Copy, Debug)]
pub struct ChunkGraph {
    /// C, in rows; rounded up to a standard size.
    pub chunk: usize,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl ChunkGraph {
    /// Default rows of a chunk, small enough that the chunks of a prompt of a few hundred rows
    /// overlap.
    pub const CHUNK: usize = 128;
}

impl Default for ChunkGraph {
    fn default() -> ChunkGraph {
        ChunkGraph { chunk: ChunkGraph::CHUNK, order_swap: OrderSwap::default() }
    }
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "chunk-graph",
    "attention of a chunk on the CPU overlaps linear layers of the next chunk on the NPU",
    &[Parameter::new("chunk", "rows of a chunk", ChunkGraph::CHUNK as f64, 1.0..=1e6)],
    |o, p| Arc::new(ChunkGraph { chunk: p.count_or("chunk", o.chunk), order_swap: o.order_swap }),
);

impl Strategy for ChunkGraph {
    fn name(&self) -> &str {
        "chunk-graph"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        let size = StaticNpu::of(self.name(), input).map_or(self.chunk, |s| s.size_for(self.chunk));
        prompt.remaining.min(size.max(1)).min(input.chunk_rows)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let host = Needs { strategy: self.name(), devices: input.devices }.host()?;
        let on = StaticNpu { helper: host, ..StaticNpu::of(self.name(), input)? };
        let size = on.size_for(self.chunk);
        on.route(shape, self.order_swap, &vec![size; shape.rows.div_ceil(size)])
    }
}

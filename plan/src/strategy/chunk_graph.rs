//! Chunks whose linear layers and attention overlap.

use std::sync::Arc;

use super::options::OrderSwap;
use super::roles::Needs;
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, PromptRows, Strategy};
use crate::{PlanError, Route};

/// The chunk-sharing graph of mllm-NPU (S0-2 … S0-13): the static ops between two attentions are
/// one graph on the NPU, embedding, rotary embedding and attention run on the CPU, and the prompt
/// comes in chunks of one size C, so that one graph per run of static ops serves every chunk and
/// chunk k's attention runs beside chunk k + 1's linear layers (S0-28). With ⌈S/C⌉ = n chunks,
/// T ≥ max(n·T_npu(C), Σ_i T_cpu(chunk i)), and chunk i attends to i·C keys (S0-7). Selected rows
/// and decode stay on the CPU (S0-20); where there is no CPU, the GPU takes its place.
#[derive(Clone, Copy, Debug)]
pub struct ChunkGraph {
    /// C, in rows; rounded up to a standard size.
    pub chunk: usize,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl ChunkGraph {
    /// Rows of a chunk, if nothing else is said: small enough that prompts of a few hundred rows
    /// have chunks to overlap.
    pub const CHUNK: usize = 128;
}

impl Default for ChunkGraph {
    fn default() -> ChunkGraph {
        ChunkGraph { chunk: ChunkGraph::CHUNK, order_swap: OrderSwap::default() }
    }
}

impl Strategy for ChunkGraph {
    fn name(&self) -> &str {
        "chunk-graph"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        let size = StaticNpu::of(self.name(), input).map_or(self.chunk, |s| s.size_for(self.chunk));
        prompt.due.min(size.max(1)).min(input.chunk_rows)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let host = Needs { strategy: self.name(), devices: input.devices }.host()?;
        let on = StaticNpu { helper: host, ..StaticNpu::of(self.name(), input)? };
        let size = on.size_for(self.chunk);
        on.route(shape, self.order_swap, &vec![size; shape.rows.div_ceil(size)])
    }
}

//! Prompts in chunks of one size.

use std::sync::Arc;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::options::OrderSwap;
use super::static_npu::StaticNpu;
use crate::chunk::{ChunkShape, PromptRows};
use crate::error::PlanError;
use crate::registry::Parameter;
use crate::route::Route;

/// Static ops on the NPU, in chunks of one fixed size C. Each chunk is padded to C, so one graph
/// serves all chunks: T = ⌈S/C⌉·(T_npu(C) + T_dynamic + T_sync) without overlap. C is rounded up to
/// a standard size. Dynamic ops, selected rows and decode run on the GPU, or on the CPU if there is
/// no GPU. A baseline of HeteroLLM (arXiv 2501.14794).
#[derive(Clone, Copy, Debug)]
pub struct Chunked {
    /// C, in rows.
    pub chunk: usize,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Chunked {
    /// Default rows of a chunk.
    pub const CHUNK: usize = 256;
}

impl Default for Chunked {
    fn default() -> Chunked {
        Chunked { chunk: Chunked::CHUNK, order_swap: OrderSwap::default() }
    }
}

pub(super) const ENTRY: StrategyEntry = builtin(
    "chunked",
    "static ops on the NPU, prompts cut into chunks of one standard size",
    &[Parameter::new("chunk", "rows of a chunk", Chunked::CHUNK as f64, 1.0..=1e6)],
    |o, p| Arc::new(Chunked { chunk: p.count_or("chunk", o.chunk), order_swap: o.order_swap }),
);

impl Strategy for Chunked {
    fn name(&self) -> &str {
        "chunked"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        let size = StaticNpu::of(self.name(), input).map_or(self.chunk, |s| s.size_for(self.chunk));
        prompt.remaining.min(size.max(1)).min(input.chunk_rows)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        let size = on.size_for(self.chunk);
        on.route(shape, self.order_swap, &vec![size; shape.rows.div_ceil(size)])
    }
}

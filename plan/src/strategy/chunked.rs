//! Prompts in chunks of one size.

use std::sync::Arc;

use super::options::OrderSwap;
use super::static_npu::StaticNpu;
use super::{ChunkShape, PlanInput, PromptRows, Strategy};
use crate::{PlanError, Route};

/// Prompts in chunks of one fixed size C, each padded to it, so that one graph serves all
/// (S0-3, S2-47): T = ⌈S/C⌉·(T_npu(C) + T_dynamic + T_sync) without overlap. C is rounded up to a
/// standard size. Dynamic ops, selected rows and decode run on the GPU, or on the CPU where there
/// is no GPU.
#[derive(Clone, Copy, Debug)]
pub struct Chunked {
    /// C, in rows.
    pub chunk: usize,
    /// Operand order on the NPU.
    pub order_swap: OrderSwap,
}

impl Chunked {
    /// Rows of a chunk, if nothing else is said.
    pub const CHUNK: usize = 256;
}

impl Default for Chunked {
    fn default() -> Chunked {
        Chunked { chunk: Chunked::CHUNK, order_swap: OrderSwap::default() }
    }
}

impl Strategy for Chunked {
    fn name(&self) -> &str {
        "chunked"
    }

    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        let size = StaticNpu::of(self.name(), input).map_or(self.chunk, |s| s.size_for(self.chunk));
        prompt.due.min(size.max(1)).min(input.chunk_rows)
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let on = StaticNpu::of(self.name(), input)?;
        let size = on.size_for(self.chunk);
        on.route(shape, self.order_swap, &vec![size; shape.rows.div_ceil(size)])
    }
}

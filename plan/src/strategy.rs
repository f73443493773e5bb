//! Strategies: from the op graph and a chunk's shape to a route.

use std::sync::Arc;

use lapwing_kernels::device::{Batch, DeviceInfo, ModelId};
use lapwing_kernels::graph::Graph;

use super::cost::CostModel;
use super::{PlanError, Route, RouteFor};
use crate::Phase;

mod auto;
mod barrier_per_op;
mod chunk_graph;
mod chunked;
mod cpu_only;
mod cut;
mod gpu_only;
mod hybrid_cut;
mod layer_level;
mod layer_split;
mod multi_sequence_cut;
mod npu_padding;
mod online_prepare;
mod options;
pub(crate) mod order;
mod pipe;
mod registry;
pub(crate) mod roles;
mod row_cut;
mod sequence_cut;
pub mod sizes;
pub(crate) mod stages;
mod static_npu;
mod tensor_level;

pub use auto::{Auto, Explanation, Rated};
pub use barrier_per_op::BarrierPerOp;
pub use chunk_graph::ChunkGraph;
pub use chunked::Chunked;
pub use cpu_only::CpuOnly;
pub use gpu_only::GpuOnly;
pub use hybrid_cut::HybridCut;
pub use layer_level::LayerLevel;
pub use layer_split::LayerSplit;
pub use multi_sequence_cut::MultiSequenceCut;
pub use npu_padding::NpuPadding;
pub use online_prepare::OnlinePrepare;
pub use options::{OrderSwap, Ratio, RatioError, StrategyOptions};
pub use pipe::Pipe;
pub use registry::{Known, all, by_name, known};
pub use row_cut::RowCut;
pub use sequence_cut::SequenceCut;
pub use tensor_level::TensorLevel;

/// What a strategy may look at.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The model.
    pub model: ModelId,
    /// Ops of the model.
    pub graph: &'a Graph,
    /// The engine's devices, by their number.
    pub devices: &'a [DeviceInfo],
    /// Predicted times.
    pub cost: &'a dyn CostModel,
    /// Most prompt rows in a chunk.
    pub chunk_rows: usize,
}

/// Shape of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkShape {
    /// What its rows are.
    pub phase: Phase,
    /// Rows.
    pub rows: usize,
    /// Rows whose logits are wanted.
    pub selected: usize,
    /// Rows before it in the cache (of the longest sequence, if there are several).
    pub context: usize,
    /// Rows of the whole prompt that it is cut from (of all prompts, if there are several); 0 in a
    /// decode step.
    pub prompt: usize,
}

/// How far a prompt is, or several that are cut together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromptRows {
    /// Rows of all of it.
    pub all: usize,
    /// Rows that are left.
    pub due: usize,
}

impl PromptRows {
    /// A prompt that has not begun.
    pub fn new(rows: usize) -> PromptRows {
        PromptRows { all: rows, due: rows }
    }
}

impl PlanInput<'_> {
    /// What a route for that shape is checked against.
    pub fn route_for(&self, shape: &ChunkShape) -> RouteFor<'_> {
        let ChunkShape { rows, selected, .. } = *shape;
        RouteFor { model: self.model, graph: self.graph, devices: self.devices, rows, selected }
    }
}

impl ChunkShape {
    /// The shape that a route is asked for: contexts count in powers of two, since a route is as
    /// good a little further on.
    pub fn asked(&self) -> ChunkShape {
        let context = if self.context == 0 { 0 } else { self.context.next_power_of_two() };
        ChunkShape { context, ..*self }
    }

    /// A batch of that shape, to ask a cost model about: one sequence, its last rows selected.
    pub fn batch(&self) -> Batch {
        let mut batch = Batch::default();
        let selected = self.rows - self.selected.min(self.rows)..self.rows;
        batch.push(&vec![0; self.rows], self.context, Vec::new(), selected);
        batch
    }
}

/// Decides which device runs which ops, and how prompts are cut into chunks.
///
/// A strategy is a function of its input: routes are computed once for a shape and kept.
pub trait Strategy: Send + Sync {
    /// Name on the command line.
    fn name(&self) -> &str;

    /// Rows of the next chunk of a prompt: at least 1, at most those that are due and
    /// [`PlanInput::chunk_rows`].
    fn chunk_rows(&self, input: &PlanInput<'_>, prompt: PromptRows) -> usize {
        prompt.due.min(input.chunk_rows)
    }

    /// The route of a chunk.
    ///
    /// # Errors
    /// [`PlanError`] when no route fits the devices.
    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError>;
}

//! Plans: strategies, and what they are made of. With these a program brings its own
//! ([`EngineBuilder::own_strategy`]); `examples/custom_strategy.rs` shows how.
//!
//! [`EngineBuilder::own_strategy`]: crate::EngineBuilder::own_strategy

pub use lapwing_kernels::device::{Batch, DeviceInfo, DeviceKind, GraphKey, Prepare};
pub use lapwing_kernels::graph::{Graph, Node, ValueId};
pub use lapwing_kernels::op::Op;
pub use lapwing_kernels::part::{OperandOrder, Part, Share};
pub use lapwing_plan::Phase;
pub use lapwing_plan::blocks::{Block, BlockKind, blocks};
pub use lapwing_plan::cost::CostModel;
pub use lapwing_plan::strategy::{
    ChunkShape, OrderSwap, PlanInput, PromptRows, Ratio, RatioError, Strategy, StrategyEntry,
    StrategyOptions,
};
pub use lapwing_plan::time::{Crossing, Job, TimeModel};
pub use lapwing_plan::{
    DeviceId, Flow, PlanError, Route, RouteFor, Stage, StagePart, device_of, strategy,
};

/// The strategies that come with Lapwing, the simplest first.
pub fn strategies() -> &'static [StrategyEntry] {
    strategy::registry()
}

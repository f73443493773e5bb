//! Strategies and plans. A program uses these types to write its own strategy
//! and gives it a name ([`Strategies::with`], [`EngineBuilder::strategies`]);
//! `examples/custom_strategy.rs` shows how.
//!
//! [`EngineBuilder::strategies`]: crate::EngineBuilder::strategies

pub use lapwing_kernels::cost::Cost;
pub use lapwing_kernels::device::{
    Batch, BatchSpan, DeviceInfo, DeviceKind, GraphBudget, GraphKey, MemoryDomain, ModelId, OpSet,
    Prepare,
};
pub use lapwing_kernels::graph::{Graph, NewNode, Node, RowSet, ValueId, ValueSpec, WeightSpec};
pub use lapwing_kernels::kv::{KvLayout, KvPageLayout, PageId};
pub use lapwing_kernels::op::{
    Activation, AttentionOp, Op, RopePairs, RopeScaling, RopeSpec, TableRow, WeightId,
};
pub use lapwing_kernels::part::{OperandOrder, Part, Share};
pub use lapwing_plan::Phase;
pub use lapwing_plan::blocks::{Block, BlockKind, blocks};
pub use lapwing_plan::bound::{Bound, RequestWork, lower_bound, work_of_prompts};
pub use lapwing_plan::cost::{CostModel, Modelled};
pub use lapwing_plan::moment::{RatedCandidate, RatedMoment, RatedStep, Scene, SceneError};
pub use lapwing_plan::predict::Prediction;
pub use lapwing_plan::registry::{ChoiceError, Entry, NameError, Parameter, Parameters, choices};
pub use lapwing_plan::solve::{Candidate, Cut, Solution};
pub use lapwing_plan::strategy::{
    ChunkShape, MomentError, MomentRoutes, OrderSwap, PlanInput, PromptRows, Ratio, RatioError,
    RouteBuilder, Strategies, Strategy, StrategyEntry, StrategyOptions,
};
pub use lapwing_plan::time::{Crossing, FixedRate, Job, NodeLoad, TimeModel};
pub use lapwing_plan::work::NodeWork;
pub use lapwing_plan::{
    DeviceId, Flow, PlanError, Route, RouteFor, Stage, StagePart, StageWork, device_of, strategy,
};

pub use crate::engine::own_cost::CostSubject;

/// The built-in strategies, the simplest first.
pub fn strategies() -> &'static [StrategyEntry] {
    strategy::registry()
}

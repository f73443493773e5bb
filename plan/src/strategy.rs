//! Strategies: each turns the graph and the shape of a chunk into a route.
//!
//! Strategies that divide a stage between devices use a row cut or a sequence cut; the file
//! `strategy/cut.rs` explains both with a drawing. One divides experts: `strategy/expert_cut.rs`.

mod auto;
mod auto_place;
mod barrier_per_op;
mod chunk_graph;
mod chunked;
mod cpu_only;
mod cut;
mod entry;
mod expert_cut;
mod gpu_only;
mod guarded;
mod hybrid_cut;
pub(crate) mod interface;
mod layer_level;
mod layer_split;
mod meanwhile;
mod multi_sequence_cut;
mod npu_padding;
mod one_device;
mod online_prepare;
pub(crate) mod options;
mod order;
mod pipe;
mod proportion;
mod registry;
mod roles;
pub(crate) mod route_builder;
mod row_cut;
mod sequence_cut;
pub mod sizes;
mod static_npu;
mod strategies;
mod tensor_level;

pub use crate::chunk::{ChunkShape, PromptRows};
pub use auto::{Auto, Explanation, Mixed, Rated};
pub use auto_place::AutoPlace;
pub use barrier_per_op::BarrierPerOp;
pub use chunk_graph::ChunkGraph;
pub use chunked::Chunked;
pub use cpu_only::CpuOnly;
pub use entry::{Maker, StrategyEntry};
pub use expert_cut::ExpertCut;
pub use gpu_only::GpuOnly;
pub use guarded::Guarded;
pub use hybrid_cut::HybridCut;
pub use interface::{PlanInput, Strategy};
pub use layer_level::LayerLevel;
pub use layer_split::{GpuLayers, LayerSplit, LayersOn};
pub use meanwhile::Meanwhile;
pub use multi_sequence_cut::MultiSequenceCut;
pub use npu_padding::NpuPadding;
pub use one_device::OneDevice;
pub use online_prepare::OnlinePrepare;
pub use options::{MomentError, MomentRoutes, OrderSwap, Ratio, RatioError, StrategyOptions};
pub use pipe::Pipe;
pub use registry::{all, by_name, registry};
pub use route_builder::RouteBuilder;
pub use row_cut::RowCut;
pub use sequence_cut::SequenceCut;
pub use strategies::Strategies;
pub use tensor_level::TensorLevel;

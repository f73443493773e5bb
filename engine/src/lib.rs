//! The engine: a model, devices and settings in, streams of tokens out. The crate `lapwing` exports all of it, and is what a
//! program embeds.

pub mod chat;
pub mod config;
pub mod devices;
pub mod draft;
pub mod drivers;
mod embedding;
pub mod energy;
mod engine;
pub mod error;
pub mod fit;
pub mod hugging_face;
pub mod kv_events;
#[cfg(feature = "fetch")]
pub mod models;
mod packed;
#[cfg(feature = "structured")]
pub mod parts;
mod placement;
pub mod plan;
pub mod policy;
mod prefix_file;
pub mod prepare;
pub mod profile;
pub mod ranges;
mod request;
mod rerank;
pub mod routing;
mod span;
mod stop;
mod stream;
#[cfg(feature = "structured")]
pub mod structured;
pub mod tokenizer;
#[cfg(feature = "structured")]
pub mod tools;
#[cfg(feature = "schemars")]
mod typed;
pub mod weights;

pub use chat::Message;
pub use config::WaitLink;
pub use embedding::{EmbedRequest, Embedding, Pooling};
pub use engine::{BesideStream, Engine, EngineBuilder, Module, PromptGraphs};
pub use error::{Error, ErrorKind};
/// The trait of a [`TokenStream`].
pub use futures_core::Stream;
pub use hugging_face::export_hf;
pub use lapwing_actors::RunError;
pub use lapwing_actors::message::Shutdown;
pub use lapwing_actors::sample::{SamplingParams, Scored, TokenLogprob};
pub use lapwing_actors::scheduler::Reserve;
pub use lapwing_actors::stats::{ClientStats, EngineStats, Latencies, RunningRequest, Work};
pub use lapwing_kernels::cpu::{Activations, BeyondMemory, PackedMemory, PackedUse};
pub use lapwing_kernels::device::SlotStats;
pub use lapwing_kernels::formats::DType;
pub use lapwing_kernels::kv::{KvCopies, KvDtype, KvHeads, KvSharing, KvSharingError};
pub use lapwing_kernels::mask::{AttentionRule, BlockList, Mask, MaskError};
pub use lapwing_kernels::model::{Architecture, LayerAttention, LayerHeads, ModelConfig};
pub use lapwing_kernels::requant::{Group, KeptReason, KeptTensor, Requant, Requantized};
/// Recording a run, and analysing what was recorded.
pub use lapwing_traces as traces;
pub use lapwing_traces::RequestTimes;
pub use lapwing_traces::event::WaitMode;
pub use packed::PackedWeights;
#[cfg(feature = "structured")]
pub use parts::{Answer, Part};
pub use placement::{PartPlacement, Placement, StageKind, StagePlacement, TransferPlacement};
#[cfg(feature = "structured")]
pub use request::Thoughts;
pub use request::{Prompt, PromptEnd, Request};
pub use rerank::{RankedDocument, Ranking, RerankRequest};
/// Schemas of types, for [`Engine::generate_as`].
#[cfg(feature = "schemars")]
pub use schemars;
/// JSON values, as in [`ChatOptions::variables`](chat::ChatOptions::variables).
pub use serde_json;
pub use stream::{
    BlockingTokens, EndReason, PromptProgress, Summary, Token, TokenEvent, TokenStream,
};
#[cfg(feature = "structured")]
pub use tools::{Tool, ToolCall, ToolChoice, Tools};
#[cfg(feature = "schemars")]
pub use typed::{Typed, TypedError};

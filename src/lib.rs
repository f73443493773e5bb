#![doc = include_str!("../README.md")]

/// The code of `docs/strategies.md`, compiled and run with the documentation tests.
#[cfg(all(doctest, feature = "simulate"))]
#[doc = include_str!("../docs/strategies.md")]
mod strategies_guide {}

#[cfg(feature = "fetch")]
pub use lapwing_engine::models;
pub use lapwing_engine::{
    Activations, Architecture, AttentionRule, BesideStream, BlockList, BlockingTokens, ClientStats,
    DType, EmbedRequest, Embedding, EndReason, Engine, EngineBuilder, EngineStats, Error,
    ErrorKind, Group, KeptReason, KeptTensor, KvCopies, KvDtype, KvSharing, KvSharingError,
    Latencies, LayerAttention, Mask, MaskError, Message, ModelConfig, Module, PackedWeights,
    PartPlacement, Placement, Pooling, Prompt, PromptEnd, PromptGraphs, PromptProgress, Requant,
    Requantized, Request, RequestTimes, RunError, SamplingParams, Scored, Shutdown, SlotStats,
    StageKind, StagePlacement, Stream, Summary, Token, TokenEvent, TokenLogprob, TokenStream,
    TransferPlacement, WaitLink, WaitMode, Work, chat, devices, draft, drivers, energy, error,
    plan, policy, prepare, profile, ranges, serde_json, tokenizer, traces, weights,
};
#[cfg(feature = "structured")]
pub use lapwing_engine::{
    Answer, Part, Thoughts, Tool, ToolCall, ToolChoice, Tools, parts, structured, tools,
};
#[cfg(feature = "schemars")]
pub use lapwing_engine::{Typed, TypedError, schemars};
#[cfg(feature = "compare")]
pub use lapwing_lab::compare;
#[cfg(feature = "simulate")]
pub use lapwing_lab::{load, simulate};
#[cfg(feature = "serve")]
pub use lapwing_serve as serve;

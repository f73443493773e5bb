// The first definition of a link counts: in the documentation, links of the README lead to pages of the guide.
#![cfg_attr(
    all(
        doc,
        feature = "compare",
        feature = "fetch",
        feature = "schemars",
        feature = "serve",
        feature = "simulate",
        feature = "structured"
    ),
    doc = include_str!("guide/links.md"),
    doc = include_str!("guide/pictures/timeline.md")
)]
#![doc = include_str!("../README.md")]

#[cfg(all(
    doc,
    feature = "compare",
    feature = "fetch",
    feature = "schemars",
    feature = "serve",
    feature = "simulate",
    feature = "structured"
))]
pub mod guide;

#[cfg(feature = "fetch")]
pub use lapwing_engine::models;
pub use lapwing_engine::{
    Activations, Architecture, AttentionRule, BesideStream, BeyondMemory, BlockList,
    BlockingTokens, ClientStats, DType, EmbedRequest, Embedding, EndReason, Engine, EngineBuilder,
    EngineStats, Error, ErrorKind, Group, KeptReason, KeptTensor, KvCopies, KvDtype, KvHeads,
    KvSharing, KvSharingError, Latencies, LayerAttention, LayerHeads, Mask, MaskError, Message,
    ModelConfig, Module, PackedMemory, PackedUse, PackedWeights, PartPlacement, Placement, Pooling,
    Prompt, PromptEnd, PromptGraphs, PromptProgress, RankedDocument, Ranking, Requant, Requantized,
    Request, RequestTimes, RerankRequest, Reserve, RunError, RunningRequest, SamplingParams,
    Scored, Shutdown, SlotStats, StageKind, StagePlacement, Stream, Summary, Token, TokenEvent,
    TokenLogprob, TokenStream, TransferPlacement, WaitLink, WaitMode, Work, chat, devices, draft,
    drivers, energy, error, export_hf, fit, hugging_face, kv_events, plan, policy, prepare,
    profile, ranges, routing, serde_json, tokenizer, traces, weights,
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
pub use lapwing_lab::{load, simulate, study};
#[cfg(feature = "serve")]
pub use lapwing_serve as serve;

//! Queue policies: the order in which requests are admitted, get prompt rows into a chunk, and keep
//! their KV pages. With these a program brings its own ([`EngineBuilder::policy`]);
//! `examples/custom_policy.rs` shows how.
//!
//! `docs/policies.md` describes the policies that come with Lapwing.
//!
//! [`EngineBuilder::policy`]: crate::EngineBuilder::policy

pub use lapwing_actors::policy::{
    Candidate, Charge, ClientId, DfsWeight, Dlpm, Edf, End, Fcfs, FcfsOvertaking, Hrrn, Learned,
    Limited, Lpm, MakePolicy, Mlfq, NoPrefixCache, OnlineRanker, Oracle, PolicyChoice, PolicyEntry,
    Preble, PrefixView, QueuePolicy, Rank, RequestLimits, Scored, Scorer, Shortest, Urgency, Vtc,
    by_name, known,
};
pub use lapwing_actors::sequence::SequenceId;
pub use lapwing_plan::registry::{ChoiceError, Parameter, Parameters};
pub use lapwing_traces::Nanos;

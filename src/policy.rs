//! Queue policies: the order in which requests are admitted, get prompt rows into a chunk, and keep
//! their KV pages. With these a program brings its own ([`EngineBuilder::policy`]);
//! `examples/custom_policy.rs` shows how.
//!
//! The engine has no prefix cache yet: the [`PrefixView`] that policies get is a [`NoPrefixCache`],
//! which matches nothing.
//!
//! [`EngineBuilder::policy`]: crate::EngineBuilder::policy

pub use lapwing_actors::policy::{
    Candidate, Charge, ClientId, End, Fcfs, Known, NoPrefixCache, PolicyChoice, PrefixView,
    QueuePolicy, Rank, UnknownPolicy, by_name, known,
};
pub use lapwing_actors::sequence::SequenceId;
pub use lapwing_traces::Nanos;

//! Queue policies: the order in which requests are admitted, get prompt rows into a chunk, and keep
//! their KV pages when pages run out.
//!
//! A policy gives every request a [`Rank`], and the scheduler uses it in all three places, live and in
//! virtual time alike. [`Fcfs`] is the default; [`known`] lists the policies that have a name, and a
//! [`PolicyChoice`] is a name or a policy of one's own.

mod candidate;
mod choice;
mod client;
mod fcfs;
mod prefix;
mod queue_policy;
mod rank;
mod registry;

pub use candidate::{Candidate, Charge, End};
pub use choice::{PolicyChoice, UnknownPolicy};
pub use client::ClientId;
pub use fcfs::Fcfs;
pub use prefix::{NoPrefixCache, PrefixView};
pub use queue_policy::QueuePolicy;
pub use rank::Rank;
pub use registry::{Known, by_name, known};

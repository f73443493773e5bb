//! Queue policies: the order in which requests are admitted, get prompt rows into a chunk, and keep
//! their KV pages when pages run out.
//!
//! A policy gives every request a [`Rank`], and the scheduler uses it in all three places, live and in
//! virtual time alike. [`Fcfs`] is the default; [`known`] lists the policies that have a name, and a
//! [`PolicyChoice`] is a name or a policy of one's own.

mod candidate;
mod choice;
mod client;
mod dfs_weight;
mod dlpm;
mod edf;
mod entry;
mod fcfs;
mod hrrn;
mod learned;
mod limited;
mod lpm;
mod mlfq;
mod preble;
mod prefix;
mod queue_policy;
mod rank;
mod registry;
mod shortest;
#[cfg(test)]
mod tests;
mod vtc;

pub use candidate::{Candidate, Charge, End, Urgency};
pub use choice::PolicyChoice;
pub use client::ClientId;
pub use dfs_weight::DfsWeight;
pub use dlpm::Dlpm;
pub use edf::Edf;
pub use entry::{MakePolicy, PolicyEntry};
pub use fcfs::{Fcfs, FcfsOvertaking};
pub use hrrn::Hrrn;
pub use learned::{Learned, OnlineRanker, Oracle, Scored, Scorer};
pub use limited::{Limited, RequestLimits};
pub use lpm::Lpm;
pub use mlfq::Mlfq;
pub use preble::Preble;
pub use prefix::{NoPrefixCache, PrefixView};
pub use queue_policy::QueuePolicy;
pub use rank::Rank;
pub use registry::{by_name, known};
pub use shortest::Shortest;
pub use vtc::Vtc;

//! Dynamo's HTTP frontend with Lapwing's routing policies: the objects by which `lapwing load --workers` routes in virtual time choose the
//! workers of a cluster. docs/cluster.md describes it.
//!
//! Dynamo's plug-ins of a router ([`dynamo_kv_router::plugins`]) are told how long a prompt is, and not which tokens it has, nor whose it
//! is, and a request has no name by which its end could be told from those of others: a policy that keeps a tree of prompts, or credit
//! of clients, cannot be one. So the policy decides one step before Dynamo's router, where token ids are, and leaves it one worker.

mod failed;
mod models;
mod options;
mod routed;
mod router;
mod serve;
mod workers;

pub use options::{Choice, Options, StartError};
pub use router::{Ask, Member, Router, Sent};

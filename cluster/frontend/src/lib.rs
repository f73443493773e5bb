//! Dynamo's HTTP frontend with Lapwing's routing policies: the objects by which `lapwing load --workers` routes in virtual time choose the
//! workers of a cluster. docs/cluster.md describes it.
//!
//! Dynamo's plug-ins of a router ([`dynamo_kv_router::plugins`]) get the length of a prompt, but neither its tokens, nor its client, nor an
//! id of the request. A policy that keeps a tree of prompts, or the credit of clients, needs all three. So the policy decides one step
//! before Dynamo's router, where token ids are known, and leaves it one worker.

mod failed;
mod models;
mod options;
mod routed;
mod router;
mod serve;
mod workers;

pub use options::{Choice, Options, StartError};
pub use router::{Ask, Member, Router, Sent};

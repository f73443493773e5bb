//! Routing: which of several workers serves a request.
//!
//! A [`RoutePolicy`] is a pure state machine, as a queue policy is: it is given the prompt of a request, its client and what is known of
//! the workers, and names a worker; it is told of first tokens, ends and evictions. Live routers and runs in virtual time use the
//! same objects. [`known`] lists the policies that have a name, and a [`RouteChoice`] is a name or a policy of one's own.

mod blocks;
mod cache_aware;
mod choice;
mod d2lpm;
mod entry;
mod least_load;
mod makespan;
mod preble;
mod registry;
mod round_robin;
mod route_policy;
#[cfg(test)]
mod tests;
mod tree;
mod two_choices;
mod worker;
mod workers;

pub use blocks::{BLOCK_TOKENS, blocks};
pub use cache_aware::CacheAware;
pub use choice::RouteChoice;
pub use d2lpm::D2lpm;
pub use entry::{MakeRoute, RouteEntry};
pub use least_load::LeastLoad;
pub use makespan::MinMakespan;
pub use preble::PrebleE2;
pub use registry::{by_name, known};
pub use round_robin::RoundRobin;
pub use route_policy::{Incoming, RoutePolicy, SentRequest};
pub use tree::{BlockTree, Held, Step};
pub use two_choices::TwoChoices;
pub use worker::{PrefillTime, WorkerId, WorkerLoad, WorkerSpec};
pub use workers::Workers;

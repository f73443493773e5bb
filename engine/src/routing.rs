//! Routing policies: which of several workers serves a request. With these a program brings its own, to be compared in virtual time
//! (`lapwing::load::Workers`) or used in a router.
//!
//! `docs/workers.md` describes the policies that come with Lapwing.

pub use lapwing_actors::routing::{
    BLOCK_TOKENS, BlockTree, CacheAware, D2lpm, Held, Incoming, LeastLoad, MakeRoute, MinMakespan,
    PrebleE2, PrefillTime, RoundRobin, RouteChoice, RouteEntry, RoutePolicy, SentRequest, Step,
    TwoChoices, WorkerId, WorkerLoad, WorkerSpec, Workers, blocks, by_name, known,
};
pub use lapwing_traces::Nanos;

//! Seeds of requests that name none.

pub use lapwing_actors::sample::SamplingParams;
use std::hash::{BuildHasher, RandomState};

/// A seed that differs from call to call, for requests that name none.
pub(crate) fn random_seed() -> u64 {
    // Below 2^53, so that a seed printed as JSON is read back exactly.
    RandomState::new().hash_one("seed") >> 11
}

//! How tokens are chosen, as a caller says it.

pub use lapwing_actors::sample::SamplingParams;
use std::hash::{BuildHasher, RandomState};

/// A seed that differs from call to call, for requests that name none.
pub(crate) fn random_seed() -> u64 {
    // Kept below 2^53, so that a seed that is printed in JSON is read back exactly.
    RandomState::new().hash_one("seed") >> 11
}

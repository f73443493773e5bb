//! Naive oracles.

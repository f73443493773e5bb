//! How much of a prompt the KV cache holds already.

use crate::sequence::SequenceId;

/// A view of the waiting requests' prompts, and of the prefix cache: KV rows of earlier requests that begin with
/// the same tokens.
pub trait PrefixView {
    /// Tokens at the beginning of a waiting request's prompt whose keys and values are cached, so that
    /// they need not be computed; 0 for others.
    fn matched(&self, sequence: SequenceId) -> usize;

    /// Tokens of a waiting request: its prompt, and after a preemption the generated ones; none for others.
    fn tokens(&self, sequence: SequenceId) -> &[u32] {
        let _ = sequence;
        &[]
    }
}

/// The view of running requests, and where there is no prefix cache: nothing matches.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPrefixCache;

impl PrefixView for NoPrefixCache {
    fn matched(&self, _sequence: SequenceId) -> usize {
        0
    }
}

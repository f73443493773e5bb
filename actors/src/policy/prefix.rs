//! How much of a prompt the KV cache holds already.

use crate::sequence::SequenceId;

/// A view of the prefix cache: KV rows of earlier requests that begin with the same tokens.
pub trait PrefixView {
    /// Tokens at the beginning of a request's prompt whose keys and values are cached, so that
    /// they need not be computed.
    fn matched(&self, sequence: SequenceId) -> usize;
}

/// The view where there is no prefix cache: nothing matches. The engine has no prefix cache yet, so
/// this is what the scheduler gives to every policy today, and a policy that ranks by matched tokens
/// sees equal ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPrefixCache;

impl PrefixView for NoPrefixCache {
    fn matched(&self, _sequence: SequenceId) -> usize {
        0
    }
}

//! Queue policies: which waiting request enters next.

use lapwing_traces::Nanos;

use crate::sequence::SequenceId;

mod fcfs;

pub use fcfs::Fcfs;

/// A waiting request, as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number, ascending in order of arrival.
    pub sequence: SequenceId,
    /// Tokens to compute before the next token.
    pub tokens: usize,
    /// Arrival.
    pub submitted: Nanos,
}

/// Picks among waiting requests.
pub trait QueuePolicy: Send {
    /// Name on the command line.
    fn name(&self) -> &str;

    /// Index of the request that enters next; `None` when none should enter now.
    fn pick(&self, waiting: &[Waiting], now: Nanos) -> Option<usize>;
}

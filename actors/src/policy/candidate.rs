//! A request as a policy sees it, and the events that policies receive.

use std::time::Duration;

use lapwing_traces::Nanos;

use super::client::ClientId;
use crate::sequence::SequenceId;

/// A request that waits or runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Number of the request, ascending in order of arrival.
    pub sequence: SequenceId,
    /// Client that sent it.
    pub client: &'a ClientId,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens generated so far; a preemption loses none of them.
    pub generated_tokens: usize,
    /// Most tokens that it may generate, those already generated included; 0 for a prompt that is
    /// scored.
    pub tokens_max: usize,
    /// Rows to compute before its next token that are not sent to a device yet: the prompt at first,
    /// prompt and generated tokens after a preemption, 1 in a step of generation.
    pub to_compute: usize,
    /// Time of arrival.
    pub submitted: Nanos,
    /// How urgent it is.
    pub urgency: Urgency,
    /// Whether it runs; otherwise it waits.
    pub running: bool,
}

/// How urgent a request is to its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Urgency {
    /// The greater number is more urgent. Requests with a priority below 0 are background work.
    pub priority: i32,
    /// Time after its arrival at which its last token is due.
    pub deadline: Option<Duration>,
    /// Longest time that it is to wait for a token after the last one; `None` for the engine's target.
    pub token_gap: Option<Duration>,
}

impl Urgency {
    /// The urgency of background work, which gives way to other requests.
    pub const BACKGROUND: Urgency = Urgency { priority: -1, deadline: None, token_gap: None };

    /// Whether it is background work: its priority is below 0.
    pub fn is_background(&self) -> bool {
        self.priority < 0
    }
}

/// Work that was done for a request, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Prompt rows, the first time that they are sent to a device. Rows that come from
    /// a prefix cache are not computed and not charged.
    pub prompt_rows: usize,
    /// Rows of the prompt or of generated tokens that a preemption lost, sent again.
    pub recomputed_rows: usize,
    /// Tokens that were generated.
    pub generated_tokens: usize,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has all of its tokens or scores.
    Completed,
    /// It failed: its caller gets an error.
    Failed,
    /// Its caller dropped the stream.
    Cancelled,
}

//! Ends of requests.

use std::fmt;

/// Why a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model generated a stop token.
    Stop,
    /// The token limit of the request or of the context is reached.
    Length,
    /// Every prompt token is scored.
    Scored,
    /// The hidden states of every requested row are computed.
    Embedded,
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Scored => "scored",
            FinishReason::Embedded => "embedded",
        })
    }
}

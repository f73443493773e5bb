//! How a generation has ended.

use lapwing_actors::draft::DraftStats;
use lapwing_actors::message::FinishReason;
use lapwing_traces::RequestTimes;

#[cfg(feature = "structured")]
use crate::parts::Answer;
#[cfg(feature = "structured")]
use crate::tools::ToolCall;

/// Result of a finished generation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Why it ended.
    pub reason: EndReason,
    /// Times of its milestones.
    pub times: RequestTimes,
    /// Seed of the sampler: [`Request::seed`](crate::Request::seed) with this value repeats the tokens.
    pub seed: u64,
    /// What the drafts of speculative decoding did; `None` without a drafter, and after a stop text, which
    /// ends the stream before the engine's counts arrive.
    pub drafts: Option<DraftStats>,
    /// The whole answer by its parts, if the request has it divided ([`Request::divided`](crate::Request::divided)).
    #[cfg(feature = "structured")]
    pub answer: Option<Answer>,
}

impl Summary {
    /// Tokens per second of generation, from the first token to the last; 0 for a single token.
    pub fn tokens_per_second(&self) -> f64 {
        self.times.decode_tokens_per_second()
    }

    /// The calls of functions in the answer; none without [`Request::tools`](crate::Request::tools).
    #[cfg(feature = "structured")]
    pub fn calls(&self) -> &[ToolCall] {
        self.answer.as_ref().map(|answer| &*answer.calls).unwrap_or_default()
    }

    /// Prompt tokens per second, from admission to the first token.
    pub fn prompt_tokens_per_second(&self) -> f64 {
        self.times.prefill_tokens_per_second()
    }
}

/// Why a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The model chose an end token.
    EndToken,
    /// This stop text appeared.
    StopText(String),
    /// It reached the requested number of tokens, or filled the context.
    Length,
}

impl EndReason {
    pub(super) fn of(reason: FinishReason) -> EndReason {
        match reason {
            FinishReason::Stop => EndReason::EndToken,
            FinishReason::Length | FinishReason::Scored | FinishReason::Embedded => {
                EndReason::Length
            }
        }
    }

    /// Name in JSON: `stop` or `length`.
    pub fn name(&self) -> &'static str {
        match self {
            EndReason::EndToken | EndReason::StopText(_) => "stop",
            EndReason::Length => "length",
        }
    }
}

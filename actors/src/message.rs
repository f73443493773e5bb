//! All messages between actors. Every message is one-way; only [`Progress`] and [`GraphsPrepared`]
//! flow back to the scheduler.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceError, GraphKey, ModelId, Prepared};
use lapwing_plan::DeviceId;
use lapwing_traces::RequestTimes;

pub use crate::chunk::{Chunk, Delivery, OutputAction, Part, PartDone, PartLost, SequenceRows};
use crate::draft::{DraftStats, Drafts, StepTokens};
use crate::error::RunError;
pub use crate::finish::FinishReason;
use crate::policy::{ClientId, Urgency};
use crate::prefix::PrefixUse;
use crate::sample::{Sampled, Sampler, Scored};
use crate::sequence::{AdmissionPermit, SequenceId};
pub use crate::traced::{TraceContext, Traced};

/// Caller → scheduler: a request.
#[derive(Debug)]
pub struct Submit {
    /// The model.
    pub model: ModelId,
    /// Token ids of the prompt.
    pub ids: Vec<u32>,
    /// Generation, scoring or embedding.
    pub task: Task,
    /// Client that sends it, for the queue policy.
    pub client: ClientId,
    /// How urgent it is, for the queue policy.
    pub urgency: Urgency,
    /// How it uses the prefix cache.
    pub prefix: PrefixUse,
    /// The caller's stream.
    pub sink: Arc<dyn Sink>,
    /// Admission permit; released when the request ends.
    pub admission: AdmissionPermit,
    /// Its span for subscribers of `tracing`; none in virtual time. A field `id` gets its number.
    pub trace: tracing::Span,
}

/// The work of a request.
#[derive(Debug)]
pub enum Task {
    /// Generate new tokens.
    Generate(Box<Generate>),
    /// Compute the log-probability of each prompt token from position `from` (at least 1) on, given
    /// the tokens before it.
    Score {
        /// First position to score.
        from: usize,
        /// How many of the most likely tokens to report at each position.
        top: usize,
    },
    /// Compute the hidden states of these prompt rows after the final norm. Rows after them are not
    /// computed; the prompt before them is.
    Embed {
        /// Positions.
        rows: Range<usize>,
    },
}

/// State and limits of a generation.
#[derive(Debug)]
pub struct Generate {
    /// Samples tokens.
    pub sampler: Sampler,
    /// Token ids that end the sequence; they are reported but carry no text.
    pub stop_ids: Arc<[u32]>,
    /// Maximum number of tokens to generate.
    pub tokens_max: usize,
    /// Proposes draft tokens to verify; `None` without speculative decoding.
    pub drafts: Option<Box<Drafts>>,
}

/// Scheduler → preparation lane: prepare static graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareGraphs {
    /// The device.
    pub device: DeviceId,
    /// Graphs to prepare for a chunk.
    pub keys: Vec<GraphKey>,
    /// Graphs that must not be evicted, such as those of chunks in flight.
    pub keep: Vec<GraphKey>,
}

/// Preparation lane → scheduler: the graphs are ready, or could not be prepared.
#[derive(Debug)]
pub struct GraphsPrepared {
    /// The request.
    pub asked: PrepareGraphs,
    /// The prepared and evicted graphs, or the failure.
    pub result: Result<Prepared, DeviceError>,
}

impl GraphsPrepared {
    /// The answer for a device that has no preparation lane.
    pub fn without_lane(asked: PrepareGraphs) -> GraphsPrepared {
        let error = DeviceError::Unsupported {
            device: format!("number {}", asked.device.0),
            what: "prepared graphs, which the plan requires".to_owned(),
        };
        GraphsPrepared { asked, result: Err(error) }
    }
}

/// Last worker → scheduler: a chunk has ended. Its permit and KV leases are already released.
#[derive(Debug)]
pub struct Progress {
    /// Number of the chunk.
    pub chunk: u64,
    /// The outcome of each of its sequences.
    pub sequences: Vec<SequenceProgress>,
}

/// The outcome of a sequence's rows in a chunk.
#[derive(Debug)]
pub struct SequenceProgress {
    /// The sequence.
    pub sequence: SequenceId,
    /// Epoch in which the rows were dispatched.
    pub epoch: u64,
    /// Number of rows.
    pub rows: usize,
    /// Their result.
    pub outcome: Outcome,
    /// Hidden states of those that are computed and whose tokens are not rejected, if another model is given them.
    pub hidden: Option<HiddenRows>,
}

/// Hidden states of consecutive rows of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenRows {
    /// Position of the first row.
    pub start: usize,
    /// Values of a row.
    pub width: usize,
    /// The rows, side by side.
    pub values: Vec<f32>,
}

/// The result of a sequence's rows.
#[derive(Debug)]
pub enum Outcome {
    /// Their keys and values are in the KV cache.
    Computed,
    /// They are in the KV cache, and these tokens were sampled; the sampling state returns with them, unless the next
    /// pass of the sequence has got it.
    Sampled(StepTokens, Option<Box<Generate>>),
    /// They are in the KV cache, and this many prompt tokens were scored.
    Scored(usize),
    /// They are in the KV cache, and the hidden states of this many of them were sent.
    Embedded(usize),
    /// A roll-back has made them stale. Holds the sampling state if the chunk carried it.
    Stale(Option<Box<Generate>>),
    /// The request was cancelled, or failed in another chunk.
    Abandoned,
    /// They could not be computed.
    Lost(RunError),
}

impl Outcome {
    /// Whether the rows were computed, and not dropped on the way.
    pub fn is_computed(&self) -> bool {
        !matches!(self, Outcome::Stale(_) | Outcome::Abandoned | Outcome::Lost(_))
    }
}

/// An event of a request's stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// More rows of the prompt are computed. Only a [`Sink`] that wants it gets this event.
    Prompt(PromptProgress),
    /// A generated token.
    Token(Sampled),
    /// The next prompt tokens and their log-probabilities.
    Scores(Vec<Scored>),
    /// Hidden states of the next prompt rows, `[rows, width]`.
    Hidden(Vec<f32>),
    /// The request has ended; no event follows.
    Finished(Box<Finished>),
    /// The request has failed; no event follows.
    Failed(RunError),
}

/// How far an admitted request's prompt is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptProgress {
    /// Tokens of the prompt.
    pub tokens: usize,
    /// Those that the prefix cache had.
    pub cached: usize,
    /// Those whose rows are computed, with the cached ones.
    pub computed: usize,
    /// Time since the request was admitted.
    pub elapsed: Duration,
}

/// An event for a caller.
#[derive(Debug)]
pub struct Emission {
    /// The sequence of the event.
    pub sequence: SequenceId,
    /// The caller's end of the stream.
    pub sink: Arc<dyn Sink>,
    /// The event.
    pub event: StreamEvent,
}

/// End of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Reason.
    pub reason: FinishReason,
    /// Times of its milestones.
    pub times: RequestTimes,
    /// What its drafts did; `None` without speculative decoding.
    pub drafts: Option<DraftStats>,
}

/// The sending end of a caller's stream. Sending never blocks.
pub trait Sink: Send + Sync + fmt::Debug {
    /// Sends an event; it is lost if the caller has dropped the stream.
    fn send(&self, event: Traced<StreamEvent>);

    /// Whether the caller has dropped its stream, which cancels the request.
    fn is_closed(&self) -> bool;

    /// Whether the caller may drop its stream, always the same. The scheduler does not look for that if the caller does not.
    fn may_close(&self) -> bool {
        true
    }

    /// Whether it wants [`StreamEvent::Prompt`] when the request is admitted and after each chunk of the prompt.
    fn wants_prompt_progress(&self) -> bool {
        false
    }
}

/// A message to the scheduler.
#[derive(Debug)]
pub enum SchedulerMessage {
    /// A new request.
    Submit(Box<Submit>),
    /// A chunk has ended.
    Progress(Progress),
    /// Static graphs were prepared.
    Prepared(Box<GraphsPrepared>),
    /// The time of a rest is over ([`crate::scheduler::SchedulerEffect::Rest`]).
    Rested,
    /// A stream was dropped, so that cancelled requests are to be removed; or a caller asks for the engine's state.
    Wake,
    /// Compute the rows of a sequence from a position on again.
    RollBack(RollBack),
    /// An actor died.
    ActorDied(RunError),
    /// Stop, after the present requests or at once.
    Shutdown(Shutdown),
}

/// A request to compute rows of a sequence again. Chunks in flight that hold rows of the sequence
/// become stale, and every actor drops them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollBack {
    /// The sequence.
    pub sequence: SequenceId,
    /// First row to compute again. The roll-back reaches further if an earlier row is still in flight.
    pub row: usize,
}

/// How an engine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Finish the present requests and accept no new ones.
    Drain,
    /// Fail the present requests.
    Now,
}

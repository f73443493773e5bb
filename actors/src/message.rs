//! All messages between actors. They are one-way; the one backward arrow is [`Progress`].

use std::fmt;
use std::sync::Arc;

use lapwing_kernels::device::{DeviceError, GraphKey, ModelId, Prepared};
use lapwing_plan::DeviceId;
use lapwing_traces::RequestTimes;

pub use crate::chunk::{Chunk, Delivery, OutputAction, Part, PartDone, PartLost, SequenceRows};
use crate::draft::{Drafter, StepTokens};
use crate::error::RunError;
use crate::policy::ClientId;
use crate::sample::{Sampled, Sampler};
use crate::sequence::{AdmissionPermit, SequenceId};
pub use crate::traced::{TraceContext, Traced};

/// Caller → scheduler: a request.
#[derive(Debug)]
pub struct Submit {
    /// The model.
    pub model: ModelId,
    /// Prompt.
    pub ids: Vec<u32>,
    /// What is wanted.
    pub task: Task,
    /// Client that sends it, for the queue policy.
    pub client: ClientId,
    /// Where results go.
    pub sink: Arc<dyn Sink>,
    /// Right to be in the engine; given back when the request ends.
    pub admission: AdmissionPermit,
    /// Span under which the request is logged.
    pub trace: tracing::Span,
}

/// What a request wants.
#[derive(Debug)]
pub enum Task {
    /// New tokens.
    Generate(Box<Generate>),
    /// Log-probability of each prompt token from position `from` on (at least 1), given those
    /// before it.
    Score {
        /// First position to score.
        from: usize,
    },
}

/// How tokens are generated.
#[derive(Debug)]
pub struct Generate {
    /// Chooses tokens.
    pub sampler: Sampler,
    /// Tokens that end the sequence; they are reported but carry no text.
    pub stop_ids: Arc<[u32]>,
    /// Most tokens to generate.
    pub tokens_max: usize,
    /// Proposes tokens to verify, if any are.
    pub drafter: Option<Box<dyn Drafter>>,
}

/// Scheduler → preparation lane: make static graphs ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareGraphs {
    /// The device.
    pub device: DeviceId,
    /// Graphs that a chunk needs.
    pub keys: Vec<GraphKey>,
    /// Graphs of chunks in flight, which must stay.
    pub keep: Vec<GraphKey>,
}

/// Preparation lane → scheduler: graphs are ready, or cannot be had.
#[derive(Debug)]
pub struct GraphsPrepared {
    /// What was asked for.
    pub asked: PrepareGraphs,
    /// What came of it.
    pub result: Result<Prepared, DeviceError>,
}

impl GraphsPrepared {
    /// The answer for a device that prepares nothing.
    pub fn without_lane(asked: PrepareGraphs) -> GraphsPrepared {
        let error = DeviceError::Unsupported {
            device: format!("number {}", asked.device.0),
            what: "prepared graphs, which the plan asks for".to_owned(),
        };
        GraphsPrepared { asked, result: Err(error) }
    }
}

/// Last worker → scheduler: a chunk has ended. Its permit and leases are free.
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
    /// What came of them.
    pub outcome: Outcome,
}

/// What came of a sequence's rows.
#[derive(Debug)]
pub enum Outcome {
    /// They are in the cache.
    Computed,
    /// They are in the cache, and these tokens were chosen, with the state that chose them.
    Sampled(StepTokens, Box<Generate>),
    /// They are in the cache, and this many prompt tokens were scored.
    Scored(usize),
    /// A roll-back has made them obsolete; with the sampling state, if the chunk carried it.
    Stale(Option<Box<Generate>>),
    /// The request was cancelled or has failed elsewhere.
    Abandoned,
    /// They are lost.
    Lost(RunError),
}

/// What a caller gets.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// A generated token.
    Token(Sampled),
    /// Log-probabilities of the next prompt tokens.
    Scores(Vec<f32>),
    /// The end; nothing follows.
    Finished(Finished),
    /// The end, by an error; nothing follows.
    Failed(RunError),
}

/// An event on its way to a caller.
#[derive(Debug)]
pub struct Emission {
    /// Whose event it is.
    pub sequence: SequenceId,
    /// Where it goes.
    pub sink: Arc<dyn Sink>,
    /// What it is.
    pub event: StreamEvent,
}

/// End of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Why.
    pub reason: FinishReason,
    /// When it passed its milestones.
    pub times: RequestTimes,
}

/// Why a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended the text.
    Stop,
    /// As many tokens as asked for, or as the context holds.
    Length,
    /// Every prompt token is scored.
    Scored,
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Scored => "scored",
        })
    }
}

/// A caller's end of a stream. Sending never blocks.
pub trait Sink: Send + Sync + fmt::Debug {
    /// Hands an event over; it is lost if the caller is gone.
    fn send(&self, event: Traced<StreamEvent>);

    /// Whether the caller has dropped its stream, which cancels the request.
    fn is_closed(&self) -> bool;
}

/// What arrives in the scheduler's mailbox.
#[derive(Debug)]
pub enum SchedulerMessage {
    /// A request.
    Submit(Box<Submit>),
    /// A chunk came back.
    Progress(Progress),
    /// Static graphs were prepared.
    Prepared(Box<GraphsPrepared>),
    /// A stream was dropped: look for cancelled requests.
    Wake,
    /// The rows of a sequence from a position on count as not computed.
    RollBack(RollBack),
    /// An actor died.
    ActorDied(RunError),
    /// Stop: after the present requests, or at once.
    Shutdown(Shutdown),
}

/// Rows of a sequence are to be computed again. Chunks in flight that hold rows of the sequence
/// become stale, and every actor drops them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollBack {
    /// The sequence.
    pub sequence: SequenceId,
    /// First row to compute again; an earlier one if that is still on its way.
    pub row: usize,
}

/// How an engine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Finish what is in the engine, take nothing new.
    Drain,
    /// Fail what is in the engine.
    Now,
}

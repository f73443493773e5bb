//! All messages between actors. They are one-way; the one backward arrow is [`Progress`].

use std::fmt;
use std::sync::Arc;

use lapwing_kernels::device::{Batch, DeviceError, GraphKey, Prepared, TensorSet};
use lapwing_kernels::kv::KvLease;
use lapwing_traces::event::{HoldCause, MessageId, SpanId};
use lapwing_traces::{Nanos, Stations};

use crate::error::RunError;
use crate::join::{JoinPart, split};
use crate::policy::ClientId;
use crate::sample::{Sampled, Sampler};
use crate::sequence::{Ledger, Permit, SequenceId, Ticket};
use lapwing_plan::{DeviceId, Flow, Phase, Route, Stage, StagePart};

/// What a recording knows of a message's way: its number, and when it left its sender; none if it
/// is not recorded.
pub type Sent = Option<(MessageId, Nanos)>;

/// A message in a mailbox, with what a recording knows of its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posted<T> {
    /// The message.
    pub message: T,
    /// What a recording knows of its way.
    pub sent: Sent,
}

impl<T> Posted<T> {
    /// A message that is not recorded.
    pub fn unrecorded(message: T) -> Posted<T> {
        Posted { message, sent: None }
    }
}

/// Caller → scheduler: a request.
#[derive(Debug)]
pub struct Submit {
    /// Prompt.
    pub ids: Vec<u32>,
    /// What is wanted.
    pub task: Task,
    /// Client that sends it, for the queue policy.
    pub client: ClientId,
    /// Where results go.
    pub sink: Arc<dyn Sink>,
    /// Right to be in the engine; given back when the request ends.
    pub ticket: Ticket,
    /// Whether it asks to be recorded.
    pub traced: bool,
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
}

/// Scheduler → worker → worker: rows to compute, with all that any stage needs.
#[derive(Debug)]
pub struct Chunk {
    /// Number of the chunk, ascending in order of dispatch.
    pub id: u64,
    /// What its rows are.
    pub phase: Phase,
    /// Stages, in order.
    pub route: Arc<Route>,
    /// Next stage of the route.
    pub cursor: usize,
    /// Rows, as a device sees them.
    pub batch: Batch,
    /// Owner of each of the batch's spans.
    pub spans: Vec<Span>,
    /// Values that crossed the last border.
    pub tensors: TensorSet,
    /// Right to be in flight.
    pub permit: Permit,
    /// Span under which the chunk is logged.
    pub trace: tracing::Span,
    /// What a recording knows of its way; written by drivers only.
    pub record: ChunkRecord,
}

/// What a recording knows of a chunk's way. All empty while it is not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkRecord {
    /// One of its requests asks to be recorded.
    pub traced: bool,
    /// Left the scheduler.
    pub dispatched: Option<Nanos>,
    /// The message that brings it to its present device, and when that left its sender.
    pub sent: Sent,
    /// Span of its present stage.
    pub span: Option<SpanId>,
}

/// Why rows that were due were not sent, and since when.
pub type Hold = (HoldCause, Nanos);

/// The sequence behind one of a chunk's row spans.
#[derive(Debug)]
pub struct Span {
    /// Whose rows these are.
    pub sequence: SequenceId,
    /// Keeps the pages alive until the rows are computed.
    pub lease: KvLease,
    /// Rows computed so far, per stage.
    pub ledger: Arc<Ledger>,
    /// Where tokens go.
    pub sink: Arc<dyn Sink>,
    /// What the last stage does with the logits.
    pub finish: SpanFinish,
    /// Its request asks to be recorded.
    pub traced: bool,
}

/// What is done with a span's logits.
#[derive(Debug)]
pub enum SpanFinish {
    /// Nothing: more of the prompt follows.
    None,
    /// Choose the next token.
    Sample(Box<Generate>),
    /// Score these tokens, one per selected row.
    Score(Vec<u32>),
}

impl Chunk {
    /// The stage to run next.
    pub fn stage(&self) -> &Stage {
        &self.route.stages[self.cursor]
    }

    /// What that stage hands on.
    pub fn flow(&self) -> &Flow {
        &self.route.flows[self.cursor]
    }

    /// Whether this is the route's last stage.
    pub fn is_last_stage(&self) -> bool {
        self.cursor + 1 == self.route.stages.len()
    }

    /// Whether nobody waits for any of its rows.
    pub fn is_abandoned(&self) -> bool {
        self.spans.iter().all(|s| s.ledger.is_lost() || s.sink.is_closed())
    }

    /// Makes it ready for its next stage: one delivery for each device that has a part in it.
    pub fn deliver(self: Box<Chunk>) -> Vec<Delivery> {
        let parts = self.stage().parts.len();
        if parts == 1 {
            return vec![Delivery::Chunk(self)];
        }
        let record = self.record;
        let holds = split(self, parts).into_iter();
        holds.map(|hold| Delivery::Part(Box::new(Part { hold, record }))).collect()
    }
}

/// What a worker is to run: the stage of a chunk, or its part of it.
#[derive(Debug)]
pub enum Delivery {
    /// A whole stage.
    Chunk(Box<Chunk>),
    /// A part of a stage.
    Part(Box<Part>),
}

/// Worker → worker: a device's part of a chunk's stage.
#[derive(Debug)]
pub struct Part {
    /// The chunk, shared with the other parts; the last to finish sends it on.
    pub hold: JoinPart<Box<Chunk>, PartDone>,
    /// What a recording knows of the part's way.
    pub record: ChunkRecord,
}

/// What came of a part.
#[derive(Debug)]
pub struct PartDone {
    /// The part's rows and features of what the stage writes.
    pub outcome: Result<TensorSet, PartLost>,
    /// What a recording knows of its way to whoever finishes last.
    pub sent: Sent,
}

/// Why a part has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum PartLost {
    /// Its device failed.
    Failed {
        /// Device name.
        device: String,
        /// What happened.
        error: DeviceError,
    },
    /// Nobody waited for it any more.
    Abandoned,
}

impl Delivery {
    /// The chunk.
    pub fn chunk(&self) -> &Chunk {
        match self {
            Delivery::Chunk(chunk) => chunk,
            Delivery::Part(part) => part.hold.whole(),
        }
    }

    /// Who runs which rows and features.
    pub fn part(&self) -> &StagePart {
        let index = match self {
            Delivery::Chunk(_) => 0,
            Delivery::Part(part) => part.hold.index(),
        };
        &self.chunk().stage().parts[index]
    }

    /// The device that runs it.
    pub fn device(&self) -> DeviceId {
        self.part().device
    }

    /// Whether its inputs come from another device, or from several.
    pub fn crossed(&self) -> bool {
        let chunk = self.chunk();
        let before = chunk.cursor.checked_sub(1).map(|at| &chunk.route.stages[at]);
        before.is_some_and(|stage| stage.only_device() != Some(self.device()))
    }

    /// Whether it is the first part of its stage whose inputs come from elsewhere, so that every
    /// hand-over is counted once.
    pub fn is_hand_over(&self) -> bool {
        let chunk = self.chunk();
        let Some(at) = chunk.cursor.checked_sub(1) else { return false };
        let from = chunk.route.stages[at].only_device();
        let mut parts = chunk.stage().parts.iter();
        parts.find(|part| from != Some(part.device)).is_some_and(|p| p.device == self.device())
    }

    /// What a recording knows of its way.
    pub fn record(&self) -> &ChunkRecord {
        match self {
            Delivery::Chunk(chunk) => &chunk.record,
            Delivery::Part(part) => &part.record,
        }
    }

    /// What a recording knows of its way; for drivers only.
    pub fn record_mut(&mut self) -> &mut ChunkRecord {
        match self {
            Delivery::Chunk(chunk) => &mut chunk.record,
            Delivery::Part(part) => &mut part.record,
        }
    }
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

/// Last worker → scheduler: a chunk is through, or lost. Its permit and leases are free.
#[derive(Debug)]
pub struct Progress {
    /// Number of the chunk.
    pub chunk: u64,
    /// What became of each of its spans.
    pub spans: Vec<SpanProgress>,
    /// What a recording knows of the chunk's way.
    pub record: ChunkRecord,
}

/// What became of a span.
#[derive(Debug)]
pub struct SpanProgress {
    /// Whose rows.
    pub sequence: SequenceId,
    /// How many rows.
    pub rows: usize,
    /// What came of them.
    pub outcome: SpanOutcome,
}

/// What came of a span's rows.
#[derive(Debug)]
pub enum SpanOutcome {
    /// They are in the cache.
    Computed,
    /// So they are, and this token was chosen, with the state that chose it.
    Sampled(Sampled, Box<Generate>),
    /// So they are, and this many prompt tokens were scored.
    Scored(usize),
    /// Nobody waited for them any more.
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
    /// Its request asks to be recorded.
    pub traced: bool,
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
    /// When it passed its stations.
    pub stations: Stations,
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
    fn send(&self, event: Posted<StreamEvent>);

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
    /// An actor died.
    ActorDied(RunError),
    /// Stop: after the present requests, or at once.
    Shutdown(Shutdown),
}

/// How an engine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Finish what is in the engine, take nothing new.
    Drain,
    /// Fail what is in the engine.
    Now,
}

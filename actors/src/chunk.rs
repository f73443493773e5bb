//! Chunks: batches of rows that pass the stages of a route.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Batch, DeviceError, Payload, TensorSet};
use lapwing_kernels::kv::{KvLease, KvPage};
use lapwing_plan::moment::LaneWork;
use lapwing_plan::{DeviceId, Flow, Phase, Route, Stage};
use lapwing_traces::event::DraftRole;

mod delivery;
mod runs;
mod turn;

pub use delivery::{Delivery, Part, PartDone, PartLost};
pub use runs::{Begun, Computing, DeviceSet, RunTime, Runs};
pub use turn::{Life, Turn};

use crate::handover::Sampling;
use crate::join::split;
use crate::message::{Generate, HiddenRows, Sink};
use crate::sequence::{Permit, RowProgress, SequenceId};
use crate::traced::{TraceContext, Traced};

/// Rows to compute, with everything that any stage of their route needs.
#[derive(Debug)]
pub struct Chunk {
    /// Number of the chunk, ascending in order of dispatch.
    pub id: u64,
    /// Whether it holds prompt rows, decode rows or both.
    pub phase: Phase,
    /// Which chunks it passes where they wait for the same device, unless its streams have become due.
    pub turn: Turn,
    /// Stages, in order.
    pub route: Arc<Route>,
    /// Index of the present stage in the route.
    pub cursor: usize,
    /// The batch, and the values that the stages so far handed to the present one.
    pub payload: Arc<Payload>,
    /// The sequence of each of the batch's [`sequences`](Batch::sequences).
    pub sequences: Vec<SequenceRows>,
    /// Permit for one chunk in flight.
    pub permit: Permit,
    /// Its `tracing` span, the parent of the spans of its stages; disabled if its requests have no spans.
    pub trace: tracing::Span,
    /// Its predicted work on each device, by number; empty if nothing is predicted.
    pub lanes: Arc<[LaneWork]>,
    /// What its stages took so far; `None` if nothing is predicted.
    pub runs: Option<Arc<Runs>>,
    /// Dropped when it ends. A device that is kept for it has a weak reference, and so has the scheduler.
    pub life: Arc<Life>,
}

/// A sequence with rows in a chunk.
#[derive(Debug)]
pub struct SequenceRows {
    /// The sequence.
    pub sequence: SequenceId,
    /// Epoch of the sequence when the chunk was cut. A roll-back begins a new one, and rows of
    /// earlier epochs are stale.
    pub epoch: u64,
    /// Keeps the pages alive until the rows are computed.
    pub lease: KvLease,
    /// The same for the branches of its draft.
    pub branches: Vec<KvLease>,
    /// The same for the places of its states.
    pub states: Vec<KvPage>,
    /// Rows computed so far, per node.
    pub progress: Arc<RowProgress>,
    /// Receives the tokens.
    pub sink: Arc<dyn Sink>,
    /// The use of the output.
    pub action: OutputAction,
    /// Whether another model is given its hidden states.
    pub passes_on: bool,
    /// These, once they are known.
    pub hidden: Option<HiddenRows>,
    /// What the rows are for in speculative decoding.
    pub role: Option<DraftRole>,
    /// Trace context of the request.
    pub context: TraceContext,
}

/// The use of the output of a sequence's rows: logits, or hidden states.
#[derive(Debug)]
pub enum OutputAction {
    /// No output is needed: more of the prompt follows.
    None,
    /// Sample the next token.
    Sample(Sampling),
    /// Score these token ids, one per selected row.
    Score {
        /// Token ids.
        ids: Vec<u32>,
        /// How many of the most likely tokens to report with each.
        top: usize,
    },
    /// Send the hidden states of the selected rows.
    Embed,
}

impl OutputAction {
    /// Ends a pass without sampling. Returns its sampling state, if it has one.
    pub fn drop_pass(&mut self) -> Option<Box<Generate>> {
        match std::mem::replace(self, OutputAction::None) {
            OutputAction::Sample(sampling) => sampling.drop_pass(),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl SequenceRows {
    /// Whether the rows are stale: after a roll-back, or because the pass before has rejected their first token.
    pub fn is_stale(&self) -> bool {
        let rejected = || match &self.action {
            OutputAction::Sample(sampling) => sampling.is_rejected(),
            _ => false,
        };
        self.progress.epoch() != self.epoch || rejected()
    }

    /// Whether the result is no longer needed: the rows are stale, the sequence is lost, or its caller
    /// has dropped the stream.
    pub fn is_void(&self) -> bool {
        self.is_stale() || self.progress.is_lost() || self.sink.is_closed()
    }
}

impl Chunk {
    /// Which chunks it passes where they wait for the same device.
    pub fn turn(&self) -> Turn {
        if self.life.is_due() { Turn::Due } else { self.turn }
    }

    /// Predicted time of one of its parts on a device.
    pub fn part_time(&self, device: DeviceId) -> Duration {
        self.lanes.get(device.0).map_or(Duration::ZERO, |lane| lane.mean())
    }

    /// Whether a device has more work on it after the present stage.
    pub fn comes_back_to(&self, device: DeviceId) -> bool {
        let later = self.route.stages.get(self.cursor + 1..).unwrap_or_default();
        later
            .iter()
            .any(|stage| !stage.decides() && stage.parts.iter().any(|part| part.device == device))
    }

    /// The present stage.
    pub fn stage(&self) -> &Stage {
        &self.route.stages[self.cursor]
    }

    /// The values that the present stage reads, writes and passes on.
    pub fn flow(&self) -> &Flow {
        &self.route.flows[self.cursor]
    }

    /// The rows of the chunk.
    pub fn batch(&self) -> &Batch {
        &self.payload.batch
    }

    /// Whether none of its results is needed any more.
    pub fn is_void(&self) -> bool {
        self.sequences.iter().all(SequenceRows::is_void)
    }

    /// What its rows are for in speculative decoding, if some of them are.
    pub fn role(&self) -> Option<DraftRole> {
        self.sequences.iter().find_map(|rows| rows.role)
    }

    /// The nodes whose row progress orders the present stage: the stage's own nodes, one index past
    /// the last node for sampling, and none for a transfer.
    pub fn ordered_nodes(&self) -> Range<usize> {
        let stage = self.stage();
        let Range { start, end } = stage.nodes.clone();
        start..end + usize::from(stage.decides())
    }

    /// The values that the previous stages handed to the present one, for modification.
    ///
    /// # Errors
    /// [`DeviceError`] when a device still holds them, which its contract forbids.
    pub fn values_mut(&mut self, device: &str) -> Result<&mut TensorSet, DeviceError> {
        match Arc::get_mut(&mut self.payload) {
            Some(payload) => Ok(&mut payload.values),
            None => Err(DeviceError::Failed {
                device: device.to_owned(),
                reason: "it still holds the inputs of a completed run".to_owned(),
            }),
        }
    }

    /// Prepares the chunk for its present stage: one delivery for each device that runs a part of it.
    pub fn deliver(self: Box<Chunk>, context: TraceContext) -> Vec<Traced<Delivery>> {
        let parts = self.stage().parts.len();
        if parts == 1 {
            return vec![Traced::new(Delivery::Chunk(self), context)];
        }
        let part = |part| Traced::new(Delivery::Part(Box::new(part)), context);
        split(self, parts).into_iter().map(part).collect()
    }
}

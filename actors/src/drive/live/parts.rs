//! The components of a live engine, and a request.

use std::sync::Arc;

use lapwing_kernels::device::{ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_traces::Recorder;
use tracing::Span;

use super::device::LiveDevice;
use crate::drive::wait::Waits;
use crate::message::Task;
use crate::policy::{ClientId, Urgency};
use crate::prefix::PrefixUse;
use crate::scheduler::Scheduler;

/// The components of a live engine.
pub struct LiveParts {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Devices, by their number.
    pub devices: Vec<LiveDevice>,
    /// The ops of each model, by its number.
    pub graphs: Vec<Arc<Graph>>,
    /// Pool of the buffers that hold results.
    pub slots: SlotPool,
    /// Maximum number of requests in the engine.
    pub requests_max: usize,
    /// Maximum number of chunks in flight.
    pub permits: usize,
    /// How actors wait for messages.
    pub waits: Waits,
    /// Receives trace events; its clock is the engine's clock.
    pub recorder: Recorder,
}

impl LiveParts {
    /// Most messages that the scheduler's mailbox holds: one Submit per admission permit, two Progress per chunk
    /// permit (a permit is free before its Progress is read), GraphsPrepared or Rested and two ActorDied per
    /// device, one Wake, and one Shutdown of each kind.
    pub(super) fn messages_max(&self) -> usize {
        self.requests_max + 2 * self.permits + 3 * self.devices.len() + 3
    }
}

/// A request of a caller.
#[derive(Debug)]
pub struct LiveRequest {
    /// Token ids of the prompt.
    pub ids: Vec<u32>,
    /// Generation or scoring.
    pub task: Task,
    /// Client that sends it, for the queue policy.
    pub client: ClientId,
    /// How urgent it is, for the queue policy.
    pub urgency: Urgency,
    /// How it uses the prefix cache.
    pub prefix: PrefixUse,
    /// Maximum number of stream events: tokens, or chunks of scores.
    pub events: usize,
    /// Whether to send events of the prompt's progress, beside those.
    pub prompt_progress: bool,
    /// The model.
    pub model: ModelId,
    /// Whether to record it when only marked requests are recorded.
    pub traced: bool,
    /// Its `tracing` span, the parent of the spans of its chunks; [`Span::none`] for no spans. If it has a field `id`, the number
    /// of the request is recorded there.
    pub trace: Span,
}

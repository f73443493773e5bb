//! Computes the masks of constrained samplers on threads of their own, beside the passes of the devices.

use std::sync::{Arc, Mutex, PoisonError};

use lapwing_traces::event::{Activity, EventKind, LaneKind, NameId, SpanInfo, Tags};
use lapwing_traces::{Nanos, Recorder};

use super::blocking::{BlockingPool, Pending};
use super::record::TraceWriter;
use crate::sample::{Constraint, ConstraintError, MaskWorker, PendingMask, TokenMask};

/// The threads of an engine that compute masks. They start with the first mask and end with the engine.
#[derive(Debug)]
pub struct MaskThreads {
    pool: BlockingPool,
    trace: Arc<MaskTrace>,
}

impl MaskThreads {
    /// At most `threads` threads (at least one), none of which is started yet. If everything is recorded, each
    /// mask is a span of the lane `masks`.
    pub fn new(threads: usize, recorder: &Recorder) -> MaskThreads {
        let trace = Arc::new(MaskTrace { recorder: recorder.clone(), lane: Mutex::new(None) });
        MaskThreads { pool: BlockingPool::new("mask", threads), trace }
    }
}

impl MaskWorker for MaskThreads {
    fn start(&self, mut constraint: Box<dyn Constraint>) -> Box<dyn PendingMask> {
        let trace = Arc::clone(&self.trace);
        let queued = trace.now();
        Box::new(self.pool.start(move || {
            let started = trace.now();
            let mask = constraint.allowed();
            if let (Some(queued), Some(started)) = (queued, started) {
                trace.ran(queued, started);
            }
            mask.map(|mask| (constraint, mask))
        }))
    }
}

impl PendingMask for Pending<Result<(Box<dyn Constraint>, TokenMask), ConstraintError>> {
    fn wait(self: Box<Self>) -> Result<(Box<dyn Constraint>, TokenMask), ConstraintError> {
        let reason = |error: std::io::Error| ConstraintError { reason: error.to_string() };
        Pending::wait(*self).map_err(reason).flatten()
    }
}

/// Trace events of masks.
#[derive(Debug)]
struct MaskTrace {
    recorder: Recorder,
    /// Made at the first event.
    lane: Mutex<Option<Lane>>,
}

#[derive(Debug)]
struct Lane {
    writer: TraceWriter,
    name: NameId,
}

impl MaskTrace {
    /// The time, if masks are recorded.
    fn now(&self) -> Option<Nanos> {
        self.recorder.wants(false).then(|| self.recorder.clock().now())
    }

    /// Records that a mask was wanted at `queued`, and computed from `start` until now.
    fn ran(&self, queued: Nanos, start: Nanos) {
        let mut lane = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
        let Lane { writer, name } = lane.get_or_insert_with(|| Lane {
            writer: TraceWriter::new(&self.recorder, "masks", LaneKind::Thread),
            name: self.recorder.name("mask"),
        });
        let (span, now) = (writer.span(), writer.now());
        let tags = Tags::default();
        let info = SpanInfo { name: *name, activity: Activity::Sample, parent: None, tags };
        writer.record(queued, EventKind::Queued(span));
        writer.record(queued, EventKind::Submitted(span));
        writer.record(now, EventKind::Ran(span, info, start));
    }
}

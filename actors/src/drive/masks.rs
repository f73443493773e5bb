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

#[cfg(test)]
mod tests {
    use lapwing_traces::timeline::Timeline;
    use lapwing_traces::{OsClock, RecorderConfig, Scope};

    use super::*;
    use crate::sample::{Accepted, SampleError, Sampler, SamplingParams};

    /// Allows the token that is as large as the number of tokens so far, up to 3.
    #[derive(Debug)]
    struct Counting(u32);

    impl Constraint for Counting {
        fn allowed(&mut self) -> Result<TokenMask, ConstraintError> {
            assert!(self.0 < 3, "on purpose");
            Ok([self.0].into_iter().collect())
        }

        fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError> {
            self.0 = id + 1;
            Ok(Accepted::Open)
        }

        fn fork(&self) -> Box<dyn Constraint> {
            Box::new(Counting(self.0))
        }
    }

    #[test]
    fn masks_are_computed_on_threads_and_a_panic_is_an_error() {
        let recorder = Recorder::new(Arc::new(OsClock::start()), RecorderConfig::default());
        recorder.set_scope(Scope::All);
        let threads: Arc<dyn MaskWorker> = Arc::new(MaskThreads::new(1, &recorder));
        let sampler = Sampler::new(SamplingParams::greedy(), &[]);
        let mut sampler = sampler.with_constraint(Box::new(Counting(0)), Some(threads));
        for id in 0..3 {
            sampler.prepare();
            sampler.prepare();
            // Drafts take the mask along.
            let sampled = sampler.fork().sample(&[0.0; 8]).map(|token| token.id);
            assert_eq!(sampled, Ok(id));
            assert_eq!(sampler.sample(&[0.0; 8]).map(|token| token.id), Ok(id));
        }
        sampler.prepare();
        for _ in 0..2 {
            match sampler.sample(&[0.0; 8]) {
                Err(SampleError::Constraint(error)) => {
                    assert!(error.reason.contains("on purpose"), "{error}");
                }
                other => panic!("{other:?}"),
            }
        }
        let timeline = Timeline::new(&recorder.recording());
        assert_eq!(timeline.lanes[0].name, "masks");
        assert_eq!(timeline.spans.len(), 3, "one span for each mask");
    }
}

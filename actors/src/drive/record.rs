//! Trace events of the actors. The live and the simulated driver call the same methods at the same
//! points, so both record the same events. Times are those of the recorder's clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapwing_traces::event::{
    Activity, EventKind, LaneId, LaneKind, MessageId, NameId, Sending, SpanId, SpanInfo, Tags,
};
use lapwing_traces::{Nanos, Recorder, Scope, Writer};

use crate::message::{SchedulerMessage, Sink, StreamEvent, TraceContext, Traced};

mod names;
mod prepare;
mod scheduler;
mod tags;
mod worker;

pub(super) use prepare::PrepareTrace;
pub(super) use scheduler::SchedulerTrace;
pub(super) use tags::{phase_of, stage_activity, stage_name, stage_tags};
pub(super) use worker::WorkerTrace;

/// One actor's connection to a recorder: its lane and its writer.
#[derive(Debug)]
pub(super) struct TraceWriter {
    recorder: Recorder,
    lane: LaneId,
    /// Made at the first event, because each writer allocates a ring buffer.
    writer: Option<Writer>,
}

impl TraceWriter {
    pub(super) fn new(recorder: &Recorder, lane: &str, kind: LaneKind) -> TraceWriter {
        TraceWriter { recorder: recorder.clone(), lane: recorder.lane(lane, kind), writer: None }
    }

    fn is_on(&self) -> bool {
        self.recorder.scope() != Scope::Off
    }

    fn wants(&self, traced: bool) -> bool {
        self.recorder.wants(traced)
    }

    pub(super) fn now(&self) -> Nanos {
        self.recorder.clock().now()
    }

    fn name(&self, text: &str) -> NameId {
        self.recorder.name(text)
    }

    fn writer(&mut self) -> &mut Writer {
        let recorder = &self.recorder;
        self.writer.get_or_insert_with(|| recorder.writer())
    }

    pub(super) fn record(&mut self, at: Nanos, kind: EventKind) {
        let lane = self.lane;
        self.writer().record(at, lane, kind);
    }

    pub(super) fn span(&mut self) -> SpanId {
        self.writer().span()
    }

    /// Records that a message is sent now.
    fn post(&mut self, name: NameId, span: Option<SpanId>) -> (MessageId, Nanos) {
        let (message, at) = (self.writer().message(), self.now());
        let sending = Sending { message, span, name, bytes: 0, stall: None };
        self.record(at, EventKind::Sent(sending));
        (message, at)
    }
}

/// An event and the stream that receives it.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) event: Traced<StreamEvent>,
}

/// Names of the messages to a caller.
#[derive(Clone, Copy, Debug)]
struct EventNames {
    prompt: NameId,
    token: NameId,
    scores: NameId,
    hidden: NameId,
    finished: NameId,
    failed: NameId,
}

impl EventNames {
    fn new(recorder: &Recorder) -> EventNames {
        EventNames {
            prompt: recorder.name("prompt progress"),
            token: recorder.name("token"),
            scores: recorder.name("scores"),
            hidden: recorder.name("hidden states"),
            finished: recorder.name("finished"),
            failed: recorder.name("failed"),
        }
    }

    fn of(&self, event: &StreamEvent) -> NameId {
        match event {
            StreamEvent::Prompt(_) => self.prompt,
            StreamEvent::Token(_) => self.token,
            StreamEvent::Scores(_) => self.scores,
            StreamEvent::Hidden(_) => self.hidden,
            StreamEvent::Finished(_) => self.finished,
            StreamEvent::Failed(_) => self.failed,
        }
    }
}

/// Trace events of the callers. Callers run on many threads, so the writer is behind a lock, which is
/// taken only for recorded messages.
///
/// From the end of the last open request to the next message of a caller, the caller counts as
/// running, and that message counts as caused by the end of the request. While other requests are in
/// flight, a new request has no recorded cause.
#[derive(Debug)]
pub(super) struct CallerTrace {
    recorder: Recorder,
    trace: Mutex<TraceWriter>,
    /// Number of requests that were sent and have not ended.
    open: AtomicUsize,
    /// Span of the caller since the end of the last open request.
    client_span: Mutex<Option<(SpanId, Nanos)>>,
    names: CallerNames,
}

#[derive(Debug)]
struct CallerNames {
    submit: NameId,
    wake: NameId,
    roll_back: NameId,
    shutdown: NameId,
    died: NameId,
    client: NameId,
}

impl CallerTrace {
    pub(super) fn new(recorder: &Recorder) -> CallerTrace {
        let name = |text| recorder.name(text);
        CallerTrace {
            recorder: recorder.clone(),
            trace: Mutex::new(TraceWriter::new(recorder, "caller", LaneKind::Thread)),
            open: AtomicUsize::new(0),
            client_span: Mutex::default(),
            names: CallerNames {
                submit: name("submit"),
                wake: name("wake"),
                roll_back: name("roll back"),
                shutdown: name("shutdown"),
                died: name("actor died"),
                client: name("client"),
            },
        }
    }

    /// Records that a message from outside is sent to the scheduler.
    pub(super) fn post(
        &self,
        message: impl Into<Traced<SchedulerMessage>>,
    ) -> Traced<SchedulerMessage> {
        let Traced { message, context } = message.into();
        let (name, ends_span) = match &message {
            SchedulerMessage::Submit(_) => {
                self.open.fetch_add(1, Ordering::Relaxed);
                (self.names.submit, true)
            }
            SchedulerMessage::Wake => (self.names.wake, false),
            SchedulerMessage::RollBack(_) => (self.names.roll_back, false),
            SchedulerMessage::Shutdown(_) => (self.names.shutdown, true),
            SchedulerMessage::ActorDied(_) => (self.names.died, false),
            SchedulerMessage::Progress(_)
            | SchedulerMessage::Prepared(_)
            | SchedulerMessage::Rested => {
                return Traced::untraced(message);
            }
        };
        let mut client_span = lock(&self.client_span);
        let present = if ends_span { client_span.take() } else { *client_span };
        drop(client_span);
        if !self.recorder.wants(context.requested) {
            return Traced::new(message, context);
        }
        let mut trace = lock(&self.trace);
        let sent = trace.post(name, present.map(|(span, _)| span));
        if let (Some((span, start)), true) = (present, ends_span) {
            let info = SpanInfo {
                name: self.names.client,
                activity: Activity::Other,
                parent: None,
                tags: Tags::default(),
            };
            trace.record(sent.1, EventKind::Ran(span, info, start));
        }
        Traced::new(message, TraceContext { sent: Some(sent), ..context })
    }

    /// Records that a caller takes an event out of its stream.
    pub(super) fn received(&self, event: &Traced<StreamEvent>) {
        let ended = matches!(event.message, StreamEvent::Finished(_) | StreamEvent::Failed(_));
        let was_last = ended && self.close();
        let Some((message, _)) = event.context.sent else { return };
        let mut trace = lock(&self.trace);
        let now = trace.now();
        let span = was_last.then(|| trace.span());
        trace.record(now, EventKind::Received(message, span));
        *lock(&self.client_span) = span.map(|span| (span, now));
    }

    /// Counts a request as ended or abandoned; returns whether it was the last open one.
    pub(super) fn close(&self) -> bool {
        self.open.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

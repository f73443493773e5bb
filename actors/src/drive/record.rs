//! What actors tell a recorder. The live and the simulated driver call the same methods at the
//! same points, so that both leave the same events; the time is that of the recorder's clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapwing_traces::event::{
    Activity, EventKind, LaneId, LaneKind, MessageId, NameId, Sending, SpanId, SpanInfo, Tags,
};
use lapwing_traces::{Nanos, Recorder, Scope, Writer};

use crate::message::{SchedulerMessage, Sink, StreamEvent, TraceContext, Traced};

mod prepare;
mod scheduler;
mod worker;

pub(super) use prepare::PrepareTrace;
pub(super) use scheduler::SchedulerTrace;
pub(super) use worker::WorkerTrace;

/// One actor's end of a recorder: its lane and its writer.
#[derive(Debug)]
struct TraceWriter {
    recorder: Recorder,
    lane: LaneId,
    /// Made when something is first recorded: it has a ring of its own.
    writer: Option<Writer>,
}

impl TraceWriter {
    fn new(recorder: &Recorder, lane: &str, kind: LaneKind) -> TraceWriter {
        TraceWriter { recorder: recorder.clone(), lane: recorder.lane(lane, kind), writer: None }
    }

    fn is_on(&self) -> bool {
        self.recorder.scope() != Scope::Off
    }

    fn wants(&self, traced: bool) -> bool {
        self.recorder.wants(traced)
    }

    fn now(&self) -> Nanos {
        self.recorder.clock().now()
    }

    fn writer(&mut self) -> &mut Writer {
        let recorder = &self.recorder;
        self.writer.get_or_insert_with(|| recorder.writer())
    }

    fn record(&mut self, at: Nanos, kind: EventKind) {
        let lane = self.lane;
        self.writer().record(at, lane, kind);
    }

    fn span(&mut self) -> SpanId {
        self.writer().span()
    }

    /// Records that a message leaves now.
    fn post(&mut self, name: NameId, span: Option<SpanId>) -> (MessageId, Nanos) {
        let (message, at) = (self.writer().message(), self.now());
        let sending = Sending { message, span, name, bytes: 0, stall: None };
        self.record(at, EventKind::Sent(sending));
        (message, at)
    }
}

/// An event and where it goes.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) event: Traced<StreamEvent>,
}

/// Names of the messages to a caller.
#[derive(Clone, Copy, Debug)]
struct EventNames {
    token: NameId,
    scores: NameId,
    finished: NameId,
    failed: NameId,
}

impl EventNames {
    fn new(recorder: &Recorder) -> EventNames {
        EventNames {
            token: recorder.name("token"),
            scores: recorder.name("scores"),
            finished: recorder.name("finished"),
            failed: recorder.name("failed"),
        }
    }

    fn of(&self, event: &StreamEvent) -> NameId {
        match event {
            StreamEvent::Token(_) => self.token,
            StreamEvent::Scores(_) => self.scores,
            StreamEvent::Finished(_) => self.finished,
            StreamEvent::Failed(_) => self.failed,
        }
    }
}

/// The callers' side: where requests come from and results go. Callers are many threads, so that
/// it is behind a lock, which is taken only for what is recorded.
///
/// From the end of the only request to whatever its caller sends next, the caller is taken to run:
/// what it sends then, it sends because of that end. With other requests on their way, one that
/// comes is nobody's effect.
#[derive(Debug)]
pub(super) struct CallerTrace {
    recorder: Recorder,
    trace: Mutex<TraceWriter>,
    /// Requests that were sent and have not ended.
    open: AtomicUsize,
    /// What the caller does since the end of the last open request.
    turn: Mutex<Option<(SpanId, Nanos)>>,
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
            turn: Mutex::default(),
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

    /// A message from outside leaves for the scheduler.
    pub(super) fn post(
        &self,
        message: impl Into<Traced<SchedulerMessage>>,
    ) -> Traced<SchedulerMessage> {
        let Traced { message, context } = message.into();
        let (name, ends_turn) = match &message {
            SchedulerMessage::Submit(_) => {
                self.open.fetch_add(1, Ordering::Relaxed);
                (self.names.submit, true)
            }
            SchedulerMessage::Wake => (self.names.wake, false),
            SchedulerMessage::RollBack(_) => (self.names.roll_back, false),
            SchedulerMessage::Shutdown(_) => (self.names.shutdown, true),
            SchedulerMessage::ActorDied(_) => (self.names.died, false),
            SchedulerMessage::Progress(_) | SchedulerMessage::Prepared(_) => {
                return Traced::untraced(message);
            }
        };
        let mut turn = lock(&self.turn);
        let present = if ends_turn { turn.take() } else { *turn };
        drop(turn);
        if !self.recorder.wants(context.requested) {
            return Traced::new(message, context);
        }
        let mut trace = lock(&self.trace);
        let sent = trace.post(name, present.map(|(span, _)| span));
        if let (Some((span, start)), true) = (present, ends_turn) {
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

    /// A caller takes an event out of its stream.
    pub(super) fn received(&self, event: &Traced<StreamEvent>) {
        let ended = matches!(event.message, StreamEvent::Finished(_) | StreamEvent::Failed(_));
        let was_last = ended && self.close();
        let Some((message, _)) = event.context.sent else { return };
        let mut trace = lock(&self.trace);
        let now = trace.now();
        let span = was_last.then(|| trace.span());
        trace.record(now, EventKind::Received(message, span));
        *lock(&self.turn) = span.map(|span| (span, now));
    }

    /// A request has ended, or its caller has left it; whether it was the last one.
    pub(super) fn close(&self) -> bool {
        self.open.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

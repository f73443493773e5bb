//! What actors tell a recorder. The live and the simulated driver call the same methods at the
//! same points, so that both leave the same events; the time is that of the recorder's clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapwing_traces::event::{
    Activity, EventKind, LaneId, LaneKind, MessageId, NameId, Sending, SpanId, SpanInfo, Tags,
};
use lapwing_traces::{Nanos, Recorder, Scope, Writer};

use crate::message::{Posted, SchedulerMessage, Sink, StreamEvent};

mod prepare;
mod scheduler;
mod worker;

pub(super) use prepare::PrepareTape;
pub(super) use scheduler::SchedulerTape;
pub(super) use worker::WorkerTape;

/// One actor's end of a recorder: its lane and its writer.
#[derive(Debug)]
struct Tape {
    recorder: Recorder,
    lane: LaneId,
    /// Made when something is first recorded: it has a ring of its own.
    writer: Option<Writer>,
}

impl Tape {
    fn new(recorder: &Recorder, lane: &str, kind: LaneKind) -> Tape {
        Tape { recorder: recorder.clone(), lane: recorder.lane(lane, kind), writer: None }
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
    pub(super) event: Posted<StreamEvent>,
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
pub(super) struct CallerTape {
    recorder: Recorder,
    tape: Mutex<Tape>,
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
    shutdown: NameId,
    died: NameId,
    client: NameId,
}

impl CallerTape {
    pub(super) fn new(recorder: &Recorder) -> CallerTape {
        let name = |text| recorder.name(text);
        CallerTape {
            recorder: recorder.clone(),
            tape: Mutex::new(Tape::new(recorder, "caller", LaneKind::Thread)),
            open: AtomicUsize::new(0),
            turn: Mutex::default(),
            names: CallerNames {
                submit: name("submit"),
                wake: name("wake"),
                shutdown: name("shutdown"),
                died: name("actor died"),
                client: name("client"),
            },
        }
    }

    /// A message from outside leaves for the scheduler.
    pub(super) fn post(&self, message: SchedulerMessage) -> Posted<SchedulerMessage> {
        let (name, traced, ends_turn) = match &message {
            SchedulerMessage::Submit(submit) => {
                self.open.fetch_add(1, Ordering::Relaxed);
                (self.names.submit, submit.traced, true)
            }
            SchedulerMessage::Wake => (self.names.wake, false, false),
            SchedulerMessage::Shutdown(_) => (self.names.shutdown, false, true),
            SchedulerMessage::ActorDied(_) => (self.names.died, false, false),
            SchedulerMessage::Progress(_) | SchedulerMessage::Prepared(_) => {
                return Posted::unrecorded(message);
            }
        };
        let mut turn = lock(&self.turn);
        let present = if ends_turn { turn.take() } else { *turn };
        drop(turn);
        if !self.recorder.wants(traced) {
            return Posted::unrecorded(message);
        }
        let mut tape = lock(&self.tape);
        let sent = tape.post(name, present.map(|(span, _)| span));
        if let (Some((span, start)), true) = (present, ends_turn) {
            let info = SpanInfo {
                name: self.names.client,
                activity: Activity::Other,
                parent: None,
                tags: Tags::default(),
            };
            tape.record(sent.1, EventKind::Ran(span, info, start));
        }
        Posted { message, sent: Some(sent) }
    }

    /// A caller takes an event out of its stream.
    pub(super) fn received(&self, event: &Posted<StreamEvent>) {
        let ended = matches!(event.message, StreamEvent::Finished(_) | StreamEvent::Failed(_));
        let was_last = ended && self.close();
        let Some((message, _)) = event.sent else { return };
        let mut tape = lock(&self.tape);
        let now = tape.now();
        let span = was_last.then(|| tape.span());
        tape.record(now, EventKind::Received(message, span));
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

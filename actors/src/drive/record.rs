//! What actors tell a recorder. The live and the simulated driver call the same methods at the
//! same points, so that both leave the same events; the time is that of the recorder's clock.

use std::sync::{Mutex, PoisonError};

use lapwing_traces::event::{LaneId, LaneKind, MessageId, NameId, Sending, SpanId, What};
use lapwing_traces::{Nanos, Recorder, Scope, Writer};

use crate::message::{Posted, SchedulerMessage, StreamEvent};

mod scheduler;
mod worker;

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

    fn record(&mut self, at: Nanos, what: What) {
        let lane = self.lane;
        self.writer().record(at, lane, what);
    }

    fn span(&mut self) -> SpanId {
        self.writer().span()
    }

    /// Records that a message leaves now.
    fn post(&mut self, name: NameId, span: Option<SpanId>) -> (MessageId, Nanos) {
        let (message, at) = (self.writer().message(), self.now());
        let sending = Sending { message, span, name, bytes: 0, hold: None };
        self.record(at, What::Sent(sending));
        (message, at)
    }
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
#[derive(Debug)]
pub(super) struct CallerTape {
    recorder: Recorder,
    tape: Mutex<Tape>,
    submit: NameId,
    wake: NameId,
    shutdown: NameId,
    died: NameId,
}

impl CallerTape {
    pub(super) fn new(recorder: &Recorder) -> CallerTape {
        CallerTape {
            recorder: recorder.clone(),
            tape: Mutex::new(Tape::new(recorder, "caller", LaneKind::Thread)),
            submit: recorder.name("submit"),
            wake: recorder.name("wake"),
            shutdown: recorder.name("shutdown"),
            died: recorder.name("actor died"),
        }
    }

    /// A message from outside leaves for the scheduler.
    pub(super) fn post(&self, message: SchedulerMessage) -> Posted<SchedulerMessage> {
        let (name, traced) = match &message {
            SchedulerMessage::Submit(submit) => (self.submit, submit.traced),
            SchedulerMessage::Wake => (self.wake, false),
            SchedulerMessage::Shutdown(_) => (self.shutdown, false),
            SchedulerMessage::ActorDied(_) => (self.died, false),
            SchedulerMessage::Progress(_) => return Posted::unrecorded(message),
        };
        if !self.recorder.wants(traced) {
            return Posted::unrecorded(message);
        }
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        Posted { message, sent: Some(tape.post(name, None)) }
    }

    /// A caller takes an event out of its stream.
    pub(super) fn received(&self, event: &Posted<StreamEvent>) {
        let Some((message, _)) = event.sent else { return };
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let now = tape.now();
        tape.record(now, What::Received(message, None));
    }
}

//! What the scheduler tells a recorder.

use lapwing_traces::event::{
    Activity, EventKind, LaneKind, MessageId, Milestone, NameId, Sending, SpanId, SpanInfo, Tags,
};
use lapwing_traces::{Nanos, Recorder};

use super::{EventNames, Outgoing, Tape};
use crate::drive::wait::WaitRecord;
use crate::message::{Delivery, Emission, Posted, SchedulerMessage, Sent, Stall};
use crate::scheduler::{Note, Noted, Scheduler};

/// The scheduler's end of a recorder.
#[derive(Debug)]
pub(in super::super) struct SchedulerTape {
    tape: Tape,
    names: Names,
    events: EventNames,
    counters: [(NameId, Option<i64>); 4],
    turn: Option<Turn>,
}

#[derive(Debug)]
struct Names {
    submit: NameId,
    progress: NameId,
    prepared: NameId,
    prepare: NameId,
    wake: NameId,
    died: NameId,
    shutdown: NameId,
    chunk: NameId,
    kv: NameId,
    wait: NameId,
}

/// The handling of one message.
#[derive(Debug)]
struct Turn {
    span: SpanId,
    name: NameId,
    received: Option<(MessageId, Nanos)>,
    waited: Option<WaitRecord>,
    start: Nanos,
    /// Something that it did is recorded, and hence it is.
    wanted: bool,
}

impl SchedulerTape {
    pub(in super::super) fn new(recorder: &Recorder) -> SchedulerTape {
        let name = |text| recorder.name(text);
        SchedulerTape {
            tape: Tape::new(recorder, "scheduler", LaneKind::Actor),
            names: Names {
                submit: name("submit"),
                progress: name("progress"),
                prepared: name("prepared"),
                prepare: name("prepare"),
                wake: name("wake"),
                died: name("actor died"),
                shutdown: name("shutdown"),
                chunk: name("chunk"),
                kv: name("KV pages"),
                wait: name("next message"),
            },
            events: EventNames::new(recorder),
            counters: [
                "waiting sequences",
                "running sequences",
                "chunks in flight",
                "KV pages in use",
            ]
            .map(|text| (recorder.name(text), None)),
            turn: None,
        }
    }

    /// Whether anything is recorded.
    pub(in super::super) fn is_on(&self) -> bool {
        self.tape.is_on()
    }

    /// A message has come, for which the scheduler has waited like that.
    pub(in super::super) fn begin(
        &mut self,
        posted: &Posted<SchedulerMessage>,
        waited: Option<WaitRecord>,
    ) {
        if !self.tape.is_on() {
            return;
        }
        let (name, traced) = match &posted.message {
            SchedulerMessage::Submit(submit) => (self.names.submit, submit.traced),
            SchedulerMessage::Progress(progress) => (self.names.progress, progress.record.traced),
            SchedulerMessage::Prepared(_) => (self.names.prepared, false),
            SchedulerMessage::Wake => (self.names.wake, false),
            SchedulerMessage::ActorDied(_) => (self.names.died, false),
            SchedulerMessage::Shutdown(_) => (self.names.shutdown, false),
        };
        self.turn = Some(Turn {
            span: self.tape.span(),
            name,
            received: posted.sent,
            waited,
            start: self.tape.now(),
            wanted: self.tape.wants(traced),
        });
    }

    /// A chunk, or a part of its first stage, leaves for its device.
    pub(in super::super) fn send(&mut self, delivery: &mut Delivery, stall: Option<Stall>) {
        let Some(turn) = &mut self.turn else { return };
        if !self.tape.wants(delivery.record().traced) {
            return;
        }
        turn.wanted = true;
        let (message, at) = (self.tape.writer().message(), self.tape.now());
        let span = Some(turn.span);
        let sending = Sending { message, span, name: self.names.chunk, bytes: 0, stall };
        self.tape.record(at, EventKind::Sent(sending));
        let record = delivery.record_mut();
        record.dispatched = Some(at);
        record.sent = Some((message, at));
    }

    /// A request to prepare graphs leaves for a device's preparation lane.
    pub(in super::super) fn prepare(&mut self) -> Sent {
        let turn = self.turn.as_mut()?;
        if !self.tape.wants(false) {
            return None;
        }
        turn.wanted = true;
        Some(self.tape.post(self.names.prepare, Some(turn.span)))
    }

    /// An event leaves for its caller.
    pub(in super::super) fn emit(&mut self, emission: Emission) -> Outgoing {
        let Emission { traced, sink, event: message, .. } = emission;
        let sent = match &mut self.turn {
            Some(turn) if self.tape.wants(traced) => {
                turn.wanted = true;
                Some(self.tape.post(self.events.of(&message), Some(turn.span)))
            }
            _ => None,
        };
        Outgoing { sink, event: Posted { message, sent } }
    }

    /// Something happened to a request.
    pub(in super::super) fn note(&mut self, note: Note, kv_page_bytes: usize) {
        let Some(turn) = &self.turn else { return };
        if !self.tape.wants(note.traced) {
            return;
        }
        match note.what {
            Noted::Milestone(milestone, value) => {
                let at = match (milestone, turn.received) {
                    (Milestone::Submitted, Some((_, sent))) => sent,
                    _ => self.tape.now(),
                };
                self.tape.record(at, EventKind::Request(note.sequence.0, milestone, value));
            }
            Noted::Freed(0) => {}
            Noted::Freed(pages) => {
                let bytes = pages as u64 * kv_page_bytes as u64;
                self.tape.record(self.tape.now(), EventKind::Freed(self.names.kv, bytes));
            }
        }
    }

    /// The message is dealt with.
    pub(in super::super) fn end(&mut self, scheduler: &Scheduler) {
        let Some(turn) = self.turn.take().filter(|turn| turn.wanted) else { return };
        let values = [
            scheduler.waiting(),
            scheduler.running(),
            scheduler.chunks_in_flight(),
            scheduler.kv_pages_in_use(),
        ];
        let end = self.tape.now();
        if let Some(wait) = turn.waited {
            let info = wait.info(self.names.wait, None);
            self.tape.record(wait.end, EventKind::Waited(info));
            self.tape.record(turn.start, EventKind::Woke(wait.since));
        }
        if let Some((message, _)) = turn.received {
            self.tape.record(turn.start, EventKind::Received(message, Some(turn.span)));
        }
        for ((name, last), value) in self.counters.iter_mut().zip(values) {
            let value = value as i64;
            if last.replace(value) != Some(value) {
                self.tape.record(end, EventKind::Counter(*name, value));
            }
        }
        let info = SpanInfo {
            name: turn.name,
            activity: Activity::Schedule,
            parent: None,
            tags: Tags::default(),
        };
        self.tape.record(end, EventKind::Ran(turn.span, info, turn.start));
    }
}

//! Trace events of the scheduler.

use lapwing_traces::event::{
    Activity, EventKind, LaneKind, Limited, MessageId, Milestone, NameId, Need, Rated, Routed,
    Sending, SpanId, SpanInfo, Tags,
};
use lapwing_traces::{Nanos, Recorder};

use super::{EventNames, Outgoing, TraceWriter};
use crate::drive::wait::WaitRecord;
use crate::message::{Delivery, Emission, PrepareGraphs, SchedulerMessage, TraceContext, Traced};
use crate::scheduler::{Limit, Note, Noted, Scheduler, Stall};

/// The scheduler's connection to a recorder.
#[derive(Debug)]
pub(in super::super) struct SchedulerTrace {
    trace: TraceWriter,
    names: Names,
    events: EventNames,
    counters: [(NameId, Option<i64>); 4],
    handling: Option<Handling>,
}

#[derive(Debug)]
struct Names {
    submit: NameId,
    progress: NameId,
    prepared: NameId,
    rested: NameId,
    prepare: NameId,
    wake: NameId,
    roll_back: NameId,
    died: NameId,
    shutdown: NameId,
    chunk: NameId,
    meanwhile: NameId,
    kv: NameId,
    wait: NameId,
}

/// The handling of one message.
#[derive(Debug)]
struct Handling {
    span: SpanId,
    name: NameId,
    received: Option<(MessageId, Nanos)>,
    waited: Option<WaitRecord>,
    start: Nanos,
    /// Whether the span is recorded: it is if any of its effects is.
    wanted: bool,
}

impl SchedulerTrace {
    pub(in super::super) fn new(recorder: &Recorder) -> SchedulerTrace {
        let name = |text| recorder.name(text);
        SchedulerTrace {
            trace: TraceWriter::new(recorder, "scheduler", LaneKind::Actor),
            names: Names {
                submit: name("submit"),
                progress: name("progress"),
                prepared: name("prepared"),
                rested: name("rested"),
                prepare: name("prepare"),
                wake: name("wake"),
                roll_back: name("roll back"),
                died: name("actor died"),
                shutdown: name("shutdown"),
                chunk: name("chunk"),
                meanwhile: name("chunk whose graphs are not ready"),
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
            handling: None,
        }
    }

    /// Whether anything is recorded.
    pub(in super::super) fn is_on(&self) -> bool {
        self.trace.is_on()
    }

    /// Records that a message has arrived after the wait `waited`.
    pub(in super::super) fn begin(
        &mut self,
        posted: &Traced<SchedulerMessage>,
        waited: Option<WaitRecord>,
    ) {
        if !self.trace.is_on() {
            return;
        }
        let name = match &posted.message {
            SchedulerMessage::Submit(_) => self.names.submit,
            SchedulerMessage::Progress(_) => self.names.progress,
            SchedulerMessage::Prepared(_) => self.names.prepared,
            SchedulerMessage::Rested => self.names.rested,
            SchedulerMessage::Wake => self.names.wake,
            SchedulerMessage::RollBack(_) => self.names.roll_back,
            SchedulerMessage::ActorDied(_) => self.names.died,
            SchedulerMessage::Shutdown(_) => self.names.shutdown,
        };
        self.handling = Some(Handling {
            span: self.trace.span(),
            name,
            received: posted.context.sent,
            waited,
            start: self.trace.now(),
            wanted: self.trace.wants(posted.context.requested),
        });
    }

    /// Records that a chunk, or a part of its first stage, is sent to its device.
    pub(in super::super) fn send(&mut self, delivery: &mut Traced<Delivery>, stall: Option<Stall>) {
        let Some(handling) = &mut self.handling else { return };
        if !self.trace.wants(delivery.context.requested) {
            return;
        }
        handling.wanted = true;
        let (message, at) = (self.trace.writer().message(), self.trace.now());
        let span = Some(handling.span);
        let name = match delivery.chunk().route.is_meanwhile {
            true => self.names.meanwhile,
            false => self.names.chunk,
        };
        let sending = Sending { message, span, name, bytes: 0, stall };
        self.trace.record(at, EventKind::Sent(sending));
        delivery.context.dispatched = Some(at);
        delivery.context.sent = Some((message, at));
    }

    /// Records what a chunk that was just sent needs of the devices.
    pub(in super::super) fn need(
        &mut self,
        delivery: &Traced<Delivery>,
        scheduler: &mut Scheduler,
    ) {
        let is_first = match &delivery.message {
            Delivery::Chunk(_) => true,
            Delivery::Part(part) => part.index() == 0,
        };
        let Some((_, at)) = delivery.context.sent.filter(|_| is_first) else { return };
        let chunk = delivery.chunk();
        let Some(needs) = scheduler.needs(chunk) else { return };
        let path = (Nanos(0) + needs.path).0;
        for block in needs.blocks.iter().filter(|block| block.times.len() <= Need::DEVICES) {
            let mut times = [Need::NEVER; Need::DEVICES];
            for (time, known) in times.iter_mut().zip(&block.times) {
                *time = known.map_or(Need::NEVER, |known| (Nanos(0) + known).0);
            }
            let need = Need { chunk: chunk.id, count: block.count, times, path };
            self.trace.record(at, EventKind::Need(need));
        }
    }

    /// Records that a request to prepare graphs is sent to a device's preparation lane.
    pub(in super::super) fn prepare(
        &mut self,
        asked: Traced<PrepareGraphs>,
    ) -> Traced<PrepareGraphs> {
        let Traced { message, context } = asked;
        let context = context.same_request();
        let wanted = self.trace.wants(context.requested);
        let Some(handling) = self.handling.as_mut().filter(|_| wanted) else {
            return Traced::new(message, context);
        };
        handling.wanted = true;
        let sent = Some(self.trace.post(self.names.prepare, Some(handling.span)));
        Traced::new(message, TraceContext { sent, ..context })
    }

    /// Records that an event is sent to its caller.
    pub(in super::super) fn emit(&mut self, emission: Traced<Emission>) -> Outgoing {
        let Traced { message: Emission { sink, event: message, .. }, context } = emission;
        let sent = match &mut self.handling {
            Some(handling) if self.trace.wants(context.requested) => {
                handling.wanted = true;
                Some(self.trace.post(self.events.of(&message), Some(handling.span)))
            }
            _ => None,
        };
        Outgoing { sink, event: Traced::new(message, TraceContext { sent, ..context }) }
    }

    /// Records an event of a request.
    pub(in super::super) fn note(&mut self, note: Traced<Note>, kv_page_bytes: usize) {
        let Some(handling) = &self.handling else { return };
        if !self.trace.wants(note.context.requested) {
            return;
        }
        let Note { sequence, what } = note.message;
        match what {
            Noted::Milestone(milestone, value) => {
                let at = match (milestone, handling.received) {
                    (Milestone::Submitted, Some((_, sent))) => sent,
                    _ => self.trace.now(),
                };
                self.trace.record(at, EventKind::Request(sequence.0, milestone, value));
            }
            Noted::Rows(chunk, rows) => {
                self.trace.record(self.trace.now(), EventKind::Rows(chunk, rows));
            }
            Noted::Limited(chunk, Limit { stream, slack }) => {
                let (stream, slack) = (stream.map(|stream| stream.0), (Nanos(0) + slack).0);
                let limited = Limited { chunk, stream, slack };
                self.trace.record(self.trace.now(), EventKind::Limited(limited));
            }
            Noted::Routed(chunk, chosen) => {
                let names = [&chosen.devices, &chosen.alone];
                let [route, alone] = names.map(|name| self.trace.name(name));
                let [end, alone_end] = [chosen.end, chosen.alone_end].map(|it| (Nanos(0) + it).0);
                let is_due = chosen.is_due;
                let routed = Routed { chunk, route, end, alone, alone_end, is_due };
                self.trace.record(self.trace.now(), EventKind::Routed(routed));
                for rated in &chosen.rated {
                    let route = self.trace.name(&rated.devices);
                    let times = [rated.end, rated.alone, rated.busy];
                    let [end, alone, busy] = times.map(|it| (Nanos(0) + it).0);
                    let is_ready = rated.is_ready;
                    let rated = Rated { chunk, route, end, alone, busy, is_ready };
                    self.trace.record(self.trace.now(), EventKind::Rated(rated));
                }
            }
            Noted::Freed(0) => {}
            Noted::Freed(pages) => {
                let bytes = pages as u64 * kv_page_bytes as u64;
                self.trace.record(self.trace.now(), EventKind::Freed(self.names.kv, bytes));
            }
        }
    }

    /// Records that the message is handled.
    pub(in super::super) fn end(&mut self, scheduler: &Scheduler) {
        let Some(handling) = self.handling.take().filter(|handling| handling.wanted) else {
            return;
        };
        let values = [
            scheduler.waiting(),
            scheduler.running(),
            scheduler.chunks_in_flight(),
            scheduler.kv_pages_in_use(),
        ];
        let end = self.trace.now();
        if let Some(wait) = handling.waited {
            let info = wait.info(self.names.wait, None);
            self.trace.record(wait.end, EventKind::Waited(info));
            self.trace.record(handling.start, EventKind::Woke(wait.since));
        }
        if let Some((message, _)) = handling.received {
            self.trace.record(handling.start, EventKind::Received(message, Some(handling.span)));
        }
        for ((name, last), value) in self.counters.iter_mut().zip(values) {
            let value = value as i64;
            if last.replace(value) != Some(value) {
                self.trace.record(end, EventKind::Counter(*name, value));
            }
        }
        let info = SpanInfo {
            name: handling.name,
            activity: Activity::Schedule,
            parent: None,
            tags: Tags::default(),
        };
        self.trace.record(end, EventKind::Ran(handling.span, info, handling.start));
    }
}

//! Trace events of the host work of a device's worker: forwarding, merging and sampling what stages have computed.

use lapwing_traces::Nanos;
use lapwing_traces::event::{Activity, EventKind, Milestone, Order, SpanId, SpanInfo, Tags};

use super::super::Outgoing;
use super::super::tags::{epoch_of, phase_of};
use super::WorkerTrace;
use crate::message::{
    Chunk, Delivery, Emission, PartDone, Progress, StreamEvent, TraceContext, Traced,
};

/// Host work that follows a stage.
#[derive(Debug)]
pub(super) struct FollowUp {
    pub(super) span: SpanId,
    pub(super) info: SpanInfo,
    pub(super) start: Nanos,
    /// Time of its first token. Those of a draft that was accepted arrive together.
    pub(super) tokens_at: Option<Nanos>,
}

/// Tags of host work on a whole chunk.
fn host_tags(chunk: &Chunk) -> Tags {
    Tags {
        chunk: Some(chunk.id),
        stage: u16::try_from(chunk.cursor).ok(),
        role: chunk.role(),
        phase: Some(phase_of(chunk)),
        rows: u32::try_from(chunk.batch().rows()).unwrap_or(u32::MAX),
        ..Tags::default()
    }
}

impl WorkerTrace {
    /// Begins host work, and records after which host work the worker's thread did it.
    fn follow_up(&mut self, follow_up: FollowUp) {
        let FollowUp { span, start, .. } = follow_up;
        if let Some(order) = &mut self.order
            && let Some(before) = order.host.replace(span)
        {
            self.trace.record(start, EventKind::After(span, before, Order::Queue));
        }
        self.follow_up = Some(follow_up);
    }

    /// Records that the device has run the stage. `computed` is set if there are results to forward. For
    /// a part it also records the message to the part that finishes last.
    pub(in crate::drive) fn finish(&mut self, delivery: &mut Traced<Delivery>, computed: bool) {
        delivery.context.ran = true;
        self.end();
        let Some(stage) = self.stage.take() else { return };
        let now = self.trace.now();
        self.trace.record(now, EventKind::Finished(stage.span));
        let chunk = delivery.chunk();
        if computed {
            let nodes = chunk.ordered_nodes();
            chunk.sequences.iter().for_each(|rows| rows.progress.computed_in(&nodes, stage.span));
        }
        let next = chunk.route.stages.get(chunk.cursor + 1);
        let decides_here = next
            .is_some_and(|next| next.decides() && next.only_device() == Some(delivery.device()));
        let (name, activity) = match (computed, decides_here) {
            (false, _) => (self.names.drop, Activity::Other),
            (true, true) => (self.names.sample, Activity::Sample),
            (true, false) => (self.names.forward, Activity::Schedule),
        };
        let tags = Tags { bytes: 0, flops: 0, ..stage.tags };
        let info = SpanInfo { name, activity, parent: None, tags };
        let span = self.trace.span();
        self.follow_up(FollowUp { span, info, start: now, tokens_at: None });
        if let Some(order) = &mut self.order {
            order.stage = Some(stage.span);
            self.trace.record(now, EventKind::After(span, stage.span, Order::Need));
        }
        if let Delivery::Part(_) = delivery.message {
            delivery.context.sent = Some(self.trace.post(self.names.part, Some(span)));
        }
    }

    /// Records that sampling begins. Right after the chunk's last stage, sampling belongs to the stage's
    /// follow-up; otherwise the chunk has come from another device and gets a span of its own.
    pub(in crate::drive) fn decide_begins(&mut self, chunk: &Traced<Box<Chunk>>) {
        let in_follow_up =
            self.follow_up.as_ref().is_some_and(|f| f.info.tags.chunk == Some(chunk.id));
        if in_follow_up || !self.trace.wants(chunk.context.requested) {
            return;
        }
        self.end();
        let received = chunk.context.span.filter(|_| !chunk.context.ran);
        let span = received.unwrap_or_else(|| self.trace.span());
        let tags = Tags { epoch: epoch_of(chunk), ..host_tags(chunk) };
        let (name, activity) = (self.names.sample, Activity::Sample);
        let info = SpanInfo { name, activity, parent: None, tags };
        let start = self.trace.now();
        self.follow_up(FollowUp { span, info, start, tokens_at: None });
    }

    /// Records that the merge of a stage's parts begins.
    pub(in crate::drive) fn merge_begins(
        &mut self,
        chunk: &Traced<Box<Chunk>>,
        parts: &[PartDone],
    ) {
        self.end();
        if !self.trace.wants(chunk.context.requested) {
            return;
        }
        let (span, now) = (self.trace.span(), self.trace.now());
        for (message, _) in parts.iter().filter_map(|part| part.context.sent) {
            self.trace.record(now, EventKind::Received(message, Some(span)));
        }
        let tags = host_tags(chunk);
        let (name, activity) = (self.names.merge, Activity::Copy);
        let info = SpanInfo { name, activity, parent: None, tags };
        self.follow_up(FollowUp { span, info, start: now, tokens_at: None });
    }

    /// Adds the number of bytes read and written to the merge's span.
    pub(in crate::drive) fn merge_ends(&mut self, bytes: u64) {
        if let Some(follow_up) = &mut self.follow_up {
            follow_up.info.tags.bytes = bytes;
        }
    }

    /// Records that a chunk or a part is sent to the device of its next stage.
    pub(in crate::drive) fn forward(&mut self, delivery: &mut Traced<Delivery>) {
        let span = self.follow_up.as_ref().map(|follow_up| follow_up.span);
        let name = match delivery.message {
            Delivery::Chunk(_) => self.names.chunk,
            Delivery::Part(_) => self.names.part,
        };
        delivery.context.sent = span.map(|span| self.trace.post(name, Some(span)));
    }

    /// Records that an event is sent to its caller.
    pub(in crate::drive) fn emit(&mut self, emission: Traced<Emission>) -> Outgoing {
        let Traced { message: Emission { sequence, sink, event: message }, context } = emission;
        // A recorded chunk may also hold rows of requests that are not recorded.
        let follow_up = self.follow_up.as_ref().filter(|_| self.trace.wants(context.requested));
        let follow_up = follow_up.map(|follow_up| follow_up.span);
        let sent = follow_up.map(|span| self.trace.post(self.events.of(&message), Some(span)));
        let tokens = match &message {
            StreamEvent::Token(_) => 1,
            StreamEvent::Scores(scores) => scores.len() as u64,
            StreamEvent::Prompt(_)
            | StreamEvent::Hidden(_)
            | StreamEvent::Finished(_)
            | StreamEvent::Failed(_) => 0,
        };
        if let (Some((_, at)), Some(follow_up)) = (sent, &mut self.follow_up)
            && tokens > 0
        {
            let at = *follow_up.tokens_at.get_or_insert(at);
            self.trace.record(at, EventKind::Request(sequence.0, Milestone::Token, tokens));
        }
        Outgoing { sink, event: Traced::new(message, TraceContext { sent, ..context }) }
    }

    /// Records that a chunk's end is reported to the scheduler.
    pub(in crate::drive) fn report(&mut self, message: Traced<Progress>) -> Traced<Progress> {
        let record = message.context;
        let in_follow_up =
            self.follow_up.as_ref().is_some_and(|f| f.info.tags.chunk == Some(message.chunk));
        if !in_follow_up {
            // The chunk was dropped, before or after its stage ran.
            self.end();
            let wanted = record.span.filter(|_| self.trace.wants(record.requested));
            let Some(span) = wanted.map(|span| if record.ran { self.trace.span() } else { span })
            else {
                return Traced { context: record.same_request(), ..message };
            };
            let tags = Tags { chunk: Some(message.chunk), ..Tags::default() };
            let (name, activity) = (self.names.drop, Activity::Other);
            let info = SpanInfo { name, activity, parent: None, tags };
            let start = self.trace.now();
            self.follow_up(FollowUp { span, info, start, tokens_at: None });
        }
        let span = self.follow_up.as_ref().map(|follow_up| follow_up.span);
        let sent = span.map(|span| self.trace.post(self.names.progress, Some(span)));
        let context = TraceContext { sent, ..record.same_request() };
        Traced { context, ..message }
    }

    /// Records that the follow-up of a stage has ended.
    pub(in crate::drive) fn end(&mut self) {
        if let Some(follow_up) = self.follow_up.take() {
            let now = self.trace.now();
            self.trace.record(now, EventKind::Ran(follow_up.span, follow_up.info, follow_up.start));
        }
    }
}

//! Trace events of a device's worker.

use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::device::{Observer, Step};
use lapwing_kernels::graph::Graph;
use lapwing_plan::shape::transfer_bytes;
use lapwing_plan::{Phase, StageWork};
use lapwing_traces::event::{
    Activity, EventKind, LaneKind, Milestone, NameId, SpanId, SpanInfo, Tags,
};
use lapwing_traces::{Nanos, Recorder};

use super::names::{ModelNames, layer_of};
use super::{EventNames, Outgoing, TraceWriter};
use crate::drive::modelled::{Segment, SegmentKind};
use crate::drive::wait::WaitRecord;
use crate::message::{
    Chunk, Delivery, Emission, PartDone, Progress, StreamEvent, TraceContext, Traced,
};

/// A worker's connection to a recorder.
#[derive(Debug)]
pub(in super::super) struct WorkerTrace {
    trace: TraceWriter,
    /// By model.
    models: Vec<ModelNames>,
    names: Names,
    events: EventNames,
    /// Cost of each node of the present stage.
    costs: Vec<Cost>,
    stage: Option<Stage>,
    /// The host work after a stage: merging, sampling and forwarding its results.
    follow_up: Option<FollowUp>,
    depth: Option<i64>,
    /// Name of the latest stage, which names the waits after it.
    latest: NameId,
}

#[derive(Debug)]
struct Names {
    phases: [NameId; 3],
    transfer: NameId,
    device: NameId,
    sample: NameId,
    forward: NameId,
    drop: NameId,
    chunk: NameId,
    part: NameId,
    merge: NameId,
    overhead: NameId,
    prepare: NameId,
    convert: NameId,
    frame: NameId,
    progress: NameId,
    depth: NameId,
}

/// Tags of host work on a whole chunk.
fn host_tags(chunk: &Chunk) -> Tags {
    Tags {
        chunk: Some(chunk.id),
        stage: u16::try_from(chunk.cursor).ok(),
        role: chunk.role(),
        rows: u32::try_from(chunk.batch().rows()).unwrap_or(u32::MAX),
        ..Tags::default()
    }
}

/// The latest epoch of a chunk's sequences.
fn epoch_of(chunk: &Chunk) -> u32 {
    let epochs = chunk.sequences.iter().map(|rows| rows.epoch);
    u32::try_from(epochs.max().unwrap_or(0)).unwrap_or(u32::MAX)
}

/// The running stage.
#[derive(Debug)]
struct Stage {
    /// Index of its model.
    model: usize,
    span: SpanId,
    tags: Tags,
    first_node: usize,
    /// Time at which the latest node or step ended.
    last: Nanos,
}

/// Host work that follows a stage.
#[derive(Debug)]
struct FollowUp {
    span: SpanId,
    info: SpanInfo,
    start: Nanos,
}

impl WorkerTrace {
    pub(in super::super) fn new(
        recorder: &Recorder,
        device: &str,
        graphs: &[Arc<Graph>],
    ) -> WorkerTrace {
        let name = |text| recorder.name(text);
        WorkerTrace {
            trace: TraceWriter::new(recorder, device, LaneKind::Device),
            models: graphs.iter().map(ModelNames::new).collect(),
            names: Names {
                phases: [Phase::Prefill, Phase::Decode, Phase::Mixed].map(|p| name(p.name())),
                transfer: name("transfer"),
                device: name("on the device"),
                sample: name("sample"),
                forward: name("forward"),
                drop: name("drop"),
                chunk: name("chunk"),
                part: name("part"),
                merge: name("merge"),
                overhead: name("submit"),
                prepare: name("prepare graph"),
                convert: name("convert"),
                frame: name("frame"),
                progress: name("progress"),
                depth: name("chunks waiting"),
            },
            events: EventNames::new(recorder),
            costs: Vec::new(),
            stage: None,
            follow_up: None,
            depth: None,
            latest: name("start"),
        }
    }

    /// Whether anything is recorded.
    pub(in super::super) fn is_on(&self) -> bool {
        self.trace.is_on()
    }

    /// Records that a chunk or a part was taken out of the mailbox after the wait `waited`.
    pub(in super::super) fn receive(
        &mut self,
        delivery: &mut Traced<Delivery>,
        waited: Option<WaitRecord>,
    ) {
        let record = &mut delivery.context;
        // Until now, this is the span of the stage that sent the chunk.
        let target = record.span.take();
        record.ran = false;
        if !self.trace.wants(record.requested) {
            return;
        }
        let (span, now) = (self.trace.span(), self.trace.now());
        record.span = Some(span);
        if let Some(wait) = waited {
            let info = wait.info(self.latest, target);
            self.trace.record(wait.end, EventKind::Waited(info));
            self.trace.record(now, EventKind::Woke(wait.since));
        }
        if let Some((message, _)) = record.sent {
            self.trace.record(now, EventKind::Received(message, Some(span)));
        }
    }

    /// Records that a nudge was taken out of the mailbox after the wait `waited`.
    pub(in super::super) fn nudged(&mut self, waited: Option<WaitRecord>) {
        if let Some(wait) = waited.filter(|_| self.trace.wants(false)) {
            self.trace.record(wait.end, EventKind::Waited(wait.info(self.latest, None)));
        }
    }

    /// Records the number of chunks that wait for the device.
    pub(in super::super) fn waiting(&mut self, chunks: usize) {
        let value = chunks as i64;
        if self.depth != Some(value) && self.trace.wants(false) {
            self.depth = Some(value);
            self.trace.record(self.trace.now(), EventKind::Counter(self.names.depth, value));
        }
    }

    /// Records that a stage, or a part of one, begins: at `at`, or now.
    pub(in super::super) fn start(&mut self, delivery: &Traced<Delivery>, at: Option<Nanos>) {
        self.end();
        let record = delivery.context;
        if !self.trace.wants(record.requested) {
            return;
        }
        let (chunk, part) = (delivery.chunk(), &delivery.part().part);
        let nodes = chunk.stage().nodes.clone();
        self.costs.clear();
        let graph = Arc::clone(self.graph(chunk));
        self.costs.extend(nodes.clone().map(|n| graph.part_cost(n, part, chunk.batch())));
        let mut cost = Cost::default();
        self.costs.iter().for_each(|c| cost += *c);
        if let StageWork::Transfer { values, .. } = &chunk.stage().work {
            cost.bytes = transfer_bytes(&graph, values, chunk.batch());
        }
        let tags = Tags {
            chunk: Some(chunk.id),
            request: match &chunk.sequences[..] {
                [one] => Some(one.sequence.request().0),
                _ => None,
            },
            stage: u16::try_from(chunk.cursor).ok(),
            layer: layer_of(&graph.nodes()[nodes.clone()]),
            role: chunk.role(),
            rows: u32::try_from(part.row_count(chunk.batch())).unwrap_or(u32::MAX),
            epoch: epoch_of(chunk),
            bytes: cost.bytes,
            flops: cost.flops,
        };
        // Recording may have been switched on since it was received.
        let span = record.span.unwrap_or_else(|| self.trace.span());
        if let Some(at) = record.dispatched {
            self.trace.record(at, EventKind::Queued(span));
        }
        if let Some((_, at)) = record.sent {
            self.trace.record(at, EventKind::Submitted(span));
        }
        let name = self.stage_name(chunk);
        self.latest = name;
        let activity = if chunk.stage().computes() { Activity::Compute } else { Activity::Copy };
        let info = SpanInfo { name, activity, parent: None, tags };
        let now = at.unwrap_or_else(|| self.trace.now());
        self.trace.record(now, EventKind::Started(span, info));
        let model = chunk.route.model.0;
        self.stage = Some(Stage { span, tags, model, first_node: nodes.start, last: now });
    }

    /// The graph of a chunk's model.
    fn graph(&mut self, chunk: &Chunk) -> &Arc<Graph> {
        self.models[chunk.route.model.0].start(&self.trace.recorder)
    }

    /// Records when the device began and ended the present stage, by the device's own clock.
    pub(in super::super) fn stamped(&mut self, begin: Nanos, end: Nanos) {
        let Some(stage) = &self.stage else { return };
        let (name, activity) = (self.names.device, Activity::Compute);
        let info = SpanInfo { name, activity, parent: Some(stage.span), tags: stage.tags };
        let span = self.trace.span();
        self.trace.record(end, EventKind::Ran(span, info, begin));
    }

    fn stage_name(&mut self, chunk: &Chunk) -> NameId {
        if !chunk.stage().computes() {
            return self.names.transfer;
        }
        let phase = (chunk.phase, self.names.phases);
        let nodes = chunk.stage().nodes.clone();
        self.models[chunk.route.model.0].stage(nodes, phase, &self.trace.recorder)
    }

    /// Records the modelled segments of the present stage, one after another.
    pub(in super::super) fn play(&mut self, segments: &[Segment]) {
        let Some(stage) = &self.stage else { return };
        let mut start = stage.last;
        for Segment { kind, time, .. } in segments {
            let end = start + *time;
            if !time.is_zero() {
                self.record_segment(*kind, start, end);
            }
            start = end;
        }
    }

    /// Records one dispatch of the present stage.
    fn record_nodes(&mut self, nodes: Range<usize>, start: Nanos, end: Nanos) {
        let Some(stage) = &self.stage else { return };
        let of = &mut self.models[stage.model];
        let mut cost = Cost::default();
        let costs = nodes.clone().map(|node| self.costs.get(node - stage.first_node));
        costs.flatten().for_each(|node| cost += *node);
        let tags = Tags {
            layer: layer_of(&of.graph.nodes()[nodes.clone()]),
            bytes: cost.bytes,
            flops: cost.flops,
            ..stage.tags
        };
        let name = of.dispatch(nodes, &self.trace.recorder);
        let (activity, parent) = (Activity::Compute, Some(stage.span));
        let info = SpanInfo { name, activity, parent, tags };
        let span = self.trace.span();
        self.trace.record(end, EventKind::Ran(span, info, start));
    }

    fn record_segment(&mut self, kind: SegmentKind, start: Nanos, end: Nanos) {
        let Some(stage) = &self.stage else { return };
        let plain = Tags { bytes: 0, flops: 0, ..stage.tags };
        let (name, activity, tags) = match kind {
            SegmentKind::Overhead => (self.names.overhead, Activity::Sync, plain),
            SegmentKind::Frame => (self.names.frame, Activity::Other, plain),
            SegmentKind::Transfer { bytes } => {
                (self.names.transfer, Activity::Copy, Tags { bytes, ..plain })
            }
            SegmentKind::Step(Step::Prepared { rows, bytes, .. }) => {
                let rows = u32::try_from(rows).unwrap_or(u32::MAX);
                (self.names.prepare, Activity::Prepare, Tags { rows, bytes, ..plain })
            }
            SegmentKind::Step(Step::Converted { bytes }) => {
                (self.names.convert, Activity::Convert, Tags { bytes, ..plain })
            }
            SegmentKind::Node(node) => return self.record_nodes(node..node + 1, start, end),
        };
        let info = SpanInfo { name, activity, parent: Some(stage.span), tags };
        let span = self.trace.span();
        self.trace.record(end, EventKind::Ran(span, info, start));
    }

    /// Records that the device has run the stage. `computed` is set if there are results to forward. For
    /// a part it also records the message to the part that finishes last.
    pub(in super::super) fn finish(&mut self, delivery: &mut Traced<Delivery>, computed: bool) {
        delivery.context.ran = true;
        let Some(stage) = self.stage.take() else { return };
        let now = self.trace.now();
        self.trace.record(now, EventKind::Finished(stage.span));
        let chunk = delivery.chunk();
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
        self.follow_up = Some(FollowUp { span, info, start: now });
        if let Delivery::Part(_) = delivery.message {
            delivery.context.sent = Some(self.trace.post(self.names.part, Some(span)));
        }
    }

    /// Records that sampling begins. Right after the chunk's last stage, sampling belongs to the stage's
    /// follow-up; otherwise the chunk has come from another device and gets a span of its own.
    pub(in super::super) fn decide_begins(&mut self, chunk: &Traced<Box<Chunk>>) {
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
        self.follow_up = Some(FollowUp { span, info, start: self.trace.now() });
    }

    /// Records that the merge of a stage's parts begins.
    pub(in super::super) fn merge_begins(
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
        self.follow_up = Some(FollowUp { span, info, start: now });
    }

    /// Adds the number of bytes read and written to the merge's span.
    pub(in super::super) fn merge_ends(&mut self, bytes: u64) {
        if let Some(follow_up) = &mut self.follow_up {
            follow_up.info.tags.bytes = bytes;
        }
    }

    /// Records that a chunk or a part is sent to the device of its next stage.
    pub(in super::super) fn forward(&mut self, delivery: &mut Traced<Delivery>) {
        let span = self.follow_up.as_ref().map(|follow_up| follow_up.span);
        let name = match delivery.message {
            Delivery::Chunk(_) => self.names.chunk,
            Delivery::Part(_) => self.names.part,
        };
        delivery.context.sent = span.map(|span| self.trace.post(name, Some(span)));
    }

    /// Records that an event is sent to its caller.
    pub(in super::super) fn emit(&mut self, emission: Traced<Emission>) -> Outgoing {
        let Traced { message: Emission { sequence, sink, event: message }, context } = emission;
        // A recorded chunk may also hold rows of requests that are not recorded.
        let follow_up = self.follow_up.as_ref().filter(|_| self.trace.wants(context.requested));
        let follow_up = follow_up.map(|follow_up| follow_up.span);
        let sent = follow_up.map(|span| self.trace.post(self.events.of(&message), Some(span)));
        let tokens = match &message {
            StreamEvent::Token(_) => 1,
            StreamEvent::Scores(scores) => scores.len() as u64,
            StreamEvent::Hidden(_) | StreamEvent::Finished(_) | StreamEvent::Failed(_) => 0,
        };
        if let Some((_, at)) = sent
            && tokens > 0
        {
            self.trace.record(at, EventKind::Request(sequence.0, Milestone::Token, tokens));
        }
        Outgoing { sink, event: Traced::new(message, TraceContext { sent, ..context }) }
    }

    /// Records that a chunk's end is reported to the scheduler.
    pub(in super::super) fn report(&mut self, message: Traced<Progress>) -> Traced<Progress> {
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
            self.follow_up = Some(FollowUp { span, info, start: self.trace.now() });
        }
        let span = self.follow_up.as_ref().map(|follow_up| follow_up.span);
        let sent = span.map(|span| self.trace.post(self.names.progress, Some(span)));
        let context = TraceContext { sent, ..record.same_request() };
        Traced { context, ..message }
    }

    /// Records that the follow-up of a stage has ended.
    pub(in super::super) fn end(&mut self) {
        if let Some(follow_up) = self.follow_up.take() {
            let now = self.trace.now();
            self.trace.record(now, EventKind::Ran(follow_up.span, follow_up.info, follow_up.start));
        }
    }
}

impl Observer for WorkerTrace {
    fn nodes_done(&mut self, nodes: Range<usize>) {
        if let Some((start, end)) = self.since_last() {
            self.record_nodes(nodes, start, end);
        }
    }

    fn step_done(&mut self, step: Step) {
        if let Some((start, end)) = self.since_last() {
            self.record_segment(SegmentKind::Step(step), start, end);
        }
    }
}

impl WorkerTrace {
    /// The time from the end of the previous segment of the present stage until now.
    fn since_last(&mut self) -> Option<(Nanos, Nanos)> {
        let stage = self.stage.as_mut()?;
        let now = self.trace.recorder.clock().now();
        Some((std::mem::replace(&mut stage.last, now), now))
    }
}

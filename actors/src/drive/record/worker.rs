//! What a device's worker tells a recorder.

use std::collections::HashMap;
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

use super::{EventNames, Outgoing, TraceWriter};
use crate::drive::modelled::{Did, Segment};
use crate::drive::wait::WaitRecord;
use crate::message::{
    Chunk, Delivery, Emission, PartDone, Progress, StreamEvent, TraceContext, Traced,
};

/// A worker's end of a recorder.
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
    /// What comes after a stage: its results are sent on.
    tail: Option<Tail>,
    depth: Option<i64>,
    /// Names the waits after the latest stage.
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

/// A model's graph, and the names of its stages.
#[derive(Debug)]
struct ModelNames {
    graph: Arc<Graph>,
    /// Role of each node of the graph; filled when something is first recorded.
    roles: Vec<NameId>,
    /// Names of stages that are not the whole graph.
    stages: HashMap<Range<usize>, NameId>,
}

impl ModelNames {
    fn new(graph: &Arc<Graph>) -> ModelNames {
        ModelNames { graph: Arc::clone(graph), roles: Vec::new(), stages: HashMap::new() }
    }
}

/// Tags of what a worker's thread does to a whole chunk.
fn host_tags(chunk: &Chunk) -> Tags {
    Tags {
        chunk: Some(chunk.id),
        stage: u16::try_from(chunk.cursor).ok(),
        rows: u32::try_from(chunk.batch().rows()).unwrap_or(u32::MAX),
        ..Tags::default()
    }
}

/// The latest epoch of a chunk's sequences.
fn epoch_of(chunk: &Chunk) -> u32 {
    let epochs = chunk.sequences.iter().map(|rows| rows.epoch);
    u32::try_from(epochs.max().unwrap_or(0)).unwrap_or(u32::MAX)
}

/// The stage that runs.
#[derive(Debug)]
struct Stage {
    /// Index of its model.
    model: usize,
    span: SpanId,
    tags: Tags,
    first_node: usize,
    /// When the latest node was done.
    last: Nanos,
}

#[derive(Debug)]
struct Tail {
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
            tail: None,
            depth: None,
            latest: name("start"),
        }
    }

    /// Whether anything is recorded.
    pub(in super::super) fn is_on(&self) -> bool {
        self.trace.is_on()
    }

    /// A chunk or a part was taken out of the mailbox, for which the thread has waited like that.
    pub(in super::super) fn receive(
        &mut self,
        delivery: &mut Traced<Delivery>,
        waited: Option<WaitRecord>,
    ) {
        let record = &mut delivery.context;
        // Until now, that of the stage which brought it here.
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

    /// A nudge was taken out of the mailbox, for which the thread has waited like that.
    pub(in super::super) fn nudged(&mut self, waited: Option<WaitRecord>) {
        if let Some(wait) = waited.filter(|_| self.trace.wants(false)) {
            self.trace.record(wait.end, EventKind::Waited(wait.info(self.latest, None)));
        }
    }

    /// That many chunks wait for the device.
    pub(in super::super) fn waiting(&mut self, chunks: usize) {
        let value = chunks as i64;
        if self.depth != Some(value) && self.trace.wants(false) {
            self.depth = Some(value);
            self.trace.record(self.trace.now(), EventKind::Counter(self.names.depth, value));
        }
    }

    /// A stage, or a part of one, begins: now, or has begun at `at`.
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
        let computed = &graph.nodes()[nodes.clone()];
        let layer = computed.first().and_then(|node| node.layer);
        let one_layer = layer.filter(|_| computed.last().is_some_and(|last| last.layer == layer));
        let tags = Tags {
            chunk: Some(chunk.id),
            request: match &chunk.sequences[..] {
                [one] => Some(one.sequence.0),
                _ => None,
            },
            stage: u16::try_from(chunk.cursor).ok(),
            layer: one_layer.and_then(|layer| u16::try_from(layer).ok()),
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

    /// The graph of a chunk's model, whose names are known from now on.
    fn graph(&mut self, chunk: &Chunk) -> &Arc<Graph> {
        let of = &mut self.models[chunk.route.model.0];
        if of.roles.is_empty() {
            let recorder = &self.trace.recorder;
            of.roles = of.graph.nodes().iter().map(|n| recorder.name(n.role)).collect();
        }
        &of.graph
    }

    /// When the device began and ended the present stage, by its own clock.
    pub(in super::super) fn stamped(&mut self, begin: Nanos, end: Nanos) {
        let Some(stage) = &self.stage else { return };
        let (name, activity) = (self.names.device, Activity::Compute);
        let info = SpanInfo { name, activity, parent: Some(stage.span), tags: stage.tags };
        let span = self.trace.span();
        self.trace.record(end, EventKind::Ran(span, info, begin));
    }

    /// The whole graph is called after what its rows are, other stages after their ops.
    fn stage_name(&mut self, chunk: &Chunk) -> NameId {
        let nodes = chunk.stage().nodes.clone();
        if !chunk.stage().computes() {
            return self.names.transfer;
        }
        let model = chunk.route.model.0;
        let graph = Arc::clone(self.graph(chunk));
        if nodes.len() == graph.nodes().len() {
            return self.names.phases[match chunk.phase {
                Phase::Prefill => 0,
                Phase::Decode => 1,
                Phase::Mixed => 2,
            }];
        }
        if nodes.len() == 1 {
            return self.models[model].roles[nodes.start];
        }
        let WorkerTrace { models, trace, .. } = self;
        *models[model].stages.entry(nodes.clone()).or_insert_with(|| {
            let role = |node: usize| graph.nodes()[node].role;
            trace.recorder.name(&format!("{} … {}", role(nodes.start), role(nodes.end - 1)))
        })
    }

    /// The present stage did this one after another since it began, by its device's model.
    pub(in super::super) fn play(&mut self, segments: &[Segment]) {
        let Some(stage) = &self.stage else { return };
        let mut start = stage.last;
        for Segment { did, time, .. } in segments {
            let end = start + *time;
            if !time.is_zero() {
                self.did(*did, start, end);
            }
            start = end;
        }
    }

    fn did(&mut self, did: Did, start: Nanos, end: Nanos) {
        let Some(stage) = &self.stage else { return };
        let plain = Tags { bytes: 0, flops: 0, ..stage.tags };
        let (name, activity, tags) = match did {
            Did::Overhead => (self.names.overhead, Activity::Sync, plain),
            Did::Frame => (self.names.frame, Activity::Other, plain),
            Did::Transfer { bytes } => {
                (self.names.transfer, Activity::Copy, Tags { bytes, ..plain })
            }
            Did::Step(Step::Prepared { rows, bytes, .. }) => {
                let rows = u32::try_from(rows).unwrap_or(u32::MAX);
                (self.names.prepare, Activity::Prepare, Tags { rows, bytes, ..plain })
            }
            Did::Step(Step::Converted { bytes }) => {
                (self.names.convert, Activity::Convert, Tags { bytes, ..plain })
            }
            Did::Node(node) => {
                let of = &self.models[stage.model];
                let layer = of.graph.nodes()[node].layer;
                let cost = self.costs.get(node - stage.first_node).copied().unwrap_or_default();
                let tags = Tags {
                    layer: layer.and_then(|layer| u16::try_from(layer).ok()),
                    bytes: cost.bytes,
                    flops: cost.flops,
                    ..stage.tags
                };
                (of.roles[node], Activity::Compute, tags)
            }
        };
        let info = SpanInfo { name, activity, parent: Some(stage.span), tags };
        let span = self.trace.span();
        self.trace.record(end, EventKind::Ran(span, info, start));
    }

    /// The device has run the stage; its results are sent on next. `computed` tells whether there are
    /// any. The context of a part then says when it left for the part that finishes last.
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
        self.tail = Some(Tail { span, info, start: now });
        if let Delivery::Part(_) = delivery.message {
            delivery.context.sent = Some(self.trace.post(self.names.part, Some(span)));
        }
    }

    /// Tokens are chosen from now on. Right after the chunk's last stage, that is part of what
    /// follows the stage; else the chunk has come from another device.
    pub(in super::super) fn decide_begins(&mut self, chunk: &Traced<Box<Chunk>>) {
        let of_tail = self.tail.as_ref().is_some_and(|t| t.info.tags.chunk == Some(chunk.id));
        if of_tail || !self.trace.wants(chunk.context.requested) {
            return;
        }
        self.end();
        let received = chunk.context.span.filter(|_| !chunk.context.ran);
        let span = received.unwrap_or_else(|| self.trace.span());
        let tags = Tags { epoch: epoch_of(chunk), ..host_tags(chunk) };
        let (name, activity) = (self.names.sample, Activity::Sample);
        let info = SpanInfo { name, activity, parent: None, tags };
        self.tail = Some(Tail { span, info, start: self.trace.now() });
    }

    /// The parts of a stage are put together from now on.
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
        self.tail = Some(Tail { span, info, start: now });
    }

    /// They are together, for which that many bytes were read and written.
    pub(in super::super) fn merge_ends(&mut self, bytes: u64) {
        if let Some(tail) = &mut self.tail {
            tail.info.tags.bytes = bytes;
        }
    }

    /// A chunk or a part leaves for the device of its next stage.
    pub(in super::super) fn forward(&mut self, delivery: &mut Traced<Delivery>) {
        let span = self.tail.as_ref().map(|tail| tail.span);
        let name = match delivery.message {
            Delivery::Chunk(_) => self.names.chunk,
            Delivery::Part(_) => self.names.part,
        };
        delivery.context.sent = span.map(|span| self.trace.post(name, Some(span)));
    }

    /// An event leaves for its caller.
    pub(in super::super) fn emit(&mut self, emission: Traced<Emission>) -> Outgoing {
        let Traced { message: Emission { sequence, sink, event: message }, context } = emission;
        // A chunk may have spans of requests that nobody asked to record.
        let tail = self.tail.as_ref().filter(|_| self.trace.wants(context.requested));
        let tail = tail.map(|tail| tail.span);
        let sent = tail.map(|span| self.trace.post(self.events.of(&message), Some(span)));
        let tokens = match &message {
            StreamEvent::Token(_) => 1,
            StreamEvent::Scores(scores) => scores.len() as u64,
            StreamEvent::Finished(_) | StreamEvent::Failed(_) => 0,
        };
        if let Some((_, at)) = sent
            && tokens > 0
        {
            self.trace.record(at, EventKind::Request(sequence.0, Milestone::Token, tokens));
        }
        Outgoing { sink, event: Traced::new(message, TraceContext { sent, ..context }) }
    }

    /// The scheduler is told.
    pub(in super::super) fn report(&mut self, message: Traced<Progress>) -> Traced<Progress> {
        let record = message.context;
        let of_tail = self.tail.as_ref().is_some_and(|t| t.info.tags.chunk == Some(message.chunk));
        if !of_tail {
            // It was dropped, before its stage ran or after.
            self.end();
            let wanted = record.span.filter(|_| self.trace.wants(record.requested));
            let Some(span) = wanted.map(|span| if record.ran { self.trace.span() } else { span })
            else {
                return Traced { context: record.same_request(), ..message };
            };
            let tags = Tags { chunk: Some(message.chunk), ..Tags::default() };
            let (name, activity) = (self.names.drop, Activity::Other);
            let info = SpanInfo { name, activity, parent: None, tags };
            self.tail = Some(Tail { span, info, start: self.trace.now() });
        }
        let span = self.tail.as_ref().map(|tail| tail.span);
        let sent = span.map(|span| self.trace.post(self.names.progress, Some(span)));
        let context = TraceContext { sent, ..record.same_request() };
        Traced { context, ..message }
    }

    /// Everything that followed from a stage is done.
    pub(in super::super) fn end(&mut self) {
        if let Some(tail) = self.tail.take() {
            let now = self.trace.now();
            self.trace.record(now, EventKind::Ran(tail.span, tail.info, tail.start));
        }
    }
}

impl Observer for WorkerTrace {
    fn node_done(&mut self, node: usize) {
        self.since_last(Did::Node(node));
    }

    fn step_done(&mut self, step: Step) {
        self.since_last(Did::Step(step));
    }
}

impl WorkerTrace {
    /// The present stage did this since what it did before.
    fn since_last(&mut self, did: Did) {
        let Some(stage) = &mut self.stage else { return };
        let now = self.trace.recorder.clock().now();
        let start = std::mem::replace(&mut stage.last, now);
        self.did(did, start, now);
    }
}

//! What a device's worker tells a recorder.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::device::{Observer, Step};
use lapwing_kernels::graph::Graph;
use lapwing_traces::event::{
    Activity, EventKind, LaneKind, Milestone, NameId, SpanId, SpanInfo, Tags,
};
use lapwing_traces::{Nanos, Recorder};

use super::{EventNames, Outgoing, Tape};
use crate::drive::modelled::{Did, Segment};
use crate::drive::wait::WaitRecord;
use crate::message::{Chunk, Delivery, Emission, PartDone, Posted, Progress, Sent, StreamEvent};
use lapwing_plan::Phase;

/// A worker's end of a recorder.
#[derive(Debug)]
pub(in super::super) struct WorkerTape {
    tape: Tape,
    graph: Arc<Graph>,
    names: Names,
    events: EventNames,
    /// Role of each node of the graph; filled when something is first recorded.
    roles: Vec<NameId>,
    /// Names of stages that are not the whole graph.
    stages: HashMap<Range<usize>, NameId>,
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

/// The stage that runs.
#[derive(Debug)]
struct Stage {
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

impl WorkerTape {
    pub(in super::super) fn new(
        recorder: &Recorder,
        device: &str,
        graph: &Arc<Graph>,
    ) -> WorkerTape {
        let name = |text| recorder.name(text);
        WorkerTape {
            tape: Tape::new(recorder, device, LaneKind::Device),
            graph: Arc::clone(graph),
            names: Names {
                phases: [Phase::Prefill, Phase::Decode, Phase::Mixed].map(|p| name(p.name())),
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
            roles: Vec::new(),
            stages: HashMap::new(),
            costs: Vec::new(),
            stage: None,
            tail: None,
            depth: None,
            latest: name("start"),
        }
    }

    /// Whether anything is recorded.
    pub(in super::super) fn is_on(&self) -> bool {
        self.tape.is_on()
    }

    /// A chunk or a part was taken out of the mailbox, for which the thread has waited like that.
    pub(in super::super) fn receive(
        &mut self,
        delivery: &mut Delivery,
        waited: Option<WaitRecord>,
    ) {
        let record = delivery.record_mut();
        // Until now, that of the stage which brought it here.
        let target = record.span.take();
        if !self.tape.wants(record.traced) {
            return;
        }
        let (span, now) = (self.tape.span(), self.tape.now());
        record.span = Some(span);
        if let Some(wait) = waited {
            let info = wait.info(self.latest, target);
            self.tape.record(wait.end, EventKind::Waited(info));
            self.tape.record(now, EventKind::Woke(wait.since));
        }
        if let Some((message, _)) = record.sent {
            self.tape.record(now, EventKind::Received(message, Some(span)));
        }
    }

    /// A nudge was taken out of the mailbox, for which the thread has waited like that.
    pub(in super::super) fn nudged(&mut self, waited: Option<WaitRecord>) {
        if let Some(wait) = waited.filter(|_| self.tape.wants(false)) {
            self.tape.record(wait.end, EventKind::Waited(wait.info(self.latest, None)));
        }
    }

    /// That many chunks wait for the device.
    pub(in super::super) fn waiting(&mut self, chunks: usize) {
        let value = chunks as i64;
        if self.depth != Some(value) && self.tape.wants(false) {
            self.depth = Some(value);
            self.tape.record(self.tape.now(), EventKind::Counter(self.names.depth, value));
        }
    }

    /// A stage, or a part of one, begins.
    pub(in super::super) fn start(&mut self, delivery: &Delivery) {
        self.end();
        let record = *delivery.record();
        if !self.tape.wants(record.traced) {
            return;
        }
        let (chunk, part) = (delivery.chunk(), &delivery.part().part);
        let nodes = chunk.stage().nodes.clone();
        self.costs.clear();
        self.costs.extend(nodes.clone().map(|n| self.graph.part_cost(n, part, &chunk.batch)));
        let mut cost = Cost::default();
        self.costs.iter().for_each(|c| cost += *c);
        let layer = self.graph.nodes()[nodes.start].layer;
        let one_layer = layer.filter(|_| self.graph.nodes()[nodes.end - 1].layer == layer);
        let tags = Tags {
            chunk: Some(chunk.id),
            request: match &chunk.spans[..] {
                [one] => Some(one.sequence.0),
                _ => None,
            },
            stage: u16::try_from(chunk.cursor).ok(),
            layer: one_layer.and_then(|layer| u16::try_from(layer).ok()),
            rows: u32::try_from(part.row_count(&chunk.batch)).unwrap_or(u32::MAX),
            epoch: 0,
            bytes: cost.bytes,
            flops: cost.flops,
        };
        // Recording may have been switched on since it was received.
        let span = record.span.unwrap_or_else(|| self.tape.span());
        if let Some(at) = record.dispatched {
            self.tape.record(at, EventKind::Queued(span));
        }
        if let Some((_, at)) = record.sent {
            self.tape.record(at, EventKind::Submitted(span));
        }
        if self.roles.is_empty() {
            let recorder = &self.tape.recorder;
            self.roles = self.graph.nodes().iter().map(|n| recorder.name(n.role)).collect();
        }
        let name = self.stage_name(chunk);
        self.latest = name;
        let info = SpanInfo { name, activity: Activity::Compute, parent: None, tags };
        let now = self.tape.now();
        self.tape.record(now, EventKind::Started(span, info));
        self.stage = Some(Stage { span, tags, first_node: nodes.start, last: now });
    }

    /// The whole graph is called after what its rows are, other stages after their ops.
    fn stage_name(&mut self, chunk: &Chunk) -> NameId {
        let nodes = chunk.stage().nodes.clone();
        if nodes.len() == self.graph.nodes().len() {
            return self.names.phases[match chunk.phase {
                Phase::Prefill => 0,
                Phase::Decode => 1,
                Phase::Mixed => 2,
            }];
        }
        if nodes.len() == 1 {
            return self.roles[nodes.start];
        }
        let WorkerTape { stages, tape, graph, .. } = self;
        *stages.entry(nodes.clone()).or_insert_with(|| {
            let role = |node: usize| graph.nodes()[node].role;
            tape.recorder.name(&format!("{} … {}", role(nodes.start), role(nodes.end - 1)))
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
            Did::Step(Step::Prepared { rows, bytes, .. }) => {
                let rows = u32::try_from(rows).unwrap_or(u32::MAX);
                (self.names.prepare, Activity::Prepare, Tags { rows, bytes, ..plain })
            }
            Did::Step(Step::Converted { bytes }) => {
                (self.names.convert, Activity::Convert, Tags { bytes, ..plain })
            }
            Did::Node(node) => {
                let layer = self.graph.nodes()[node].layer;
                let cost = self.costs.get(node - stage.first_node).copied().unwrap_or_default();
                let tags = Tags {
                    layer: layer.and_then(|layer| u16::try_from(layer).ok()),
                    bytes: cost.bytes,
                    flops: cost.flops,
                    ..stage.tags
                };
                (self.roles[node], Activity::Compute, tags)
            }
        };
        let info = SpanInfo { name, activity, parent: Some(stage.span), tags };
        let span = self.tape.span();
        self.tape.record(end, EventKind::Ran(span, info, start));
    }

    /// The device has run the stage; now its results are sent on. `computed` tells whether there
    /// are any. Returns what a recording knows of a part's way to whoever finishes last.
    pub(in super::super) fn finish(&mut self, delivery: &Delivery, computed: bool) -> Sent {
        let stage = self.stage.take()?;
        let now = self.tape.now();
        self.tape.record(now, EventKind::Finished(stage.span));
        let (name, activity) = match (computed, delivery.chunk().is_last_stage()) {
            (false, _) => (self.names.drop, Activity::Other),
            (true, true) => (self.names.sample, Activity::Sample),
            (true, false) => (self.names.forward, Activity::Schedule),
        };
        let tags = Tags { bytes: 0, flops: 0, ..stage.tags };
        let info = SpanInfo { name, activity, parent: None, tags };
        let span = self.tape.span();
        self.tail = Some(Tail { span, info, start: now });
        match delivery {
            Delivery::Chunk(_) => None,
            Delivery::Part(_) => Some(self.tape.post(self.names.part, Some(span))),
        }
    }

    /// The parts of a stage are put together from now on.
    pub(in super::super) fn merge_begins(&mut self, chunk: &Chunk, parts: &[PartDone]) {
        self.end();
        if !self.tape.wants(chunk.record.traced) {
            return;
        }
        let (span, now) = (self.tape.span(), self.tape.now());
        for (message, _) in parts.iter().filter_map(|part| part.sent) {
            self.tape.record(now, EventKind::Received(message, Some(span)));
        }
        let tags = Tags {
            chunk: Some(chunk.id),
            stage: u16::try_from(chunk.cursor).ok(),
            rows: u32::try_from(chunk.batch.rows()).unwrap_or(u32::MAX),
            ..Tags::default()
        };
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
    pub(in super::super) fn forward(&mut self, delivery: &mut Delivery) {
        let span = self.tail.as_ref().map(|tail| tail.span);
        let name = match delivery {
            Delivery::Chunk(_) => self.names.chunk,
            Delivery::Part(_) => self.names.part,
        };
        delivery.record_mut().sent = span.map(|span| self.tape.post(name, Some(span)));
    }

    /// An event leaves for its caller.
    pub(in super::super) fn emit(&mut self, emission: Emission) -> Outgoing {
        let Emission { sequence, traced, sink, event: message } = emission;
        // A chunk may have spans of requests that nobody asked to record.
        let tail = self.tail.as_ref().filter(|_| self.tape.wants(traced)).map(|tail| tail.span);
        let sent = tail.map(|span| self.tape.post(self.events.of(&message), Some(span)));
        let tokens = match &message {
            StreamEvent::Token(_) => 1,
            StreamEvent::Scores(scores) => scores.len() as u64,
            StreamEvent::Finished(_) | StreamEvent::Failed(_) => 0,
        };
        if let Some((_, at)) = sent
            && tokens > 0
        {
            self.tape.record(at, EventKind::Request(sequence.0, Milestone::Token, tokens));
        }
        Outgoing { sink, event: Posted { message, sent } }
    }

    /// The scheduler is told.
    pub(in super::super) fn report(&mut self, message: Progress) -> Posted<Progress> {
        let record = message.record;
        let of_tail = self.tail.as_ref().is_some_and(|t| t.info.tags.chunk == Some(message.chunk));
        if !of_tail {
            // It was dropped before it ran.
            self.end();
            let Some(span) = record.span.filter(|_| self.tape.wants(record.traced)) else {
                return Posted::unrecorded(message);
            };
            let tags = Tags { chunk: Some(message.chunk), ..Tags::default() };
            let (name, activity) = (self.names.drop, Activity::Other);
            let info = SpanInfo { name, activity, parent: None, tags };
            self.tail = Some(Tail { span, info, start: self.tape.now() });
        }
        let span = self.tail.as_ref().map(|tail| tail.span);
        let sent = span.map(|span| self.tape.post(self.names.progress, Some(span)));
        Posted { message, sent }
    }

    /// Everything that followed from a stage is done.
    pub(in super::super) fn end(&mut self) {
        if let Some(tail) = self.tail.take() {
            let now = self.tape.now();
            self.tape.record(now, EventKind::Ran(tail.span, tail.info, tail.start));
        }
    }
}

impl Observer for WorkerTape {
    fn node_done(&mut self, node: usize) {
        self.since_last(Did::Node(node));
    }

    fn step_done(&mut self, step: Step) {
        self.since_last(Did::Step(step));
    }
}

impl WorkerTape {
    /// The present stage did this since what it did before.
    fn since_last(&mut self, did: Did) {
        let Some(stage) = &mut self.stage else { return };
        let now = self.tape.recorder.clock().now();
        let start = std::mem::replace(&mut stage.last, now);
        self.did(did, start, now);
    }
}

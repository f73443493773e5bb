//! What a device's worker tells a recorder.

use std::sync::Arc;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::device::Observer;
use lapwing_kernels::graph::Graph;
use lapwing_traces::event::{Activity, LaneKind, NameId, SpanId, SpanInfo, Station, Tags, What};
use lapwing_traces::{Nanos, Recorder};

use super::{EventNames, Outgoing, Tape};
use crate::message::{Chunk, Emission, Phase, Posted, Progress, StreamEvent};

/// A worker's end of a recorder.
#[derive(Debug)]
pub(in super::super) struct WorkerTape {
    tape: Tape,
    graph: Arc<Graph>,
    names: Names,
    events: EventNames,
    /// Role of each node of the graph; filled when something is first recorded.
    roles: Vec<NameId>,
    /// Cost of each node of the present stage.
    costs: Vec<Cost>,
    stage: Option<Stage>,
    /// What comes after a stage: its results are sent on.
    tail: Option<Tail>,
    depth: Option<i64>,
}

#[derive(Debug)]
struct Names {
    phases: [NameId; 3],
    sample: NameId,
    forward: NameId,
    drop: NameId,
    chunk: NameId,
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
                progress: name("progress"),
                depth: name("chunks waiting"),
            },
            events: EventNames::new(recorder),
            roles: Vec::new(),
            costs: Vec::new(),
            stage: None,
            tail: None,
            depth: None,
        }
    }

    /// Since when the worker's thread sleeps, if it does so from now on; none while nothing is
    /// recorded.
    pub(in super::super) fn sleeps(&self) -> Option<Nanos> {
        self.tape.is_on().then(|| self.tape.now())
    }

    /// A chunk was taken out of the mailbox, for which the thread has slept since `slept`.
    pub(in super::super) fn receive(&mut self, chunk: &mut Chunk, slept: Option<Nanos>) {
        chunk.record.span = None;
        if !self.tape.wants(chunk.record.traced) {
            return;
        }
        let (span, now) = (self.tape.span(), self.tape.now());
        chunk.record.span = Some(span);
        if let Some(since) = slept {
            self.tape.record(now, What::Woke(since));
        }
        if let Some((message, _)) = chunk.record.sent {
            self.tape.record(now, What::Received(message, Some(span)));
        }
    }

    /// That many chunks wait for the device.
    pub(in super::super) fn waiting(&mut self, chunks: usize) {
        let value = chunks as i64;
        if self.depth != Some(value) && self.tape.wants(false) {
            self.depth = Some(value);
            self.tape.record(self.tape.now(), What::Counter(self.names.depth, value));
        }
    }

    /// A chunk's stage begins.
    pub(in super::super) fn start(&mut self, chunk: &Chunk) {
        self.end();
        if !self.tape.wants(chunk.record.traced) {
            return;
        }
        let nodes = chunk.stage().nodes.clone();
        self.costs.clear();
        self.costs.extend(nodes.clone().map(|node| self.graph.cost(node, &chunk.batch)));
        let mut cost = Cost::default();
        self.costs.iter().for_each(|c| cost += *c);
        let tags = Tags {
            chunk: Some(chunk.id),
            request: match &chunk.spans[..] {
                [one] => Some(one.sequence.0),
                _ => None,
            },
            stage: u16::try_from(chunk.cursor).ok(),
            layer: None,
            rows: u32::try_from(chunk.batch.rows()).unwrap_or(u32::MAX),
            epoch: 0,
            bytes: cost.bytes,
            flops: cost.flops,
        };
        // Recording may have been switched on since it was received.
        let span = chunk.record.span.unwrap_or_else(|| self.tape.span());
        if let Some(at) = chunk.record.dispatched {
            self.tape.record(at, What::Queued(span));
        }
        if let Some((_, at)) = chunk.record.sent {
            self.tape.record(at, What::Submitted(span));
        }
        let name = self.names.phases[match chunk.phase {
            Phase::Prefill => 0,
            Phase::Decode => 1,
            Phase::Mixed => 2,
        }];
        let info = SpanInfo { name, activity: Activity::Compute, parent: None, tags };
        if self.roles.is_empty() {
            let recorder = &self.tape.recorder;
            self.roles = self.graph.nodes().iter().map(|n| recorder.name(n.role)).collect();
        }
        let now = self.tape.now();
        self.tape.record(now, What::Started(span, info));
        self.stage = Some(Stage { span, tags, first_node: nodes.start, last: now });
    }

    /// The device has run the stage; now its results are sent on. `computed` tells whether there
    /// are any.
    pub(in super::super) fn finish(&mut self, chunk: &Chunk, computed: bool) {
        let Some(stage) = self.stage.take() else { return };
        let now = self.tape.now();
        self.tape.record(now, What::Finished(stage.span));
        let (name, activity) = match (computed, chunk.is_last_stage()) {
            (false, _) => (self.names.drop, Activity::Other),
            (true, true) => (self.names.sample, Activity::Sample),
            (true, false) => (self.names.forward, Activity::Schedule),
        };
        let tags = Tags { bytes: 0, flops: 0, ..stage.tags };
        let info = SpanInfo { name, activity, parent: None, tags };
        self.tail = Some(Tail { span: self.tape.span(), info, start: now });
    }

    /// A chunk leaves for the device of its next stage.
    pub(in super::super) fn forward(&mut self, chunk: &mut Chunk) {
        let span = self.tail.as_ref().map(|tail| tail.span);
        chunk.record.sent = span.map(|span| self.tape.post(self.names.chunk, Some(span)));
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
            self.tape.record(at, What::Request(sequence.0, Station::Token, tokens));
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
            self.tape.record(now, What::Ran(tail.span, tail.info, tail.start));
        }
    }
}

impl Observer for WorkerTape {
    fn node_done(&mut self, node: usize) {
        let Some(stage) = &mut self.stage else { return };
        let now = self.tape.now();
        let at = &self.graph.nodes()[node];
        let cost = self.costs.get(node - stage.first_node).copied().unwrap_or_default();
        let tags = Tags {
            layer: at.layer.and_then(|layer| u16::try_from(layer).ok()),
            bytes: cost.bytes,
            flops: cost.flops,
            ..stage.tags
        };
        let info = SpanInfo {
            name: self.roles[node],
            activity: Activity::Compute,
            parent: Some(stage.span),
            tags,
        };
        let start = std::mem::replace(&mut stage.last, now);
        let span = self.tape.span();
        self.tape.record(now, What::Ran(span, info, start));
    }
}

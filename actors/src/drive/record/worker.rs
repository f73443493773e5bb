//! Trace events of a device's worker.

use std::sync::Arc;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::graph::Graph;
use lapwing_plan::Phase;
use lapwing_traces::event::{Activity, EventKind, LaneKind, NameId, Order, SpanId, SpanInfo, Tags};
use lapwing_traces::{Nanos, Recorder};

use super::names::ModelNames;
use super::tags::{TRANSFER, stage_activity, stage_tags};
use super::{EventNames, TraceWriter};
use crate::drive::wait::WaitRecord;
use crate::message::{Chunk, Delivery, Traced};

mod host;
mod ops;

use host::FollowUp;

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
    order: Option<QueueOrder>,
    /// Spans of other chunks that the present stage needed.
    needed: Vec<SpanId>,
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
    read: NameId,
    frame: NameId,
    progress: NameId,
    depth: NameId,
    experts: NameId,
    busiest: NameId,
}

/// The running stage.
#[derive(Debug)]
struct Stage {
    /// Index of its model.
    model: usize,
    span: SpanId,
    tags: Tags,
    start: Nanos,
    first_node: usize,
    /// Time at which the latest node or step ended.
    last: Nanos,
}

/// The latest spans of a device that runs stages beside the host work of its worker.
#[derive(Debug, Default)]
struct QueueOrder {
    stage: Option<SpanId>,
    host: Option<SpanId>,
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
                transfer: name(TRANSFER),
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
                read: name("read weights"),
                frame: name("frame"),
                progress: name("progress"),
                depth: name("chunks waiting"),
                experts: name("experts with rows, %"),
                busiest: name("busiest expert, % of even"),
            },
            events: EventNames::new(recorder),
            costs: Vec::new(),
            stage: None,
            follow_up: None,
            order: None,
            needed: Vec::new(),
            depth: None,
            latest: name("start"),
        }
    }

    /// As it is, with the order of stages and that of host work if stages run beside the worker's host work.
    pub(in super::super) fn with_order(mut self, is_beside: bool) -> WorkerTrace {
        self.order = is_beside.then(QueueOrder::default);
        self
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
        // The worker's thread takes messages after the host work that it has begun.
        self.comes_after_host(span, now);
    }

    /// Records that a span comes after the latest host work.
    fn comes_after_host(&mut self, span: SpanId, now: Nanos) {
        if let Some(host) = self.order.as_ref().and_then(|order| order.host) {
            self.trace.record(now, EventKind::After(span, host, Order::Need));
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
        let chunk = delivery.chunk();
        let graph = Arc::clone(self.graph(chunk));
        let tags = stage_tags(delivery, &graph, &mut self.costs);
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
        let info = SpanInfo { name, activity: stage_activity(chunk), parent: None, tags };
        let now = at.unwrap_or_else(|| self.trace.now());
        self.trace.record(now, EventKind::Started(span, info));
        self.comes_after(span, chunk, now);
        // Without a queue, the worker's thread computes the stage after its host work.
        if at.is_none() {
            self.comes_after_host(span, now);
        }
        let (model, first_node) = (chunk.route.model.0, chunk.stage().nodes.start);
        self.stage = Some(Stage { span, tags, start: now, model, first_node, last: now });
    }

    /// Records the spans after which a stage began: the one before it in the device's queue, and those that computed
    /// its nodes for the rows before its own.
    fn comes_after(&mut self, span: SpanId, chunk: &Chunk, now: Nanos) {
        let latest = self.order.as_ref().and_then(|order| order.stage);
        if let Some(latest) = latest {
            self.trace.record(now, EventKind::After(span, latest, Order::Queue));
        }
        let nodes = chunk.ordered_nodes();
        self.needed.clear();
        for rows in &chunk.sequences {
            let needed = rows.progress.computed_by(&nodes).filter(|by| Some(*by) != latest);
            if let Some(by) = needed.filter(|by| !self.needed.contains(by)) {
                self.needed.push(by);
                self.trace.record(now, EventKind::After(span, by, Order::Need));
            }
        }
    }

    /// The graph of a chunk's model.
    fn graph(&mut self, chunk: &Chunk) -> &Arc<Graph> {
        self.models[chunk.route.model.0].start(&self.trace.recorder)
    }

    /// Records when the device began and ended the present stage, by the device's own clock, as far as the stage
    /// reaches.
    pub(in super::super) fn stamped(&mut self, begin: Nanos, end: Nanos) {
        let Some(stage) = &self.stage else { return };
        let (begin, end) = (begin.max(stage.start), end.min(self.trace.now()));
        if begin > end {
            return;
        }
        let (name, activity) = (self.names.device, Activity::Compute);
        let info = SpanInfo { name, activity, parent: Some(stage.span), tags: stage.tags };
        let span = self.trace.span();
        self.trace.record(end, EventKind::Ran(span, info, begin));
    }

    fn stage_name(&mut self, chunk: &Chunk) -> NameId {
        if !chunk.stage().computes() {
            return self.names.transfer;
        }
        let (nodes, phases) = (chunk.stage().nodes.clone(), self.names.phases);
        let model = &mut self.models[chunk.route.model.0];
        model.stage(nodes, chunk.phase, phases, &self.trace.recorder)
    }
}

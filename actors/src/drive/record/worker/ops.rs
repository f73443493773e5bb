//! Trace events of the ops of a stage, as they are computed or as a model divides their time.

use std::ops::Range;

use lapwing_kernels::cost::Cost;
use lapwing_kernels::device::{ExpertLoad, Observer, RowsOfExpert, Step};
use lapwing_kernels::graph::Node;
use lapwing_kernels::op::Op;
use lapwing_traces::Nanos;
use lapwing_traces::event::{Activity, EventKind, ExpertRows, SpanInfo, Tags};

use super::super::names::layer_of;
use super::{Stage, WorkerTrace};
use crate::drive::modelled::{Segment, SegmentKind};

impl WorkerTrace {
    /// Records the modelled segments of the present stage, one after another, as far as the stage reaches: its device
    /// may have begun a little before its start was recorded.
    pub(in crate::drive) fn play(&mut self, segments: &[Segment]) {
        let Some(stage) = &self.stage else { return };
        let (mut start, now) = (stage.last, self.trace.now());
        for Segment { kind, time, .. } in segments {
            let end = (start + *time).min(now);
            if start < end {
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
        self.record_inner(SpanInfo { name, activity, parent, tags }, start, end);
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
        self.record_inner(SpanInfo { name, activity, parent: Some(stage.span), tags }, start, end);
    }

    /// Records a span within the present stage.
    fn record_inner(&mut self, info: SpanInfo, start: Nanos, end: Nanos) {
        let span = self.trace.span();
        self.trace.record(end, EventKind::Ran(span, info, start));
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

    fn weights_read(&mut self, bytes: u64) {
        if let (Some((start, end)), Some(stage)) = (self.since_last(), &self.stage) {
            let tags = Tags { bytes, flops: 0, ..stage.tags };
            let (name, activity, parent) = (self.names.read, Activity::Read, Some(stage.span));
            self.record_inner(SpanInfo { name, activity, parent, tags }, start, end);
        }
    }

    fn routed(&mut self, node: usize, load: ExpertLoad, rows: &[RowsOfExpert]) {
        let Some(Stage { last, model, .. }) = self.stage else { return };
        let counters = [
            (self.names.experts, load.touched_percent()),
            (self.names.busiest, load.most_percent()),
        ];
        for (name, percent) in counters {
            self.trace.record(last, EventKind::Counter(name, percent as i64));
        }
        let (nodes, at) = (self.models[model].graph.nodes(), node);
        let node = &nodes[at];
        let (Op::Experts(op), Some(layer)) = (&node.op, node.layer) else { return };
        // Small experts that others share have the same route, whose rows are counted once.
        let is_counted = |other: &Node| {
            matches!(other.op, Op::Experts(_)) && other.inputs.get(1) == node.inputs.get(1)
        };
        let mut before = nodes[..at].iter().rev().take_while(|other| other.layer == node.layer);
        if before.any(is_counted) {
            return;
        }
        let [Ok(experts), Ok(layer)] = [op.count, layer].map(u16::try_from) else { return };
        let Ok(model) = u8::try_from(model) else { return };
        let of_event = |rows: &RowsOfExpert| rows.expert as usize / ExpertRows::MANY;
        for own in rows.chunk_by(|a, b| of_event(a) == of_event(b)) {
            let first = (of_event(&own[0]) * ExpertRows::MANY) as u32;
            let mut each = [0; ExpertRows::MANY];
            for RowsOfExpert { expert, rows } in own {
                each[(expert - first) as usize] = u16::try_from(*rows).unwrap_or(u16::MAX);
            }
            let event = ExpertRows { model, layer, experts, first, rows: each };
            self.trace.record(last, EventKind::Experts(event));
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

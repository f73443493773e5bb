//! Trace events of a device's preparation lane.

use std::ops::Range;

use lapwing_kernels::device::{Observer, Step};
use lapwing_traces::event::{Activity, EventKind, LaneKind, NameId, SpanId, SpanInfo, Tags};
use lapwing_traces::{Nanos, Recorder};

use super::TraceWriter;
use crate::drive::wait::WaitRecord;
use crate::message::{TraceContext, Traced};

/// A preparation lane's connection to a recorder.
#[derive(Debug)]
pub(in super::super) struct PrepareTrace {
    trace: TraceWriter,
    graph: NameId,
    prepared: NameId,
    wait: NameId,
    handling: Option<Handling>,
}

/// The handling of one request.
#[derive(Debug)]
struct Handling {
    span: SpanId,
    start: Nanos,
    /// Time at which the latest graph was ready.
    last: Nanos,
    rows: u32,
    bytes: u64,
    /// The context of the request that needs the graphs.
    context: TraceContext,
}

impl PrepareTrace {
    pub(in super::super) fn new(recorder: &Recorder, device: &str) -> PrepareTrace {
        PrepareTrace {
            trace: TraceWriter::new(recorder, &format!("{device} prepare"), LaneKind::Actor),
            graph: recorder.name("prepare graph"),
            prepared: recorder.name("prepared"),
            wait: recorder.name("next message"),
            handling: None,
        }
    }

    /// Records that a request was taken out of the mailbox after the wait `waited`.
    pub(in super::super) fn begin(&mut self, context: TraceContext, waited: Option<WaitRecord>) {
        if !self.trace.wants(context.requested) {
            return;
        }
        if let Some(wait) = waited {
            self.trace.record(wait.end, EventKind::Waited(wait.info(self.wait, None)));
        }
        let (span, start) = (self.trace.span(), self.trace.now());
        if let Some((message, _)) = context.sent {
            self.trace.record(start, EventKind::Received(message, Some(span)));
        }
        self.handling = Some(Handling { span, start, last: start, rows: 0, bytes: 0, context });
    }

    /// Records that the answer is sent to the scheduler.
    pub(in super::super) fn end<T>(&mut self, message: T) -> Traced<T> {
        let Some(handling) = self.handling.take() else { return Traced::untraced(message) };
        let now = self.trace.now();
        let tags = Tags { rows: handling.rows, bytes: handling.bytes, ..Tags::default() };
        let info = SpanInfo { name: self.graph, activity: Activity::Prepare, parent: None, tags };
        let sent = self.trace.post(self.prepared, Some(handling.span));
        self.trace.record(now.max(sent.1), EventKind::Ran(handling.span, info, handling.start));
        Traced::new(message, TraceContext { sent: Some(sent), ..handling.context.same_request() })
    }
}

impl Observer for PrepareTrace {
    fn nodes_done(&mut self, _nodes: Range<usize>) {}

    fn step_done(&mut self, step: Step) {
        let Step::Prepared { rows, bytes, .. } = step else { return };
        let Some(handling) = &mut self.handling else { return };
        let now = self.trace.now();
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        handling.rows = handling.rows.max(rows);
        handling.bytes += bytes;
        let tags = Tags { rows, bytes, ..Tags::default() };
        let parent = Some(handling.span);
        let start = std::mem::replace(&mut handling.last, now);
        let info = SpanInfo { name: self.graph, activity: Activity::Prepare, parent, tags };
        let span = self.trace.span();
        self.trace.record(now, EventKind::Ran(span, info, start));
    }
}

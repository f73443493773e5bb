//! What a device's preparation lane tells a recorder.

use lapwing_kernels::device::{Observer, Step};
use lapwing_traces::event::{Activity, EventKind, LaneKind, NameId, SpanId, SpanInfo, Tags};
use lapwing_traces::{Nanos, Recorder};

use super::TraceWriter;
use crate::drive::wait::WaitRecord;
use crate::message::{TraceContext, Traced};

/// A preparation lane's end of a recorder.
#[derive(Debug)]
pub(in super::super) struct PrepareTrace {
    trace: TraceWriter,
    graph: NameId,
    prepared: NameId,
    wait: NameId,
    turn: Option<Turn>,
}

#[derive(Debug)]
struct Turn {
    span: SpanId,
    start: Nanos,
    /// When the latest graph was ready.
    last: Nanos,
    rows: u32,
    bytes: u64,
}

impl PrepareTrace {
    pub(in super::super) fn new(recorder: &Recorder, device: &str) -> PrepareTrace {
        PrepareTrace {
            trace: TraceWriter::new(recorder, &format!("{device} prepare"), LaneKind::Actor),
            graph: recorder.name("prepare graph"),
            prepared: recorder.name("prepared"),
            wait: recorder.name("next message"),
            turn: None,
        }
    }

    /// A request was taken out of the mailbox, for which the thread has waited like that.
    pub(in super::super) fn begin(&mut self, context: TraceContext, waited: Option<WaitRecord>) {
        if !self.trace.wants(false) {
            return;
        }
        if let Some(wait) = waited {
            self.trace.record(wait.end, EventKind::Waited(wait.info(self.wait, None)));
        }
        let (span, start) = (self.trace.span(), self.trace.now());
        if let Some((message, _)) = context.sent {
            self.trace.record(start, EventKind::Received(message, Some(span)));
        }
        self.turn = Some(Turn { span, start, last: start, rows: 0, bytes: 0 });
    }

    /// The answer leaves for the scheduler.
    pub(in super::super) fn end<T>(&mut self, message: T) -> Traced<T> {
        let Some(turn) = self.turn.take() else { return Traced::untraced(message) };
        let now = self.trace.now();
        let tags = Tags { rows: turn.rows, bytes: turn.bytes, ..Tags::default() };
        let info = SpanInfo { name: self.graph, activity: Activity::Prepare, parent: None, tags };
        let sent = self.trace.post(self.prepared, Some(turn.span));
        self.trace.record(now.max(sent.1), EventKind::Ran(turn.span, info, turn.start));
        Traced::new(message, TraceContext { sent: Some(sent), ..TraceContext::default() })
    }
}

impl Observer for PrepareTrace {
    fn node_done(&mut self, _node: usize) {}

    fn step_done(&mut self, step: Step) {
        let Step::Prepared { rows, bytes, .. } = step else { return };
        let Some(turn) = &mut self.turn else { return };
        let now = self.trace.now();
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        turn.rows = turn.rows.max(rows);
        turn.bytes += bytes;
        let tags = Tags { rows, bytes, ..Tags::default() };
        let parent = Some(turn.span);
        let start = std::mem::replace(&mut turn.last, now);
        let info = SpanInfo { name: self.graph, activity: Activity::Prepare, parent, tags };
        let span = self.trace.span();
        self.trace.record(now, EventKind::Ran(span, info, start));
    }
}

//! Tables for spreadsheets and data frames in the format of RFC 4180: commas, CRLF, doubled quotes.
//!
//! Names come from the recorded program and may be malicious. Spreadsheets interpret a text that
//! starts with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula, so such a text gets a
//! leading apostrophe. So does a text that starts with an apostrophe, so that removing one
//! apostrophe restores every text. Numbers are never changed.

use super::fields::{self, Facts};
use crate::analysis::{Analysis, SegmentKind};
use crate::event::{ChunkPhase, DraftRole};
use crate::timeline::Timeline;

/// A CSV table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// File name.
    pub file: &'static str,
    /// Content: the header and the rows.
    pub text: String,
}

/// Exports a timeline as tables of spans, gaps, critical path, messages, waits, counters,
/// milestones of requests, limited chunks and choices of routes. Times and durations are in nanoseconds; absent values are empty.
pub fn csv(timeline: &Timeline, analysis: &Analysis) -> Vec<Table> {
    let lanes = fields::lane_names(timeline);
    let source = Source { timeline, analysis, lanes };
    vec![
        source.spans(),
        source.gaps(),
        source.critical_path(),
        source.messages(),
        source.waits(),
        source.counters(),
        source.requests(),
        source.limited(),
        source.routed(),
        source.routes(),
    ]
}

struct Source<'a> {
    timeline: &'a Timeline,
    analysis: &'a Analysis,
    lanes: Vec<String>,
}

impl Source<'_> {
    fn span_id(&self, span: Option<usize>) -> String {
        or_empty(span.map(|at| self.timeline.spans[at].id.0.get()))
    }

    fn spans(&self) -> Table {
        let facts = Facts::new(self.timeline, self.analysis);
        let mut rows = Rows::new(
            "spans.csv",
            "id,parent_id,depth,lane,slot,name,activity,queued_ns,submitted_ns,start_ns,end_ns,\
             duration_ns,finished,chunk,request,stage,layer,rows,epoch,bytes,flops,slack_ns,\
             on_critical_path,role,discarded,phase",
        );
        for (at, span) in self.timeline.spans.iter().enumerate() {
            let tags = &span.tags;
            rows.add(&[
                span.id.0.to_string(),
                self.span_id(span.parent),
                span.depth.to_string(),
                text(&self.lanes[span.lane]),
                span.slot.to_string(),
                text(&span.name),
                text(span.activity.name()),
                or_empty(span.queued.map(|at| at.0)),
                or_empty(span.submitted.map(|at| at.0)),
                span.start.0.to_string(),
                span.end.0.to_string(),
                span.duration().to_string(),
                span.finished.to_string(),
                or_empty(tags.chunk),
                or_empty(tags.request),
                or_empty(tags.stage),
                or_empty(tags.layer),
                tags.rows.to_string(),
                tags.epoch.to_string(),
                tags.bytes.to_string(),
                tags.flops.to_string(),
                or_empty(facts.slack(at)),
                facts.critical(at).to_string(),
                or_empty(tags.role.map(DraftRole::name)),
                span.discarded.to_string(),
                or_empty(tags.phase.map(ChunkPhase::name)),
            ]);
        }
        rows.table()
    }

    fn gaps(&self) -> Table {
        let header = "lane,start_ns,end_ns,duration_ns,cause,next_id,blocker_id";
        let mut rows = Rows::new("gaps.csv", header);
        for gap in &self.analysis.gaps {
            rows.add(&[
                text(&self.lanes[gap.lane]),
                gap.start.to_string(),
                gap.end.to_string(),
                (gap.end - gap.start).to_string(),
                text(&gap.cause.title(self.timeline)),
                self.span_id(gap.next),
                self.span_id(gap.blocker),
            ]);
        }
        rows.table()
    }

    fn critical_path(&self) -> Table {
        let header = "lane,start_ns,end_ns,duration_ns,cause,op,span_id";
        let mut rows = Rows::new("critical_path.csv", header);
        for segment in &self.analysis.critical_path.segments {
            let (cause, span) = match segment.kind {
                SegmentKind::Running(span) => ("running".to_owned(), span),
                SegmentKind::Waiting(cause, next) => (cause.title(self.timeline), next),
            };
            rows.add(&[
                text(&self.lanes[segment.lane]),
                segment.start.to_string(),
                segment.end.to_string(),
                (segment.end - segment.start).to_string(),
                text(&cause),
                text(&self.timeline.spans[span].name),
                self.span_id(Some(span)),
            ]);
        }
        rows.table()
    }

    fn messages(&self) -> Table {
        let header = "name,from_lane,from_id,to_lane,to_id,sent_ns,received_ns,bytes,held_by,\
                      held_since_ns";
        let mut rows = Rows::new("messages.csv", header);
        for message in &self.timeline.messages {
            rows.add(&[
                text(&message.name),
                text(&self.lanes[message.from_lane]),
                self.span_id(message.from),
                message.to_lane.map_or_else(String::new, |lane| text(&self.lanes[lane])),
                self.span_id(message.to),
                message.sent.0.to_string(),
                or_empty(message.received.map(|at| at.0)),
                message.bytes.to_string(),
                message.stall.map_or_else(String::new, |(cause, _)| text(cause.name())),
                or_empty(message.stall.map(|(_, since)| since.0)),
            ]);
        }
        rows.table()
    }

    fn waits(&self) -> Table {
        let header = "name,lane,target_id,mode,start_ns,end_ns,predicted_ns,margin_ns,slept_ns,\
                      spun_ns";
        let mut rows = Rows::new("waits.csv", header);
        for wait in &self.timeline.waits {
            rows.add(&[
                text(&wait.name),
                text(&self.lanes[wait.lane]),
                self.span_id(wait.target),
                text(wait.mode.name()),
                wait.start.0.to_string(),
                wait.end.0.to_string(),
                wait.predicted.to_string(),
                wait.margin.to_string(),
                wait.slept.to_string(),
                wait.spun.to_string(),
            ]);
        }
        rows.table()
    }

    fn counters(&self) -> Table {
        let mut rows = Rows::new("counters.csv", "name,lane,at_ns,value");
        for counter in &self.timeline.counters {
            let (name, lane) = (text(&counter.name), text(&self.lanes[counter.lane]));
            for (at, value) in &counter.values {
                rows.add(&[name.clone(), lane.clone(), at.0.to_string(), value.to_string()]);
            }
        }
        rows.table()
    }

    fn requests(&self) -> Table {
        let mut rows = Rows::new("requests.csv", "request,station,at_ns,value");
        for milestone in &self.timeline.milestones {
            rows.add(&[
                milestone.request.to_string(),
                text(milestone.milestone.name()),
                milestone.at.0.to_string(),
                milestone.value.to_string(),
            ]);
        }
        rows.table()
    }

    fn limited(&self) -> Table {
        let mut rows = Rows::new("limited.csv", "chunk,rows,stream,slack_ns");
        let of_chunk = self.timeline.limited_rows();
        for limited in self.timeline.limited.values() {
            rows.add(&[
                limited.chunk.to_string(),
                or_empty(of_chunk.get(&limited.chunk)),
                or_empty(limited.stream),
                or_empty(limited.stream.map(|_| limited.slack)),
            ]);
        }
        rows.table()
    }

    fn routes(&self) -> Table {
        let columns = "chunk,route,end_ns,alone_ns,busy_ns,is_ready";
        let mut rows = Rows::new("routes.csv", columns);
        for (chunk, choice) in &self.timeline.routed {
            for route in &choice.routes {
                let times = [route.end, route.alone, route.busy].map(|ns| ns.to_string());
                let [end, alone, busy] = times;
                let name = text(&route.route);
                rows.add(&[chunk.to_string(), name, end, alone, busy, route.is_ready.to_string()]);
            }
        }
        rows.table()
    }

    fn routed(&self) -> Table {
        let columns = "chunk,route,end_ns,alone,alone_end_ns,is_due";
        let mut rows = Rows::new("routed.csv", columns);
        for (chunk, choice) in &self.timeline.routed {
            rows.add(&[
                chunk.to_string(),
                text(&choice.route),
                choice.end.to_string(),
                text(&choice.alone),
                choice.alone_end.to_string(),
                choice.is_due.to_string(),
            ]);
        }
        rows.table()
    }
}

struct Rows {
    file: &'static str,
    writer: csv::Writer<Vec<u8>>,
}

impl Rows {
    fn new(file: &'static str, header: &str) -> Rows {
        let mut options = csv::WriterBuilder::new();
        let writer = options.terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        let mut rows = Rows { file, writer };
        rows.add(header.split(','));
        rows
    }

    fn add<Cell: AsRef<[u8]>>(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.writer
            .write_record(cells)
            .expect("memory takes every row, and all have as many cells");
    }

    fn table(self) -> Table {
        let bytes = self.writer.into_inner().expect("memory takes every row");
        Table { file: self.file, text: String::from_utf8(bytes).expect("cells are texts") }
    }
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A text as a cell that is no formula.
fn text(text: &str) -> String {
    let harmful = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\'']);
    if harmful { format!("'{text}") } else { text.to_owned() }
}

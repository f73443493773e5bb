//! Chrome's trace event format: JSON that `chrome://tracing`, Perfetto and many other viewers read.
//!
//! Every slot of a lane is a thread of its own, so that complete events nest. Messages are
//! asynchronous pairs, identified by `id2`, with a flow between the two spans if both are known.
//! Times are microseconds with three decimals, so nanoseconds are kept, up to 50 days after the
//! start of the clock even in readers that store them as `double`.

use std::fmt::Write;

use super::fields::{self, Facts, Field, Value};
use super::tracks;
use crate::analysis::{Analysis, SegmentKind};
use crate::timeline::Timeline;

/// Exports a timeline in Chrome's format.
pub fn chrome(timeline: &Timeline, analysis: &Analysis) -> String {
    let facts = Facts::new(timeline, analysis);
    let packed = tracks::pack(timeline);
    let names = fields::lane_names(timeline);
    let mut file = File { text: String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[") };
    file.name("process_name", 0, timeline.meta.get("model").map_or("lapwing", String::as_str));
    file.thread(PATH, "critical path");
    for (thread, track) in packed.tracks.iter().enumerate() {
        file.thread(SPANS + thread, &format!("{} {}", names[track.lane], track.row + 1));
    }
    let idle = SPANS + packed.tracks.len();
    for (lane, name) in names.iter().enumerate() {
        file.thread(idle + lane, &format!("{name} idle"));
    }
    for (at, span) in timeline.spans.iter().enumerate() {
        let slice = Slice {
            name: &span.name,
            category: span.activity.name(),
            thread: SPANS + packed.of_span[at],
            start: span.start.0,
            end: span.end.0,
        };
        file.slice(&slice, &facts.span(at));
    }
    for gap in &analysis.gaps {
        let (name, thread) = (gap.cause.title(timeline), idle + gap.lane);
        let (start, end) = (gap.start, gap.end);
        let slice = Slice { name: &name, category: "idle", thread, start, end };
        file.slice(&slice, &facts.wait(gap.cause, gap.next, gap.blocker));
    }
    for segment in &analysis.critical_path.segments {
        let (name, span) = match segment.kind {
            SegmentKind::Running(span) => (timeline.spans[span].name.clone(), span),
            SegmentKind::Waiting(cause, next) => (cause.title(timeline), next),
        };
        let (start, end) = (segment.start, segment.end);
        let slice = Slice { name: &name, category: "critical path", thread: PATH, start, end };
        file.slice(&slice, &facts.segment(segment.lane, span));
    }
    file.messages(timeline, &packed.of_span);
    for counter in &timeline.counters {
        let name = quoted(&format!("{}: {}", names[counter.lane], counter.name));
        for (at, value) in &counter.values {
            let ts = micros(at.0);
            file.event(&format!(
                "\"ph\":\"C\",\"name\":{name},\"ts\":{ts},\"args\":{{\"value\":{value}}}"
            ));
        }
    }
    let meta = serde_json::to_string(&timeline.meta).unwrap_or_else(|_| "{}".to_owned());
    file.text.push_str(&format!("\n],\"otherData\":{meta}}}\n"));
    file.text
}

const PATH: usize = 1;
const SPANS: usize = 2;

struct Slice<'a> {
    name: &'a str,
    category: &'a str,
    thread: usize,
    start: u64,
    end: u64,
}

struct File {
    text: String,
}

impl File {
    /// Adds an event with these JSON members.
    fn event(&mut self, members: &str) {
        let comma = if self.text.ends_with('[') { "" } else { "," };
        self.text.push_str(comma);
        self.text.push_str("\n{\"pid\":1,");
        self.text.push_str(members);
        self.text.push('}');
    }

    fn name(&mut self, what: &str, thread: usize, name: &str) {
        let name = quoted(name);
        self.event(&format!(
            "\"ph\":\"M\",\"name\":\"{what}\",\"tid\":{thread},\"args\":{{\"name\":{name}}}"
        ));
    }

    fn thread(&mut self, thread: usize, name: &str) {
        self.name("thread_name", thread, name);
        self.event(&format!(
            "\"ph\":\"M\",\"name\":\"thread_sort_index\",\"tid\":{thread},\"args\":{{\"sort_index\":{thread}}}"
        ));
    }

    fn slice(&mut self, slice: &Slice, fields: &[Field]) {
        self.event(&format!(
            "\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{}",
            quoted(slice.name),
            slice.category,
            slice.thread,
            micros(slice.start),
            micros(slice.end - slice.start),
            arguments(fields)
        ));
    }

    fn messages(&mut self, timeline: &Timeline, of_span: &[usize]) {
        for (number, message) in timeline.messages.iter().enumerate() {
            let name = quoted(&message.name);
            let key = format!("\"cat\":\"message\",\"id2\":{{\"local\":\"{:#x}\"}}", number + 1);
            let args = arguments(&fields::message(message));
            let (sent, received) = (message.sent.0, message.received.unwrap_or(message.sent).0);
            for (phase, at, args) in [("b", sent, args.as_str()), ("e", received, "{}")] {
                let ts = micros(at);
                self.event(&format!(
                    "\"ph\":\"{phase}\",\"name\":{name},{key},\"ts\":{ts},\"args\":{args}"
                ));
            }
            let (Some(from), Some(to)) = (message.from, message.to) else { continue };
            for (phase, span, at) in [("s", from, sent), ("f", to, received)] {
                // A flow attaches to the innermost slice that encloses its time, so its time must
                // be inside the slice.
                let (start, end) = (timeline.spans[span].start.0, timeline.spans[span].end.0);
                let (ts, thread) = (micros(at.clamp(start, end)), SPANS + of_span[span]);
                self.event(&format!(
                    "\"ph\":\"{phase}\",\"bp\":\"e\",\"name\":{name},\"cat\":\"message\",\
                     \"id\":{},\"tid\":{thread},\"ts\":{ts}",
                    number + 1
                ));
            }
        }
    }
}

fn micros(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn arguments(fields: &[Field]) -> String {
    let mut text = String::from("{");
    for (at, (name, value)) in fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Number(number) => write!(text, "{comma}\"{name}\":{number}"),
            Value::Flag(flag) => write!(text, "{comma}\"{name}\":{flag}"),
            Value::Text(inner) => write!(text, "{comma}\"{name}\":{}", quoted(inner)),
        };
    }
    text.push('}');
    text
}

//! Fields that exports attach to spans, gaps, messages and segments of the critical path.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::analysis::{Analysis, IdleCause, SegmentKind};
use crate::text::counted;
use crate::timeline::{Lane, Message, Span, Timeline};

/// Value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Number(u64),
    Flag(bool),
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value::Text(text.into())
    }
}

/// Name and value of a field; absent values are left out.
pub(super) type Field<'a> = (&'static str, Value<'a>);

/// A timeline with its analysis, prepared for the export of spans.
pub(super) struct Facts<'a> {
    pub(super) timeline: &'a Timeline,
    analysis: &'a Analysis,
    critical: Vec<bool>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(timeline: &'a Timeline, analysis: &'a Analysis) -> Facts<'a> {
        let mut critical = vec![false; timeline.spans.len()];
        for segment in &analysis.critical_path.segments {
            if let SegmentKind::Running(span) = segment.kind {
                let mut at = Some(span);
                // The path also runs through all ancestors of the innermost span.
                while let Some(span) = at.filter(|at| !critical[*at]) {
                    critical[span] = true;
                    at = timeline.spans[span].parent;
                }
            }
        }
        Facts { timeline, analysis, critical }
    }

    pub(super) fn critical(&self, span: usize) -> bool {
        self.critical[span]
    }

    pub(super) fn slack(&self, span: usize) -> Option<u64> {
        self.analysis.critical_path.slack.get(span).copied()
    }

    /// Fields of a span, without its name and times.
    pub(super) fn span(&self, at: usize) -> Vec<Field<'a>> {
        let span: &'a Span = &self.timeline.spans[at];
        let tags = &span.tags;
        let number = |name, value: Option<u64>| value.map(|value| (name, Value::Number(value)));
        let present = |value: u64| Some(value).filter(|value| *value > 0);
        let fields = [
            Some(("id", Value::Number(span.id.0.get()))),
            Some(("activity", Value::text(span.activity.name()))),
            number("chunk", tags.chunk),
            number("request", tags.request),
            number("stage", tags.stage.map(u64::from)),
            number("layer", tags.layer.map(u64::from)),
            tags.role.map(|role| ("role", Value::text(role.name()))),
            tags.phase.map(|phase| ("phase", Value::text(phase.name()))),
            number("rows", present(tags.rows.into())),
            self.limit(span).map(|limit| ("limited", Value::text(limit))),
            number("epoch", present(tags.epoch.into())),
            number("bytes", present(tags.bytes)),
            number("flops", present(tags.flops)),
            number("queued_ns", span.queued.map(|at| at.0)),
            number("submitted_ns", span.submitted.map(|at| at.0)),
            number("slack_ns", self.slack(at)),
            Some(("on_critical_path", Value::Flag(self.critical(at)))),
            span.discarded.then_some(("discarded", Value::Flag(true))),
            (!span.finished).then_some(("unfinished", Value::Flag(true))),
        ];
        fields.into_iter().flatten().collect()
    }

    /// Why an outer span has no more rows of prompts, with its rows, as in `128 rows, kept short for streams`.
    fn limit(&self, span: &Span) -> Option<String> {
        let limited = self.timeline.limited.get(&span.tags.chunk?)?;
        let is_shown = span.parent.is_none() && span.tags.rows > 0;
        is_shown.then(|| format!("{}, {limited}", counted(span.tags.rows as usize, "row")))
    }

    /// Fields of a gap: the lane depended on, the next span, and the span that delayed it.
    pub(super) fn wait(
        &self,
        cause: IdleCause,
        next: Option<usize>,
        blocker: Option<usize>,
    ) -> Vec<Field<'a>> {
        let timeline: &'a Timeline = self.timeline;
        let name = |span: usize| Value::text(timeline.spans[span].name.as_str());
        let id = |span: usize| Value::Number(timeline.spans[span].id.0.get());
        let mut fields = Vec::new();
        if let IdleCause::Dependency(lane) = cause {
            fields.push(("on_lane", Value::text(timeline.lanes[lane].name.as_str())));
        }
        if let Some(next) = next {
            fields.extend([("next", name(next)), ("next_id", id(next))]);
        }
        if let Some(blocker) = blocker {
            fields.extend([("blocker", name(blocker)), ("blocker_id", id(blocker))]);
        }
        fields
    }

    /// Fields of a segment of the critical path: its lane, and the span that ran or started after
    /// it.
    pub(super) fn segment(&self, lane: usize, span: usize) -> Vec<Field<'a>> {
        let timeline: &'a Timeline = self.timeline;
        vec![
            ("lane", Value::text(timeline.lanes[lane].name.as_str())),
            ("span", Value::text(timeline.spans[span].name.as_str())),
            ("span_id", Value::Number(timeline.spans[span].id.0.get())),
        ]
    }
}

/// Fields of a message, without its name and times.
pub(super) fn message(message: &Message) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    if message.bytes > 0 {
        fields.push(("bytes", Value::Number(message.bytes)));
    }
    if let Some((cause, since)) = message.stall {
        let held = message.sent.0.saturating_sub(since.0);
        fields.extend([("held_by", Value::text(cause.name())), ("held_ns", Value::Number(held))]);
    }
    if message.received.is_none() {
        fields.push(("lost", Value::Flag(true)));
    }
    fields
}

/// Names of the lanes; the kind is appended if lanes share a name.
pub(super) fn lane_names(timeline: &Timeline) -> Vec<String> {
    let lanes = &timeline.lanes;
    let mut alike: HashMap<&str, usize> = HashMap::with_capacity(lanes.len());
    for lane in lanes {
        *alike.entry(&lane.name).or_default() += 1;
    }
    let name = |lane: &Lane| match alike[lane.name.as_str()] {
        1 => lane.name.clone(),
        _ => format!("{} ({})", lane.name, lane.kind.name()),
    };
    lanes.iter().map(name).collect()
}

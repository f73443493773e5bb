//! A run to be shown on a page.

use crate::analysis::SegmentKind::{Running, Waiting};
use crate::analysis::{Analysis, IdleCause};
use crate::report::Report;
use crate::timeline::Timeline;

/// A run to be shown on a page.
#[derive(Clone, Copy, Debug)]
pub struct PageRun<'a> {
    /// Title, such as a file name or a strategy.
    pub title: &'a str,
    /// Timeline.
    pub timeline: &'a Timeline,
    /// Analysis of the timeline.
    pub analysis: &'a Analysis,
    /// Report of the timeline.
    pub report: &'a Report,
}

impl PageRun<'_> {
    /// Whether the analysis refers only to spans and lanes that the timeline has.
    pub(super) fn is_consistent(&self) -> bool {
        let (spans, lanes) = (self.timeline.spans.len(), self.timeline.lanes.len());
        let path = &self.analysis.critical_path;
        let span = |index: Option<usize>| index.is_none_or(|index| index < spans);
        let cause =
            |cause: IdleCause| !matches!(cause, IdleCause::Dependency(lane) if lane >= lanes);
        path.slack.len() == spans
            && path.spans.iter().all(|index| *index < spans)
            && self.analysis.gaps.iter().all(|gap| {
                gap.lane < lanes && span(gap.next) && span(gap.blocker) && cause(gap.cause)
            })
            && path.segments.iter().all(|segment| {
                segment.lane < lanes
                    && match segment.kind {
                        Running(index) => index < spans,
                        Waiting(why, index) => index < spans && cause(why),
                    }
            })
    }
}

/// Letter of a run when two are shown.
pub(super) fn letter(run: usize) -> char {
    if run == 0 { 'A' } else { 'B' }
}

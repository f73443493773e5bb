//! A run as the page shows it.

use crate::analysis::SegmentKind::{Running, Waiting};
use crate::analysis::{Analysis, IdleCause};
use crate::report::Report;
use crate::timeline::Timeline;

/// A run on the page.
#[derive(Clone, Copy, Debug)]
pub struct PageRun<'a> {
    /// What to call it: a file's name, a strategy.
    pub title: &'a str,
    /// The run.
    pub timeline: &'a Timeline,
    /// Its analysis.
    pub analysis: &'a Analysis,
    /// Its numbers.
    pub report: &'a Report,
}

impl PageRun<'_> {
    /// Whether the analysis names nothing that the timeline lacks.
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

/// Name of a run among two.
pub(super) fn letter(run: usize) -> char {
    if run == 0 { 'A' } else { 'B' }
}

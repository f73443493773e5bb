use std::num::NonZeroU64;

use super::*;
use crate::analysis::{Analysis, CriticalPath, Gap, Overlap};
use crate::event::{LaneKind, SpanId, Tags};
use crate::report::Report;
use crate::timeline::{Lane, Timeline};

#[test]
fn the_largest_numbers_can_be_packed() {
    let span = |number: u64, start: u64, end: u64| Span {
        id: SpanId(NonZeroU64::MIN.saturating_add(number)),
        lane: 0,
        slot: 0,
        parent: None,
        depth: 0,
        name: "op".to_owned(),
        activity: Activity::Other,
        queued: Some(Nanos(u64::MAX)),
        submitted: Some(Nanos(0)),
        start: Nanos(start),
        end: Nanos(end),
        finished: true,
        discarded: false,
        tags: Tags { chunk: Some(u64::MAX), bytes: u64::MAX, ..Tags::default() },
    };
    let timeline = Timeline {
        lanes: vec![Lane { name: "cpu".to_owned(), kind: LaneKind::Device, slots: 1 }],
        spans: vec![span(0, 0, u64::MAX), span(1, u64::MAX, u64::MAX)],
        ..Timeline::default()
    };
    let gap = Gap {
        lane: 0,
        start: u64::MAX,
        end: u64::MAX,
        cause: IdleCause::Unknown,
        next: None,
        blocker: Some(1),
    };
    let slack = vec![u64::MAX; 2];
    let analysis = Analysis {
        overlap: Overlap::default(),
        gaps: vec![gap],
        critical_path: CriticalPath { slack, ..CriticalPath::default() },
    };
    let empty = Timeline::default();
    let report = Report::new(&empty, &Analysis::new(&empty));
    let run = PageRun { title: "t", timeline: &timeline, analysis: &analysis, report: &report };
    assert!(!pack(&run).unwrap().is_empty());
    let frame = super::super::picture::Frame::default();
    assert!(super::super::picture::picture(&timeline, frame).contains("cpu"));
}

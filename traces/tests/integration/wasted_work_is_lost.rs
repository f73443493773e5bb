//! Small runs whose wasted work and drafts are counted by hand.

use lapwing_traces::Report;
use lapwing_traces::event::{DraftRole, EventKind, RowOutcome, Tags};
use lapwing_traces::text::{TextOptions, text};

use crate::runs::{Script, Work, work};

#[test]
fn work_of_an_outdated_epoch_is_wasted() {
    let mut script = Script::default();
    let tags = |epoch| Tags { request: Some(1), epoch, ..Tags::default() };
    script.work(Work { tags: tags(0), ..work(1, "cpu", "draft", (0, 10)) });
    script.work(Work { tags: tags(0), ..work(2, "cpu", "draft", (10, 40)) });
    script.work(Work { tags: tags(1), ..work(3, "gpu", "verify", (30, 50)) });
    let (timeline, analysis) = script.analysed();
    let report = Report::new(&timeline, &analysis);
    assert_eq!(report.lanes[0].wasted_ns, 30);
    assert_eq!(report.lanes[1].wasted_ns, 0);
}

/// A draft model on one lane and its target on another: a draft of three passes, a verification of four rows of which
/// one draft is accepted, and a pass that is cancelled.
#[test]
fn drafts_are_counted_by_lane_and_wasted_rows_by_chunk() {
    let mut script = Script::default();
    let tags = |role, chunk, rows, epoch| Tags {
        role: Some(role),
        chunk: Some(chunk),
        request: Some(1),
        rows,
        epoch,
        ..Tags::default()
    };
    let (draft, verify) = (DraftRole::Draft, DraftRole::Verify);
    for (chunk, at) in [(1, 0), (2, 10), (3, 20)] {
        let tags = tags(draft, chunk, 1, 0);
        script.work(Work { tags, ..work(chunk, "cpu", "draft", (at, at + 10)) });
    }
    script.work(Work { tags: tags(verify, 4, 4, 5), ..work(4, "gpu", "verify", (30, 60)) });
    script.work(Work { tags: tags(draft, 5, 1, 0), ..work(5, "cpu", "draft", (30, 70)) });
    script.work(Work { tags: tags(draft, 6, 1, 1), ..work(6, "cpu", "draft", (70, 80)) });
    script.work(Work { tags: tags(verify, 7, 2, 6), ..work(7, "gpu", "verify", (80, 90)) });
    let rows = |drafted, accepted, wasted| RowOutcome { drafted, accepted, wasted };
    // The second draft is rejected, so that the third and the fifth pass are wasted; their rows become known in two
    // events.
    for (chunk, outcome) in
        [(4, rows(3, 1, 2)), (2, rows(0, 0, 1)), (3, rows(0, 0, 1)), (5, rows(0, 0, 1))]
    {
        script.event(60, "scheduler", EventKind::Rows(chunk, outcome));
    }
    script.event(90, "scheduler", EventKind::Rows(7, rows(1, 0, 0)));
    script.event(90, "scheduler", EventKind::Rows(7, rows(0, 0, 1)));
    script.sent((5, 6), ("cpu", "cpu"), (70, 70));
    script.sent((6, 7), ("cpu", "gpu"), (80, 80));
    let (timeline, analysis) = script.analysed();
    let report = Report::new(&timeline, &analysis);
    let found: Vec<_> = report
        .drafts
        .iter()
        .map(|d| {
            let rows = (d.rows, d.drafted, d.accepted, d.wasted_rows);
            (d.lane.as_str(), d.role, d.passes, rows, d.cancelled, (d.busy_ns, d.wasted_ns))
        })
        .collect();
    assert_eq!(
        found,
        [
            ("cpu", "draft", 5, (5, 0, 0, 3), 3, (80, 60)),
            ("gpu", "verify", 2, (6, 4, 1, 3), 0, (40, 0)),
        ]
    );
    assert_eq!(report.lanes[0].wasted_ns, 60, "the epochs of the target are not the draft model's");
    let gpu = report.lanes.iter().find(|lane| lane.name == "gpu").expect("a lane");
    let idle: Vec<_> = gpu.idle.iter().map(|idle| (idle.cause.as_str(), idle.ns)).collect();
    assert!(
        idle.contains(&("cancelled work", 10)),
        "from 60 to 70 it waits for a stale pass: {idle:?}"
    );
    let text = text(&timeline, &analysis, &report, &TextOptions::default());
    assert!(text.contains("Speculative decoding") && text.contains("verify"), "{text}");
}

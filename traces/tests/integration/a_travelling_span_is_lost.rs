//! Spans that no thread enters, and what passes from lane to lane, are on the timeline.

use lapwing_traces::event::{Activity, DraftRole, LaneKind, Milestone};
use lapwing_traces::{Scope, Timeline};
use tracing::field::Empty;
use tracing::{Span, info, info_span};

use crate::a_program_is_shown_wrongly::{lane, names, run, span};

/// Sender and receiver of each message.
fn messages(timeline: &Timeline) -> Vec<(&str, &str)> {
    let name = |at: Option<usize>| &timeline.spans[at.expect("a span")].name[..];
    let named = timeline.messages.iter().map(|message| (name(message.from), name(message.to)));
    let mut named: Vec<_> = named.collect();
    named.sort_unstable();
    named
}

/// Work of `parent` on a device, which lasts until it is dropped.
fn work(parent: &Span, name: &str, device: &str) -> Span {
    info_span!(parent: parent, "work", timeline.name = name, device)
}

#[test]
fn work_that_is_never_entered_lasts_from_its_creation_to_its_close() {
    let timeline = run(Scope::All, |_| {
        let stage = info_span!(
            "stage",
            timeline.name = "prefill",
            device = "gpu",
            activity = "compute",
            role = "verify",
            chunk = 3,
            rows = Empty,
        );
        let other = stage.clone();
        info_span!("meanwhile").in_scope(|| drop(stage));
        other.record("rows", 8);
        drop(other);
        drop(info_span!("without a lane"));
        drop(info_span!("lane known later", device = Empty));
    });
    assert_eq!(names(&timeline), ["prefill", "meanwhile"]);
    let (stage, meanwhile) = (span(&timeline, "prefill"), span(&timeline, "meanwhile"));
    assert!(stage.start <= meanwhile.start && meanwhile.end <= stage.end && stage.finished);
    assert_eq!(lane(&timeline, stage), ("gpu", LaneKind::Device));
    assert_eq!(stage.activity, Activity::Compute);
    assert_eq!(stage.tags.role, Some(DraftRole::Verify));
    assert_eq!((stage.tags.chunk, stage.tags.rows), (Some(3), 8));
    assert_eq!(timeline.orphans, 0);
}

#[test]
fn what_passes_from_lane_to_lane_sends_a_message_to_the_next_lane() {
    let timeline = run(Scope::All, |_| {
        let chunk = info_span!("chunk");
        drop(work(&chunk, "first", "cpu"));
        let (left, right) = (work(&chunk, "left", "cpu"), work(&chunk, "right", "gpu"));
        drop((left, right));
        work(&chunk, "merge", "cpu").in_scope(|| {});
        drop(work(&chunk, "last", "gpu"));
        drop(work(&info_span!("another chunk"), "alone", "gpu"));
    });
    let expected = [("first", "left"), ("first", "right"), ("merge", "last"), ("right", "merge")];
    assert_eq!(messages(&timeline), expected);
    for message in &timeline.messages {
        let (from, to) = (message.from.expect("a sender"), message.to.expect("a receiver"));
        assert_eq!(message.sent, timeline.spans[from].end);
        assert_eq!(message.received, Some(timeline.spans[to].start));
    }
}

#[test]
fn the_next_chunk_of_a_request_comes_after_the_one_before() {
    let timeline = run(Scope::All, |_| {
        let request = info_span!("request");
        for name in ["one", "two", "three"] {
            let chunk = info_span!(parent: None, "chunk");
            chunk.follows_from(&request);
            drop(work(&chunk, name, "cpu"));
        }
        let other = info_span!(parent: None, "chunk");
        other.follows_from(&info_span!("another request"));
        drop(work(&other, "other", "cpu"));
    });
    assert_eq!(messages(&timeline), [("one", "two"), ("two", "three")]);
}

#[test]
fn work_that_begins_while_recording_is_off_is_not_recorded() {
    let timeline = run(Scope::Off, |recorder| {
        let chunk = info_span!("chunk");
        let early = work(&chunk, "early", "cpu");
        recorder.set_scope(Scope::All);
        drop(early);
        drop(work(&chunk, "on time", "cpu"));
    });
    assert_eq!(names(&timeline), ["on time"]);
    let timeline = run(Scope::Marked, |_| {
        let plain = info_span!("request");
        drop(work(&plain, "plain", "cpu"));
        let marked = info_span!("request", marked = true);
        drop(work(&marked, "marked", "cpu"));
    });
    assert_eq!(names(&timeline), ["marked"]);
}

#[test]
fn milestones_of_requests_are_no_marks() {
    let timeline = run(Scope::All, |_| {
        info!(request = 4, milestone = "submitted", value = 17, lane = "scheduler", "submitted");
        info!(request = 4, milestone = "token", value = 2, "a token");
        info!(request = 4, milestone = "token gap", value = 5_000_000, "its target");
        info!(request = 4, milestone = "finished", value = 2, "finished");
        info!(request = 4, milestone = "half way", "a mark");
        info!(milestone = "finished", "another mark");
    });
    assert_eq!(names(&timeline), ["a mark", "another mark"]);
    let reached: Vec<_> =
        timeline.milestones.iter().map(|it| (it.request, it.milestone, it.value)).collect();
    let expected = [
        (4, Milestone::Submitted, 17),
        (4, Milestone::Token, 2),
        (4, Milestone::TokenGap, 5_000_000),
        (4, Milestone::Finished, 2),
    ];
    assert_eq!(reached, expected);
    assert!(timeline.lanes.iter().any(|lane| lane.name == "scheduler"));
}

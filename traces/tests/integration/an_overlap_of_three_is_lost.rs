//! Runs of which it is known which kinds of work ran at the same time, and how close they are to the least time of their devices.

use lapwing_traces::analysis::{Bound, Concurrent, WorkKind, WorkSet};
use lapwing_traces::budget::Budget;
use lapwing_traces::event::{ChunkPhase, DraftRole, EventKind, Milestone, Need, Tags};
use lapwing_traces::text::{TextOptions, text};
use lapwing_traces::{Nanos, Report, Timeline};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::runs::{Script, Work, work};

use WorkKind::{Decode, Draft, Prompt, Verify};

/// Tags of a stage of such work; `decode+prompt` and `verify+prompt` are chunks with rows of both.
fn tags(chunk: u64, kinds: &str) -> Tags {
    let role = match kinds {
        "draft" => Some(DraftRole::Draft),
        "verify" | "verify+prompt" => Some(DraftRole::Verify),
        _ => None,
    };
    let phase = match kinds {
        "prompt" => ChunkPhase::Prefill,
        "decode+prompt" | "verify+prompt" => ChunkPhase::Mixed,
        _ => ChunkPhase::Decode,
    };
    Tags { chunk: Some(chunk), rows: 1, role, phase: Some(phase), ..Tags::default() }
}

/// Stages as (lane, kinds, start, end), each of a chunk of its own.
fn stages(all: &[(&str, &str, u64, u64)]) -> Script {
    let mut script = Script::default();
    for (number, (lane, kinds, start, end)) in (1..).zip(all) {
        let tags = tags(number, kinds);
        script.work(Work { tags, ..work(number, lane, "stage", (*start, *end)) });
    }
    script
}

fn time(script: &Script, kinds: &[WorkKind]) -> Option<u64> {
    let (timeline, _) = script.analysed();
    Concurrent::new(&timeline).time(WorkSet::of(kinds.iter().copied()))
}

fn json_of(script: &Script) -> Value {
    let (timeline, analysis) = script.analysed();
    serde_json::to_value(Report::new(&timeline, &analysis)).unwrap()
}

#[track_caller]
fn holds(script: &Script, budgets: &[&str]) {
    let report = json_of(script);
    for budget in budgets {
        let outcome = Budget::parse(budget).unwrap().check(&report).unwrap();
        assert!(outcome.ok, "{budget}: {}", outcome.value);
    }
}

/// 100 ns: drafts on the cpu from 0 to 60, a verification on the gpu from 20 to 80, a prompt on the npu from 50 to 100.
fn three() -> Script {
    stages(&[("cpu", "draft", 0, 60), ("gpu", "verify", 20, 80), ("npu", "prompt", 50, 100)])
}

#[test]
fn each_set_of_kinds_has_its_share_of_the_makespan() {
    holds(
        &three(),
        &[
            "concurrent.draft==0.6",
            "concurrent.draft+verify==0.4",
            "concurrent.draft+prompt==0.1",
            "concurrent.prompt+verify==0.3",
            "concurrent.draft+verify+prompt==0.1",
            "concurrent.verify+prompt+draft>=0.1",
            "concurrent.decode==0",
            "concurrent.draft+verify+decode+prompt==0",
        ],
    );
    let report = json_of(&three());
    assert_eq!(report["concurrent"].as_object().map(|sets| sets.len()), Some(15));
}

#[test]
fn kinds_count_only_on_devices_of_their_own() {
    // Both rows of one chunk run on one device: no two kinds have a device each.
    let one = stages(&[("gpu", "verify+prompt", 0, 10)]);
    assert_eq!(time(&one, &[Verify, Prompt]), Some(0));
    assert_eq!((time(&one, &[Verify]), time(&one, &[Prompt])), (Some(10), Some(10)));
    // With such a chunk on two devices, each device stands for one kind; for a third one there is no device.
    let two = stages(&[("gpu", "verify+prompt", 0, 10), ("npu", "verify+prompt", 4, 12)]);
    assert_eq!(time(&two, &[Verify, Prompt]), Some(6));
    let third = stages(&[
        ("gpu", "verify+prompt", 0, 10),
        ("cpu", "draft", 2, 10),
        ("cpu", "decode", 2, 9),
    ]);
    assert_eq!(time(&third, &[Draft, Prompt]), Some(8));
    assert_eq!(time(&third, &[Draft, Verify, Prompt]), Some(0));
    assert_eq!(time(&third, &[Draft, Decode]), Some(0));
}

#[test]
fn only_stages_of_devices_count() {
    let mut script = three();
    let tags = tags(9, "decode");
    let activity = lapwing_traces::event::Activity::Sample;
    script.work(Work { tags, activity, ..work(9, "cpu", "sample", (60, 100)) });
    script.work(Work { parent: Some(1), tags, ..work(10, "cpu", "op", (10, 20)) });
    assert_eq!(time(&script, &[Decode]), Some(0));
    // A program without chunks says nothing of its kinds of work.
    let mut other = Script::default();
    other.ran(1, "cpu", (0, 10));
    assert_eq!(time(&other, &[Decode]), None);
    let report = json_of(&other);
    assert_eq!(
        (&report["concurrent"]["draft+verify"], &report["bound_ns"]),
        (&Value::Null, &Value::Null)
    );
    let absent = Budget::parse("concurrent.draft+verify>0").unwrap().check(&report);
    assert!(absent.unwrap_err().to_string().contains("no value in this run"));
}

#[test]
fn the_text_says_what_ran_at_the_same_time() {
    let (timeline, analysis) = three().analysed();
    let report = Report::new(&timeline, &analysis);
    let text = text(&timeline, &analysis, &report, &TextOptions::default());
    for row in ["draft+verify+prompt  10 ns  10.0 %", "draft+verify         40 ns  40.0 %"] {
        assert!(text.contains(row), "{text}");
    }
    assert!(!text.contains("decode"), "{text}");
}

/// Kinds of the stages of random runs.
const KINDS: [&str; 6] = ["draft", "verify", "decode", "prompt", "decode+prompt", "verify+prompt"];

/// Whether each kind of the set has one of these devices for itself, by trying all of them.
fn is_matched(set: &[WorkKind], devices: &[Vec<&str>]) -> bool {
    let Some((first, rest)) = set.split_first() else { return true };
    (0..devices.len()).any(|at| {
        let runs =
            devices[at].iter().any(|kinds| kinds.split('+').any(|kind| kind == first.name()));
        let others: Vec<Vec<&str>> = devices
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, it)| it.clone())
            .collect();
        runs && is_matched(rest, &others)
    })
}

proptest! {
    /// Every nanosecond of a short run is tried.
    #[test]
    fn times_are_those_of_every_nanosecond(
        all in proptest::collection::vec((0..4usize, 0..KINDS.len(), 0..30u64, 0..12u64), 1..16)
    ) {
        let lanes = ["cpu", "gpu", "npu", "dsp"];
        let all: Vec<_> =
            all.iter().map(|(lane, kinds, start, length)| (lanes[*lane], KINDS[*kinds], *start, start + length)).collect();
        let (timeline, _) = stages(&all).analysed();
        let found = Concurrent::new(&timeline);
        for set in WorkSet::all() {
            let kinds: Vec<WorkKind> = set.kinds().collect();
            let wanted = (0..42).filter(|at| {
                let on = |lane: &str| {
                    let running = all.iter().filter(|(own, _, start, end)| *own == lane && (start..end).contains(&at));
                    running.map(|(_, kinds, ..)| *kinds).collect::<Vec<_>>()
                };
                is_matched(&kinds, &lanes.map(on))
            });
            prop_assert_eq!(found.time(set), Some(wanted.count() as u64), "{}", set.name());
        }
    }
}

/// A chunk of request 1 with two kinds of blocks: 4 that both devices can run, and one that only the second can.
fn need(script: &mut Script, chunk: u64, path: u64) {
    let never = Need::NEVER;
    for (count, times) in
        [(4, [40, 10, never, never, never]), (1, [never, 20, never, never, never])]
    {
        let need = EventKind::Need(Need { chunk, count, times, path });
        script.event(0, "scheduler", need);
    }
}

#[test]
fn the_bound_is_that_of_the_devices_and_not_of_the_routes() {
    // The first device takes 1.2 of the four blocks, the second the others: 1.2 · 40 = 2.8 · 10 + 20 = 48 ns.
    let mut script = stages(&[("cpu", "prompt", 0, 100), ("gpu", "decode", 100, 120)]);
    need(&mut script, 1, 30);
    let (timeline, _) = script.analysed();
    let bound = Bound::new(&timeline).unwrap();
    assert!((bound.area / 48.0 - 1.0).abs() < 0.01 && bound.area <= 48.0 + 1e-9, "{bound:?}");
    assert_eq!(bound.path, 0.0, "the chunk is of no request of its own");
    let report = json_of(&script);
    assert_eq!(report["makespan/bound"], json!(120.0 / bound.least()));
    holds(
        &script,
        &["makespan/bound<=2.55", "makespan/bound>=2.5", "bound_ns<=48", "bound_path_ns==0"],
    );
    let text = {
        let (timeline, analysis) = script.analysed();
        text(&timeline, &analysis, &Report::new(&timeline, &analysis), &TextOptions::default())
    };
    assert!(text.contains("of which the run took 2.5"), "{text}");
    // Nothing is bounded in a window, which may have a part of a chunk.
    let window = Timeline::of_window(&script.recording, Nanos(10), Nanos(90));
    assert_eq!(Bound::new(&window), None);
}

#[test]
fn steps_of_a_request_follow_each_other() {
    let mut script = Script::default();
    script.event(0, "cpu", EventKind::Request(8, Milestone::Submitted, 3));
    script.event(500, "cpu", EventKind::Request(7, Milestone::Submitted, 3));
    script.ran(90, "cpu", (0, 1));
    for (chunk, kinds, path) in
        [(1, "prompt", 30), (2, "prompt", 50), (3, "decode", 200), (4, "decode", 100)]
    {
        let tags = Tags { request: Some(7), ..tags(chunk, kinds) };
        script.work(Work {
            tags,
            ..work(chunk, "cpu", "stage", (500 + 100 * chunk, 600 + 100 * chunk))
        });
        need(&mut script, chunk, path);
    }
    let path = |script: &Script| Bound::new(&script.analysed().0).unwrap().path;
    assert_eq!(path(&script), 500.0 + 50.0 + 200.0 + 100.0);
    // Passes that verify may be in flight at the same time.
    let tags = Tags { request: Some(7), ..tags(5, "verify") };
    script.work(Work { tags, ..work(5, "cpu", "stage", (1000, 1100)) });
    need(&mut script, 5, 20);
    assert_eq!(path(&script), 500.0 + 200.0);
    // A chunk that was dropped needs nothing.
    let area = |script: &Script| Bound::new(&script.analysed().0).unwrap().area;
    let before = area(&script);
    let rows = lapwing_traces::event::RowOutcome { wasted: 1, ..Default::default() };
    script.event(1100, "cpu", EventKind::Rows(5, rows));
    assert!(area(&script) < before);
}

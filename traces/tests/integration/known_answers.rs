//! Small runs whose overlap, idle causes, critical path, replay, waits and difference are worked
//! out by hand.

use lapwing_traces::analysis::{Diff, IdleCause, Replay, SegmentKind, WhatIf};
use lapwing_traces::event::{Activity, EventKind, StallCause, Tags};
use lapwing_traces::{Analysis, Nanos, Report, Timeline};

use crate::runs::{Script, Work, work};

/// Idle stretches of a lane as (from, to, cause with its lane's name).
fn gaps(timeline: &Timeline, analysis: &Analysis, lane: &str) -> Vec<(u64, u64, String)> {
    let of_lane = analysis.gaps.iter().filter(|gap| timeline.lanes[gap.lane].name == lane);
    of_lane.map(|gap| (gap.start, gap.end, gap.cause.title(timeline))).collect()
}

fn expect(script: &Script, lane: &str, expected: &[(u64, u64, &str)]) {
    let (timeline, analysis) = script.analysed();
    let found = gaps(&timeline, &analysis, lane);
    let expected: Vec<_> = expected.iter().map(|(a, b, c)| (*a, *b, (*c).to_owned())).collect();
    assert_eq!(found, expected, "idle time of {lane}");
}

/// cpu 0–100, then a message to gpu that takes 5, gpu 110–200 (5 of restart), cpu 50 % beside it.
fn two_devices() -> Script {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 100)).ran(2, "gpu", (110, 200)).ran(3, "cpu", (120, 170));
    script.sent((1, 2), ("cpu", "gpu"), (100, 105)).sent((1, 3), ("cpu", "cpu"), (100, 120));
    script
}

#[test]
fn overlap_is_exact() {
    let (_, analysis) = two_devices().analysed();
    let overlap = &analysis.overlap;
    assert_eq!((overlap.busy.clone(), overlap.union), (vec![150, 90], 190));
    assert_eq!(overlap.pairs, [(0, 1, 50)]);
    assert_eq!(overlap.ratio(), Some(50.0 / 240.0));
    // Busy on the critical path: 100 on the cpu and 90 on the gpu.
    assert_eq!(overlap.lower_bound, 190);
    assert_eq!(overlap.achievable(), Some(50.0 / 240.0));
    assert_eq!(overlap.efficiency(), Some(1.0));
}

#[test]
fn a_lane_that_waits_for_another_says_so_to_the_nanosecond() {
    let script = two_devices();
    let gpu = [(0, 100, "dependency on cpu"), (100, 105, "hand-off"), (105, 110, "restart")];
    expect(&script, "gpu", &gpu);
    expect(&script, "cpu", &[(100, 120, "hand-off"), (170, 200, "end")]);
}

#[test]
fn a_chain_over_three_lanes_blames_whoever_ran() {
    let mut script = Script::default();
    script.ran(1, "a", (0, 10)).ran(2, "b", (15, 30)).ran(3, "c", (30, 40));
    script.sent((1, 2), ("a", "b"), (10, 12)).sent((2, 3), ("b", "c"), (30, 30));
    let expected = [
        (0, 10, "dependency on a"),
        (10, 12, "hand-off"),
        (12, 15, "restart"),
        (15, 30, "dependency on b"),
    ];
    expect(&script, "c", &expected);
}

#[test]
fn a_sender_that_was_busy_with_something_else_is_blamed_for_it() {
    let mut script = Script::default();
    script.ran(1, "a", (0, 10)).ran(2, "a", (10, 25)).ran(3, "b", (25, 30));
    script.sent((2, 3), ("a", "b"), (25, 25));
    expect(&script, "b", &[(0, 10, "dependency on a"), (10, 25, "dependency on a")]);
}

#[test]
fn a_message_that_lay_in_the_mailbox_of_a_busy_lane_is_not_late() {
    let mut script = Script::default();
    script.ran(1, "a", (0, 10)).ran(2, "b", (0, 50)).ran(3, "b", (52, 60));
    script.sent((1, 3), ("a", "b"), (10, 51));
    expect(&script, "b", &[(50, 52, "restart")]);
    let (timeline, analysis) = script.analysed();
    let on_path: Vec<&str> = analysis
        .critical_path
        .spans
        .iter()
        .map(|span| timeline.lanes[timeline.spans[*span].lane].name.as_str())
        .collect();
    assert_eq!(on_path, ["b", "b"], "the lane itself was the bottleneck");
    // Had it slept, the message would have been on its way.
    script.event(51, "b", EventKind::Woke(Nanos(50)));
    expect(&script, "b", &[(50, 51, "hand-off"), (51, 52, "restart")]);
}

#[test]
fn building_and_converting_have_their_own_causes() {
    for (activity, cause) in [
        (Activity::Prepare, "graph build"),
        (Activity::Convert, "conversion"),
        (Activity::Copy, "conversion"),
    ] {
        let mut script = Script::default();
        script.work(Work { activity, ..work(1, "host", "make", (0, 40)) });
        script.ran(2, "npu", (40, 50)).sent((1, 2), ("host", "npu"), (40, 40));
        expect(&script, "npu", &[(0, 40, cause)]);
    }
}

#[test]
fn a_held_message_blames_the_hold_only_for_its_time() {
    for (stall, cause) in [
        (StallCause::BackPressure, "back-pressure"),
        (StallCause::SlotPool, "slot pool empty"),
        (StallCause::PolicyBarrier, "policy barrier"),
    ] {
        let mut script = Script::default();
        // The chunk was ready at 20; a permit came back at 50, when span 2 sent it.
        script.ran(1, "scheduler", (0, 20)).ran(2, "scheduler", (45, 50)).ran(3, "gpu", (52, 60));
        script.sent((0, 1), ("caller", "scheduler"), (0, 0));
        script.sent((0, 2), ("caller", "scheduler"), (45, 45));
        script.stalled((2, 3), ("scheduler", "gpu"), (50, 52), Some((stall, 20)));
        let expected = [(0, 20, "mailbox empty"), (20, 50, cause), (50, 52, "hand-off")];
        expect(&script, "gpu", &expected);
        // Sent after the end of its span, or from outside.
        let mut script = Script::default();
        script.ran(1, "scheduler", (0, 10)).ran(2, "gpu", (15, 20)).ran(3, "npu", (16, 20));
        script.stalled((1, 2), ("scheduler", "gpu"), (12, 15), Some((stall, 10)));
        script.stalled((0, 3), ("caller", "npu"), (12, 16), Some((stall, 8)));
        let gpu = [(0, 10, "dependency on scheduler"), (10, 12, cause), (12, 15, "hand-off")];
        expect(&script, "gpu", &gpu);
        let npu = [(0, 8, "mailbox empty"), (8, 12, cause), (12, 16, "hand-off")];
        expect(&script, "npu", &npu);
    }
}

#[test]
fn nothing_to_do_is_nobodys_fault() {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 10)).ran(2, "cpu", (40, 50));
    script.sent((0, 1), ("caller", "cpu"), (0, 0)).sent((0, 2), ("caller", "cpu"), (36, 39));
    let expected = [(10, 36, "mailbox empty"), (36, 39, "hand-off"), (39, 40, "restart")];
    expect(&script, "cpu", &expected);
}

#[test]
fn a_lane_that_only_sends_is_not_idle() {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 10)).sent((0, 1), ("caller", "cpu"), (0, 0));
    script.lane("caller");
    let (timeline, analysis) = script.analysed();
    let report = Report::new(&timeline, &analysis);
    let caller = report.lanes.iter().find(|lane| lane.name == "caller").unwrap();
    assert_eq!((caller.busy_ns, caller.idle_ns, caller.idle.len()), (0, 0, 0));
    assert!(report.idle.is_empty());
}

#[test]
fn a_gap_that_nothing_explains_is_called_unattributed() {
    let mut script = Script::default();
    script.ran(1, "thread", (0, 10)).ran(2, "thread", (40, 50));
    expect(&script, "thread", &[(10, 40, "unattributed")]);
    let (timeline, analysis) = script.analysed();
    assert_eq!(Report::new(&timeline, &analysis).idle_unattributed_ns, 30);
    // A recorded sleep in it is an explanation.
    script.event(30, "thread", EventKind::Woke(Nanos(15)));
    let expected = [(10, 15, "unattributed"), (15, 30, "mailbox empty"), (30, 40, "unattributed")];
    expect(&script, "thread", &expected);
}

#[test]
fn work_that_goes_on_with_the_same_chunk_restarts() {
    let mut script = Script::default();
    let tags = Tags { chunk: Some(7), ..Tags::default() };
    script.work(Work { tags, ..work(1, "cpu", "stage", (0, 10)) });
    script.work(Work { tags, ..work(2, "cpu", "sample", (13, 20)) });
    expect(&script, "cpu", &[(10, 13, "restart")]);
}

#[test]
fn a_late_waiter_overslept_and_then_polled() {
    let mut script = Script::default();
    // The device ends at 100. Its waiter slept until 130, polled until 134, and then sent on.
    script.ran(1, "npu", (0, 100)).ran(2, "cpu", (140, 150));
    script.waited("host", 1, (10, 134), (90, 5, 120));
    script.sent((1, 2), ("npu", "cpu"), (100, 136));
    let expected = [
        (0, 100, "dependency on npu"),
        (100, 130, "sleep overshoot"),
        (130, 134, "spin"),
        (134, 136, "hand-off"),
        (136, 140, "restart"),
    ];
    expect(&script, "cpu", &expected);
}

#[test]
fn a_wait_alone_makes_its_lane_depend_on_what_it_waits_for() {
    let mut script = Script::default();
    // Slept until 95, polled until 105, though the device had ended at 100.
    script.ran(1, "host", (0, 10)).ran(2, "gpu", (5, 100)).ran(3, "host", (106, 120));
    script.waited("host", 2, (10, 105), (92, 7, 85));
    let expected = [(10, 100, "dependency on gpu"), (100, 105, "spin"), (105, 106, "restart")];
    expect(&script, "host", &expected);
    let (timeline, analysis) = script.analysed();
    let path: Vec<_> =
        analysis.critical_path.spans.iter().map(|s| timeline.spans[*s].id.0.get()).collect();
    assert_eq!(path, [2, 3], "over the device, not over the host's first span");
    for (what_if, makespan) in [("on:gpu*1", 120), ("on:gpu*2", 215), ("sync*0", 115)] {
        assert_eq!(replayed(&script, what_if), makespan, "{what_if}");
    }
    // The host's first span could have ended when the wait did.
    assert_eq!(analysis.critical_path.slack, [95, 0, 0]);
}

#[test]
fn the_start_of_a_lane_without_any_cause_is_its_start() {
    let mut script = Script::default();
    script.ran(1, "a", (0, 50)).ran(2, "b", (20, 30));
    expect(&script, "b", &[(0, 20, "start"), (30, 50, "end")]);
}

#[test]
fn the_critical_path_adds_up_and_leaves_slack_elsewhere() {
    let (timeline, analysis) = two_devices().analysed();
    let path = &analysis.critical_path;
    let found: Vec<_> = path.segments.iter().map(|s| (s.start, s.end, s.kind)).collect();
    let expected = [
        (0, 100, SegmentKind::Running(0)),
        (100, 105, SegmentKind::Waiting(IdleCause::HandOff, 1)),
        (105, 110, SegmentKind::Waiting(IdleCause::Restart, 1)),
        (110, 200, SegmentKind::Running(1)),
    ];
    assert_eq!(found, expected);
    assert_eq!((path.spans.clone(), path.messages.clone()), (vec![0, 1], vec![None, Some(0)]));
    // Span 3 on the cpu could end 30 later.
    assert_eq!(path.slack, [0, 0, 30]);
    let report = Report::new(&timeline, &analysis);
    assert_eq!((report.critical_path[0].ns, report.critical_path[0].share), (100, 0.5));
}

#[test]
fn inner_spans_are_blamed_for_their_own_time() {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 100));
    script.work(Work { parent: Some(1), ..work(2, "cpu", "matmul", (10, 60)) });
    script.work(Work { parent: Some(2), ..work(3, "cpu", "unpack", (20, 30)) });
    let (timeline, analysis) = script.analysed();
    let report = Report::new(&timeline, &analysis);
    let mut blame: Vec<_> =
        report.critical_path.iter().map(|row| (row.op.as_str(), row.ns)).collect();
    blame.sort_unstable();
    assert_eq!(blame, [("matmul", 40), ("op", 50), ("unpack", 10)]);
    let mut own: Vec<_> = report.ops.iter().map(|op| (op.name.as_str(), op.self_ns)).collect();
    own.sort_unstable();
    assert_eq!(own, [("matmul", 40), ("op", 50), ("unpack", 10)]);
}

fn replayed(script: &Script, what_if: &str) -> u64 {
    let (timeline, _) = script.analysed();
    Replay::new(&timeline, &what_if.parse().unwrap()).unwrap().makespan
}

#[test]
fn what_if_moves_exactly_what_it_names() {
    let script = two_devices();
    for (what_if, makespan) in [
        ("sync*1", 200),
        // 100 + 0 of message + 5 of restart + 90.
        ("sync*0", 195),
        ("restart*0", 195),
        ("sync*0,restart*0", 190),
        // The cpu's second span ends at 170.
        ("on:gpu*0.5", 170),
        ("on:cpu*0.5", 150),
        ("on:gpu*0,on:cpu*1", 170),
        ("op:op*2", 390),
        ("activity:compute*2", 390),
        ("slots:cpu*2", 200),
    ] {
        assert_eq!(replayed(&script, what_if), makespan, "{what_if}");
    }
}

#[test]
fn a_second_device_of_a_kind_takes_half_the_queue() {
    let mut script = Script::default();
    script.ran(1, "scheduler", (0, 0));
    for chunk in 0..4 {
        script.ran(chunk + 2, "npu", (chunk * 10, chunk * 10 + 10));
        script.sent((1, chunk + 2), ("scheduler", "npu"), (0, 0));
    }
    assert_eq!(replayed(&script, "slots:npu*1"), 40);
    assert_eq!(replayed(&script, "slots:npu*2"), 20);
    assert_eq!(replayed(&script, "slots:npu*4"), 10);
}

#[test]
fn a_change_of_inner_work_leaves_the_rest() {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 100));
    script.work(Work { parent: Some(1), ..work(2, "cpu", "matmul", (10, 60)) });
    assert_eq!(replayed(&script, "op:matmul*0.5"), 75);
    assert_eq!(replayed(&script, "op:op*0"), 50);
}

#[test]
fn a_what_if_that_makes_no_sense_is_refused_by_name() {
    let (timeline, _) = two_devices().analysed();
    for (text, part) in [
        ("faster", "op:NAME*F"),
        ("sync*fast", "no factor"),
        ("sync*-1", "no factor"),
        ("sync*NaN", "no factor"),
        ("slots:cpu*0", "no factor"),
        ("op:*2", "op:NAME*F"),
    ] {
        let error = text.parse::<WhatIf>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let unknown = "on:tpu*2".parse().unwrap();
    let error = Replay::new(&timeline, &unknown).unwrap_err().to_string();
    assert!(error.contains("'tpu'") && error.contains("cpu, gpu"), "{error}");
}

#[test]
fn planted_prediction_errors_are_found_again() {
    let mut script = Script::default();
    // 100 waits: predicted 1000, actual 990 … 1089, margin 50, slept 950 and 3 too long.
    for wait in 0..100_u64 {
        let start = wait * 2000;
        let done = start + 990 + wait;
        script.ran(wait + 1, "npu", (start, done));
        script.waited("host", wait + 1, (start, done + 2), (1000, 50, 953));
    }
    let (timeline, analysis) = script.analysed();
    let report = &Report::new(&timeline, &analysis).waits[0];
    let error = report.error_ns.unwrap();
    assert_eq!((error.count, error.min, error.max), (100, Some(-10.0), Some(89.0)));
    assert_eq!(error.p50, Some(39.0));
    assert_eq!(report.slept_ns, 95_300);
    assert_eq!(report.late_ns.p50, Some(2.0));
    // The worst needs 1003 − 990 = 13; the one that may be late is it, the next needs 12.
    assert_eq!(report.margin_best_ns, Some(12));
    assert_eq!(report.histogram.iter().map(|(_, count)| count).sum::<usize>(), 100);
    let below_zero: usize =
        report.histogram.iter().filter(|(bound, _)| *bound <= 0).map(|(_, count)| count).sum();
    assert_eq!(below_zero, 10);
    assert_eq!(report.calibration.len(), 10);
    let actual: f64 = report.calibration.iter().map(|(_, actual)| actual / 10.0).sum();
    assert!((actual - 1039.5).abs() < 1e-9, "{actual}");
}

#[test]
fn a_difference_is_the_sum_of_its_parts() {
    let (a, b) = (two_devices(), {
        let mut script = Script::default();
        script.ran(1, "cpu", (0, 80)).ran(2, "gpu", (90, 210)).ran(3, "cpu", (120, 170));
        script.sent((1, 2), ("cpu", "gpu"), (80, 85)).sent((1, 3), ("cpu", "cpu"), (80, 120));
        script
    });
    let (a, b) = (a.analysed(), b.analysed());
    let diff = Diff::new((&a.0, &a.1), (&b.0, &b.1));
    assert_eq!((diff.a_ns, diff.b_ns, diff.delta_ns), (200, 210, 10));
    let steps: Vec<_> =
        diff.waterfall.iter().map(|s| (s.lane.as_str(), s.cause.as_str(), s.delta_ns)).collect();
    assert_eq!(
        steps,
        [
            ("gpu", "running", 30),
            ("cpu", "running", -20),
            ("gpu", "hand-off", 0),
            ("gpu", "restart", 0)
        ]
    );
    let gpu = diff.ops.iter().find(|op| op.lane == "gpu").unwrap();
    assert_eq!((gpu.matched, gpu.only_a, gpu.only_b, gpu.delta_ns), (1, 0, 0, 30));
}

#[test]
fn work_of_an_epoch_that_is_over_is_waste() {
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

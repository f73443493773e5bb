//! Small runs whose overlap, idle causes, critical path, replay, waits and difference are
//! calculated by hand.

use lapwing_traces::analysis::{Diff, IdleCause, Replay, SegmentKind, WhatIf};
use lapwing_traces::event::{Activity, EventKind, StallCause, Tags};
use lapwing_traces::{Analysis, Nanos, Report, Timeline};

use crate::runs::{Script, Slept, Work, work};

/// Gaps of a lane as (start, end, cause with its lane's name).
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

/// cpu runs 0–100, then a message to gpu takes 5, gpu runs 110–200 after a restart of 5, and cpu
/// runs 50 % of that time.
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
fn a_dependency_is_attributed_to_the_nanosecond() {
    let script = two_devices();
    let gpu = [(0, 100, "dependency on cpu"), (100, 105, "hand-off"), (105, 110, "restart")];
    expect(&script, "gpu", &gpu);
    expect(&script, "cpu", &[(100, 120, "hand-off"), (170, 200, "end")]);
}

#[test]
fn a_chain_over_three_lanes_depends_on_the_lane_that_ran() {
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
fn earlier_work_of_the_sender_counts_as_a_dependency_on_its_lane() {
    let mut script = Script::default();
    script.ran(1, "a", (0, 10)).ran(2, "a", (10, 25)).ran(3, "b", (25, 30));
    script.sent((2, 3), ("a", "b"), (25, 25));
    expect(&script, "b", &[(0, 10, "dependency on a"), (10, 25, "dependency on a")]);
}

#[test]
fn a_message_waiting_in_the_mailbox_of_a_busy_lane_is_no_hand_off() {
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
    assert_eq!(on_path, ["b", "b"], "the critical path runs through the lane itself");
    // If the lane had slept, the message would have been in transit.
    script.event(51, "b", EventKind::Woke(Nanos(50)));
    expect(&script, "b", &[(50, 51, "hand-off"), (51, 52, "restart")]);
}

#[test]
fn graph_builds_and_conversions_have_causes_of_their_own() {
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
fn a_stall_is_the_cause_only_while_it_lasts() {
    for (stall, cause) in [
        (StallCause::BackPressure, "back-pressure"),
        (StallCause::SlotPool, "slot pool empty"),
        (StallCause::PolicyBarrier, "policy barrier"),
    ] {
        let mut script = Script::default();
        // The chunk was ready at 20. A permit was freed at 50, when span 2 sent the chunk.
        script.ran(1, "scheduler", (0, 20)).ran(2, "scheduler", (45, 50)).ran(3, "gpu", (52, 60));
        script.sent((0, 1), ("caller", "scheduler"), (0, 0));
        script.sent((0, 2), ("caller", "scheduler"), (45, 45));
        script.stalled((2, 3), ("scheduler", "gpu"), (50, 52), Some((stall, 20)));
        let expected = [(0, 20, "mailbox empty"), (20, 50, cause), (50, 52, "hand-off")];
        expect(&script, "gpu", &expected);
        // Sent after the end of the sender's span, or from outside.
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
fn a_chunk_without_a_graph_waits_for_its_preparation() {
    let mut script = Script::default();
    // The chunk is ready at 10. Its graph is prepared from 12 to 92, then the scheduler sends it.
    let prepare = Activity::Prepare;
    script.ran(1, "scheduler", (0, 10)).ran(3, "scheduler", (94, 96)).ran(4, "npu", (98, 110));
    script.work(Work { activity: prepare, ..work(2, "npu prepare", "graph", (12, 92)) });
    script.sent((1, 2), ("scheduler", "npu prepare"), (10, 12));
    script.sent((2, 3), ("npu prepare", "scheduler"), (92, 94));
    let stall = Some((StallCause::GraphMissing, 10));
    script.stalled((3, 4), ("scheduler", "npu"), (96, 98), stall);
    let expected = [
        (0, 10, "dependency on scheduler"),
        (10, 12, "hand-off"),
        (12, 92, "graph build"),
        (92, 94, "hand-off"),
        (94, 96, "dependency on scheduler"),
        (96, 98, "hand-off"),
    ];
    expect(&script, "npu", &expected);
    assert_eq!(replayed(&script, "activity:prepare*0"), 30);
}

#[test]
fn without_work_the_mailbox_is_empty() {
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
fn an_unexplained_gap_is_unattributed() {
    let mut script = Script::default();
    script.ran(1, "thread", (0, 10)).ran(2, "thread", (40, 50));
    expect(&script, "thread", &[(10, 40, "unattributed")]);
    let (timeline, analysis) = script.analysed();
    assert_eq!(Report::new(&timeline, &analysis).idle_unattributed_ns, 30);
    // A recorded sleep explains part of it.
    script.event(30, "thread", EventKind::Woke(Nanos(15)));
    let expected = [(10, 15, "unattributed"), (15, 30, "mailbox empty"), (30, 40, "unattributed")];
    expect(&script, "thread", &expected);
}

#[test]
fn a_pause_between_spans_of_one_chunk_is_a_restart() {
    let mut script = Script::default();
    let tags = Tags { chunk: Some(7), ..Tags::default() };
    script.work(Work { tags, ..work(1, "cpu", "stage", (0, 10)) });
    script.work(Work { tags, ..work(2, "cpu", "sample", (13, 20)) });
    expect(&script, "cpu", &[(10, 13, "restart")]);
}

#[test]
fn a_late_wait_is_split_into_overshoot_and_spin() {
    let mut script = Script::default();
    // The device ends at 100. Its waiter slept until 130, polled until 134, and then sent the
    // message.
    script.ran(1, "npu", (0, 100)).ran(2, "cpu", (140, 150));
    script.waited("host", 1, (10, 134), Slept { predicted: 90, margin: 5, slept: 120 });
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
fn a_wait_without_a_message_is_a_dependency_on_its_target() {
    let mut script = Script::default();
    // Slept until 95 and polled until 105, although the device had ended at 100.
    script.ran(1, "host", (0, 10)).ran(2, "gpu", (5, 100)).ran(3, "host", (106, 120));
    script.waited("host", 2, (10, 105), Slept { predicted: 92, margin: 7, slept: 85 });
    let expected = [(10, 100, "dependency on gpu"), (100, 105, "spin"), (105, 106, "restart")];
    expect(&script, "host", &expected);
    let (timeline, analysis) = script.analysed();
    let path: Vec<_> =
        analysis.critical_path.spans.iter().map(|s| timeline.spans[*s].id.0.get()).collect();
    assert_eq!(path, [2, 3], "through the device, not through the host's first span");
    for (what_if, makespan) in [("on:gpu*1", 120), ("on:gpu*2", 215), ("sync*0", 115)] {
        assert_eq!(replayed(&script, what_if), makespan, "{what_if}");
    }
    // The host's first span could have ended as late as the wait.
    assert_eq!(analysis.critical_path.slack, [95, 0, 0]);
}

#[test]
fn idle_time_before_the_first_work_without_a_cause_is_the_start() {
    let mut script = Script::default();
    script.ran(1, "a", (0, 50)).ran(2, "b", (20, 30));
    expect(&script, "b", &[(0, 20, "start"), (30, 50, "end")]);
}

#[test]
fn the_critical_path_adds_up_and_other_spans_have_slack() {
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
fn time_on_the_critical_path_belongs_to_the_innermost_span() {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 100));
    script.work(Work { parent: Some(1), ..work(2, "cpu", "matmul", (10, 60)) });
    script.work(Work { parent: Some(2), ..work(3, "cpu", "unpack", (20, 30)) });
    let (timeline, analysis) = script.analysed();
    let report = Report::new(&timeline, &analysis);
    let mut ops: Vec<_> =
        report.critical_path.iter().map(|row| (row.op.as_str(), row.ns)).collect();
    ops.sort_unstable();
    assert_eq!(ops, [("matmul", 40), ("op", 50), ("unpack", 10)]);
    let mut own: Vec<_> = report.ops.iter().map(|op| (op.name.as_str(), op.self_ns)).collect();
    own.sort_unstable();
    assert_eq!(own, [("matmul", 40), ("op", 50), ("unpack", 10)]);
}

fn replayed(script: &Script, what_if: &str) -> u64 {
    let (timeline, _) = script.analysed();
    Replay::new(&timeline, &what_if.parse().unwrap()).unwrap().makespan
}

#[test]
fn a_change_affects_exactly_what_it_names() {
    let script = two_devices();
    for (what_if, makespan) in [
        ("sync*1", 200),
        // 100 + 0 for the message + 5 for the restart + 90.
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
fn a_second_device_takes_half_of_the_queue() {
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
fn a_change_of_an_inner_span_keeps_the_rest() {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 100));
    script.work(Work { parent: Some(1), ..work(2, "cpu", "matmul", (10, 60)) });
    assert_eq!(replayed(&script, "op:matmul*0.5"), 75);
    assert_eq!(replayed(&script, "op:op*0"), 50);
}

#[test]
fn the_name_of_a_fused_op_selects_the_whole_group() {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 100));
    let group = "gate + up";
    script.work(Work { parent: Some(1), ..work(2, "cpu", group, (10, 60)) });
    script.work(Work { parent: Some(1), ..work(3, "cpu", "up", (60, 80)) });
    let (timeline, _) = script.analysed();
    let rows: [(&str, u64, &[&str]); 5] = [
        ("op:gate*0", 50, &[group]),
        ("op:up*0", 30, &[group]),
        ("op:gate + up*0.5", 75, &[]),
        ("op:op*0", 70, &[]),
        ("on:cpu*0", 0, &[]),
    ];
    for (change, makespan, groups) in rows {
        let what_if: WhatIf = change.parse().unwrap();
        assert_eq!(Replay::new(&timeline, &what_if).unwrap().makespan, makespan, "{change}");
        let found: Vec<&str> = what_if.changes[0].groups(&timeline).into_iter().collect();
        assert_eq!(found, groups, "{change}");
    }
    let unknown = "op:gat*0".parse().unwrap();
    let error = Replay::new(&timeline, &unknown).unwrap_err().to_string();
    assert!(error.contains("it has gate, op, up"), "{error}");
}

#[test]
fn an_invalid_change_is_refused_with_the_reason() {
    let (timeline, _) = two_devices().analysed();
    for (text, part) in [
        ("faster", "op:NAME*F"),
        ("sync*fast", "not a valid factor"),
        ("sync*-1", "not a valid factor"),
        ("sync*NaN", "not a valid factor"),
        ("slots:cpu*0", "not a valid factor"),
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
fn known_prediction_errors_are_reported() {
    let mut script = Script::default();
    // 100 waits: predicted 1000, actual 990 … 1089, margin 50, slept 950 plus an overshoot of 3.
    for wait in 0..100_u64 {
        let start = wait * 2000;
        let done = start + 990 + wait;
        script.ran(wait + 1, "npu", (start, done));
        script.waited(
            "host",
            wait + 1,
            (start, done + 2),
            Slept { predicted: 1000, margin: 50, slept: 953 },
        );
    }
    let (timeline, analysis) = script.analysed();
    let report = &Report::new(&timeline, &analysis).waits[0];
    let error = report.error_ns.unwrap();
    assert_eq!((error.count, error.min, error.max), (100, Some(-10.0), Some(89.0)));
    assert_eq!(error.p50, Some(39.0));
    assert_eq!(report.slept_ns, 95_300);
    assert_eq!(report.late_ns.p50, Some(2.0));
    // The worst wait needs 1003 − 990 = 13. It is the one that may be late; the next needs 12.
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
fn a_difference_is_the_sum_of_its_steps() {
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

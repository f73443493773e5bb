//! Small runs whose critical path, replay, waits and difference are calculated by hand.

use lapwing_traces::Report;
use lapwing_traces::analysis::{Diff, IdleCause, Replay, SegmentKind, WhatIf};

use crate::known_answers::{replayed, two_devices};
use crate::runs::{Script, Slept, Work, work};

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

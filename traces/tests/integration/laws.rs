//! Properties that hold for every run.

use lapwing_traces::analysis::critical_path::Segment;
use lapwing_traces::analysis::{Diff, IdleCause, Replay, SegmentKind, WhatIf};
use lapwing_traces::{Analysis, Report, Timeline};
use proptest::prelude::*;

use crate::runs::{Piece, programs, schedule};

fn analysed(program: &[Piece]) -> (Timeline, Analysis) {
    schedule(program, false).analysed()
}

/// Removes lags. On a lane without continuous work or sleep, it is unknown whether a message noted
/// while the lane was free arrived then or had been waiting.
fn unambiguous(mut program: Vec<Piece>) -> Vec<Piece> {
    program.iter_mut().for_each(|piece| piece.lag = 0);
    program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_idle_nanosecond_has_exactly_one_cause(program in programs(), thread in any::<bool>()) {
        let (timeline, analysis) = schedule(&program, thread).analysed();
        let report = Report::new(&timeline, &analysis);
        let (start, end) = timeline.extent();
        for (index, lane) in report.lanes.iter().enumerate() {
            let gaps: Vec<_> = analysis.gaps.iter().filter(|gap| gap.lane == index).collect();
            let idle: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
            prop_assert_eq!(idle + lane.busy_ns, report.makespan_ns);
            // Gaps do not overlap each other or a span, and stay within the run.
            for pair in gaps.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            for gap in gaps {
                prop_assert!(gap.start < gap.end && gap.start >= start.0 && gap.end <= end.0);
                for span in timeline.outer().map(|s| &timeline.spans[s]).filter(|s| s.lane == index) {
                    let apart = span.end.0 <= gap.start || span.start.0 >= gap.end;
                    prop_assert!(apart || span.duration() == 0, "{:?} over {:?}", gap, span);
                }
            }
        }
    }

    #[test]
    fn a_dependency_lasts_while_the_other_lane_runs(program in programs(), thread in any::<bool>()) {
        let (timeline, analysis) = schedule(&program, thread).analysed();
        for gap in &analysis.gaps {
            if let IdleCause::Dependency(lane) = gap.cause {
                let blocker = &timeline.spans[gap.blocker.expect("who ran")];
                prop_assert_eq!(blocker.lane, lane);
                prop_assert!(blocker.start.0 <= gap.start && gap.end <= blocker.end.0);
                prop_assert!(lane != gap.lane);
            }
        }
    }

    #[test]
    fn the_critical_path_is_the_longest_path_and_as_long_as_the_run(program in programs(), thread in any::<bool>()) {
        let (timeline, analysis) = schedule(&program, thread).analysed();
        let path = &analysis.critical_path;
        let (start, end) = timeline.extent();
        let mut time = start.0;
        for segment in &path.segments {
            prop_assert_eq!(segment.start, time);
            time = segment.end;
            if let SegmentKind::Running(span) = segment.kind {
                let span = &timeline.spans[span];
                prop_assert!(span.start.0 <= segment.start && segment.end <= span.end.0);
            }
        }
        prop_assert_eq!(time, end.0);
        prop_assert_eq!(longest_path(&program), timeline.makespan());
        for span in &path.spans {
            prop_assert_eq!(path.slack[*span], 0);
        }
    }

    #[test]
    fn a_span_delayed_by_its_slack_keeps_the_makespan_and_by_more_does_not(
        program in programs(), at in any::<prop::sample::Index>()
    ) {
        let program = unambiguous(program);
        let (timeline, analysis) = analysed(&program);
        let piece = at.index(program.len());
        let span = timeline.spans.iter().position(|s| s.id.0.get() == piece as u64 + 1).unwrap();
        let slack = analysis.critical_path.slack[span];
        // Its messages leave at a fixed time before its end, and so are delayed by the same amount.
        let longer = |by: u64| {
            let mut program = program.clone();
            let duration = program[piece].duration;
            for later in &mut program {
                for need in later.needs.iter_mut().filter(|need| need.0 == piece) {
                    need.2 = need.2.min(duration);
                }
            }
            program[piece].duration += by;
            schedule(&program, false).analysed().0.extent().1
        };
        prop_assert_eq!(longer(slack), timeline.extent().1);
        prop_assert!(longer(slack + 1) > timeline.extent().1);
    }

    #[test]
    fn a_replay_without_changes_is_the_recorded_run(program in programs(), thread in any::<bool>()) {
        let (timeline, _) = schedule(&program, thread).analysed();
        let replay = Replay::new(&timeline, &WhatIf::default()).unwrap();
        prop_assert_eq!(replay.makespan, timeline.makespan());
        for span in timeline.outer() {
            let (start, end) = (timeline.spans[span].start.0, timeline.spans[span].end.0);
            prop_assert_eq!(replay.times[span], (start, end));
        }
    }

    #[test]
    fn a_replay_agrees_with_a_run_of_the_changed_program(program in programs(), times in 0..4_u64) {
        // Messages leave at the end of their sender, so both have the same meaning.
        let mut program = unambiguous(program);
        program.iter_mut().for_each(|piece| piece.needs.iter_mut().for_each(|need| need.2 = 0));
        let recorded = schedule(&program, false).analysed().0;
        let mut changed = program.clone();
        let slow = changed.iter_mut().filter(|piece| piece.lane == 1);
        slow.for_each(|piece| piece.duration *= times);
        if program.iter().all(|piece| piece.lane != 1) {
            return Ok(());
        }
        let what_if: WhatIf = format!("on:lane 1*{times}").parse().unwrap();
        let replay = Replay::new(&recorded, &what_if).unwrap();
        prop_assert_eq!(replay.makespan, schedule(&changed, false).analysed().0.makespan());
    }

    #[test]
    fn without_what_runs_alone_a_replay_is_shorter_by_at_least_that_time(
        program in programs(), lane in 0..4_usize
    ) {
        let program = unambiguous(program);
        let (timeline, analysis) = analysed(&program);
        let name = format!("lane {lane}");
        let Some(lane) = timeline.lanes.iter().position(|known| known.name == name) else {
            return Ok(());
        };
        let replay = Replay::new(&timeline, &format!("on:{name}*0").parse().unwrap()).unwrap();
        let alone = alone(&timeline, lane);
        let time: u64 = alone.iter().map(|(from, to)| to - from).sum();
        let rounding = program.len() as u64 * 3;
        prop_assert!(replay.makespan + time <= timeline.makespan() + rounding);
        // What runs alone is on the critical path.
        for (from, to) in alone {
            let on_path = |segment: &&Segment| segment.start < to && from < segment.end;
            for segment in analysis.critical_path.segments.iter().filter(on_path) {
                let runs = matches!(segment.kind, SegmentKind::Running(_));
                prop_assert!(runs && segment.lane == lane, "{:?} in {}..{}", segment, from, to);
            }
        }
    }

    #[test]
    fn faster_work_never_makes_a_replay_slower(program in programs(), factor in 0.0..1.0_f64) {
        let (timeline, _) = analysed(&program);
        for what_if in [format!("sync*{factor}"), format!("activity:compute*{factor}")] {
            let replay = Replay::new(&timeline, &what_if.parse().unwrap()).unwrap();
            // By rounding, each message may leave a nanosecond later.
            let rounding = program.len() as u64 * 3;
            prop_assert!(replay.makespan <= timeline.makespan() + rounding);
        }
    }

    #[test]
    fn a_run_does_not_differ_from_itself(program in programs()) {
        let (timeline, analysis) = analysed(&program);
        let diff = Diff::new((&timeline, &analysis), (&timeline, &analysis));
        prop_assert_eq!(diff.delta_ns, 0);
        prop_assert!(diff.waterfall.iter().all(|step| step.delta_ns == 0));
        prop_assert!(diff.ops.iter().all(|op| (op.delta_ns, op.only_a, op.only_b) == (0, 0, 0)));
    }

    #[test]
    fn swapping_the_runs_changes_the_sign_of_the_difference(a in programs(), b in programs()) {
        let (a, b) = (analysed(&a), analysed(&b));
        let there = Diff::new((&a.0, &a.1), (&b.0, &b.1));
        let back = Diff::new((&b.0, &b.1), (&a.0, &a.1));
        prop_assert_eq!(there.delta_ns, -back.delta_ns);
        prop_assert_eq!(there.waterfall.iter().map(|s| s.delta_ns).sum::<i64>(), there.delta_ns);
        for step in &there.waterfall {
            let same = |s: &&lapwing_traces::analysis::diff::Step| {
                (&s.lane, &s.cause, &s.op) == (&step.lane, &step.cause, &step.op)
            };
            prop_assert_eq!(back.waterfall.iter().find(same).unwrap().delta_ns, -step.delta_ns);
        }
    }

    #[test]
    fn overlap_is_between_zero_and_achievable(program in programs()) {
        let (_, analysis) = analysed(&program);
        let overlap = &analysis.overlap;
        if let (Some(ratio), Some(achievable)) = (overlap.ratio(), overlap.achievable()) {
            prop_assert!(0.0 <= ratio && ratio <= achievable && achievable < 1.0);
        }
    }
}

/// The times at which this lane runs, while no other does and nothing is on its way between lanes.
fn alone(timeline: &Timeline, lane: usize) -> Vec<(u64, u64)> {
    let mut edges = Vec::new();
    let mut push = |from: u64, to: u64, is_other: bool| {
        edges.extend([(from, is_other, 1), (to, is_other, -1)]);
    };
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        push(span.start.0, span.end.0, span.lane != lane);
    }
    for message in &timeline.messages {
        push(message.sent.0, message.received.unwrap().0, true);
    }
    for wait in &timeline.waits {
        push(timeline.spans[wait.target.unwrap()].end.0, wait.end.0, true);
    }
    edges.sort_unstable();
    let (mut running, mut others, mut last) = (0, 0, 0);
    let mut alone = Vec::new();
    for (at, is_other, change) in edges {
        if running > 0 && others == 0 && last < at {
            alone.push((last, at));
        }
        *(if is_other { &mut others } else { &mut running }) += change;
        last = at;
    }
    alone
}

/// The longest path through the program's own graph, computed without the timeline.
fn longest_path(program: &[Piece]) -> u64 {
    let mut ends: Vec<u64> = Vec::new();
    let mut starts: Vec<u64> = Vec::new();
    for (at, piece) in program.iter().enumerate() {
        let before = (0..at).rev().find(|b| program[*b].lane == piece.lane).map_or(0, |b| ends[b]);
        let needs = piece
            .needs
            .iter()
            .map(|(from, way, early)| ends[*from].saturating_sub(*early).max(starts[*from]) + way);
        let start = needs.chain([before]).max().unwrap_or(0) + piece.lag;
        starts.push(start);
        ends.push(start + piece.duration);
    }
    ends.iter().max().unwrap_or(&0) - starts.iter().min().unwrap_or(&0)
}

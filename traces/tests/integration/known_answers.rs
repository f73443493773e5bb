//! Small runs whose overlap and idle causes are calculated by hand.

use lapwing_traces::analysis::Replay;
use lapwing_traces::event::{Activity, EventKind, StallCause, Tags};
use lapwing_traces::{Analysis, Nanos, Report, Timeline};

use crate::runs::{Script, Slept, Work, work};

/// Gaps of a lane as (start, end, cause with its lane's name).
fn gaps(timeline: &Timeline, analysis: &Analysis, lane: &str) -> Vec<(u64, u64, String)> {
    let of_lane = analysis.gaps.iter().filter(|gap| timeline.lanes[gap.lane].name == lane);
    of_lane.map(|gap| (gap.start, gap.end, gap.cause.title(timeline))).collect()
}

pub(crate) fn expect(script: &Script, lane: &str, expected: &[(u64, u64, &str)]) {
    let (timeline, analysis) = script.analysed();
    let found = gaps(&timeline, &analysis, lane);
    let expected: Vec<_> = expected.iter().map(|(a, b, c)| (*a, *b, (*c).to_owned())).collect();
    assert_eq!(found, expected, "idle time of {lane}");
}

/// cpu runs 0–100, then a message to gpu takes 5, gpu runs 110–200 after a restart of 5, and cpu
/// runs 50 % of that time.
pub(crate) fn two_devices() -> Script {
    let mut script = Script::default();
    script.ran(1, "cpu", (0, 100)).ran(2, "gpu", (110, 200)).ran(3, "cpu", (120, 170));
    script.sent((1, 2), ("cpu", "gpu"), (100, 105)).sent((1, 3), ("cpu", "cpu"), (100, 120));
    script
}

pub(crate) fn replayed(script: &Script, what_if: &str) -> u64 {
    let (timeline, _) = script.analysed();
    Replay::new(&timeline, &what_if.parse().unwrap()).unwrap().makespan
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

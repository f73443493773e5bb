//! Work that is held up for a graph: its preparation is the cause of the idle time, and a replay depends
//! on it.

use std::time::Duration;

use lapwing_plan::array::Preparation;
use lapwing_plan::strategy::{StrategyOptions, by_name, registry};
use lapwing_traces::analysis::{IdleCause, Replay};
use lapwing_traces::event::{Activity, LaneKind, StallCause};
use lapwing_traces::{Analysis, Scope, Timeline};

use crate::prediction::Engine;

/// Runs of every strategy in engines without graphs, on prompts of one chunk and of several.
fn cold_runs(scope: Scope) -> Vec<(String, usize, Timeline)> {
    let options = StrategyOptions::default();
    let preparation = Preparation { fixed: Duration::from_micros(300), per_row_weight: 1e-10 };
    let mut runs = Vec::new();
    for names in ["cpu npu", "cpu gpu npu"] {
        let engine = Engine::new(names, preparation);
        for known in registry().iter().filter(|known| known.name() != "auto") {
            let strategy = || by_name(known.name(), &options).expect("is known");
            let shape = crate::plan_support::prefill(32);
            if strategy().route(&engine.input(), &shape).is_err() {
                continue;
            }
            for rows in [31, 64, 135, 300] {
                let (_, timeline) = engine.recorded(strategy(), rows, scope);
                runs.push((format!("{} on {names}, {rows} rows", known.name()), rows, timeline));
            }
        }
    }
    runs
}

/// Time during which a preparation runs and nothing else does: no other span, and no message is on its
/// way.
fn alone(timeline: &Timeline) -> u64 {
    let mut edges = Vec::new();
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        let is_other = span.activity != Activity::Prepare;
        edges.push((span.start.0, is_other, 1));
        edges.push((span.end.0, is_other, -1));
    }
    for message in &timeline.messages {
        let Some(received) = message.received else { continue };
        edges.push((message.sent.0, true, 1));
        edges.push((received.0, true, -1));
    }
    edges.sort_unstable();
    let (mut alone, mut preparing, mut others, mut last) = (0, 0, 0, 0);
    for (at, is_other, change) in edges {
        if preparing > 0 && others == 0 {
            alone += at - last;
        }
        *(if is_other { &mut others } else { &mut preparing }) += change;
        last = at;
    }
    alone
}

#[test]
fn devices_that_wait_for_a_graph_say_so() {
    let mut held = 0;
    for scope in [Scope::All, Scope::Marked] {
        for (what, rows, timeline) in cold_runs(scope) {
            let analysis = Analysis::new(&timeline);
            let is_device = |lane: usize| timeline.lanes[lane].kind == LaneKind::Device;
            let gaps = || analysis.gaps.iter().filter(|gap| is_device(gap.lane));
            let prepares = || timeline.spans.iter().filter(|s| s.activity == Activity::Prepare);
            let stalls: Vec<_> = timeline.messages.iter().filter_map(|m| m.stall).collect();
            if rows <= 64 {
                // One chunk, for which there are permits.
                let pressed = gaps().find(|gap| gap.cause == IdleCause::BackPressure);
                assert_eq!(pressed, None, "{what}");
                assert!(stalls.iter().all(|(cause, _)| *cause == StallCause::GraphMissing));
            }
            // While a device waits for its first work and nothing else runs, the cause is the graph.
            let idle: u64 = gaps()
                .filter(|gap| gap.cause == IdleCause::Prepare)
                .map(|gap| gap.end - gap.start)
                .sum();
            let waits = stalls.iter().any(|(cause, _)| *cause == StallCause::GraphMissing);
            assert!(!waits || prepares().count() > 0, "{what}: no preparation is recorded");
            assert!(idle >= alone(&timeline), "{what}: {idle} of {}", alone(&timeline));
            held += usize::from(waits);
        }
    }
    assert!(held >= 12, "{held} runs wait for graphs");
}

#[test]
fn without_preparations_a_replay_is_shorter_by_at_least_the_time_they_run_alone() {
    let mut shorter = 0;
    for (what, _, timeline) in cold_runs(Scope::All) {
        if timeline.spans.iter().all(|span| span.activity != Activity::Prepare) {
            continue;
        }
        let change = "activity:prepare*0".parse().expect("a change");
        let replay = Replay::new(&timeline, &change).expect("it applies").makespan;
        let (recorded, alone) = (timeline.makespan(), alone(&timeline));
        // Rounding adds a nanosecond to each message.
        let rounding = timeline.messages.len() as u64;
        assert!(
            replay + alone <= recorded + rounding,
            "{what}: {replay} ns instead of {recorded}, of which {alone} prepare"
        );
        shorter += usize::from(alone > recorded / 10);
    }
    assert!(shorter >= 6, "{shorter} runs spend much time on graphs");
}

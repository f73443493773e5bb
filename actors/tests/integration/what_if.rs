//! A what-if of a live run on several devices keeps work where it was recorded, although what it waited for is gone,
//! and saves what the critical path says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_kernels::device::{DeviceKind, GraphKey};
use lapwing_plan::time::{Job, TimeModel};
use lapwing_traces::analysis::{Analysis, Replay, SegmentKind};
use lapwing_traces::{Scope, Timeline};

use crate::random_plans::RandomPlans;
use crate::support::{Setup, paced, prompt, recorder, request};

/// Times of an emulated processor, long enough to be seen beside the times of this machine.
struct Times;

impl TimeModel for Times {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        Duration::from_micros(20)
    }

    fn node_time(&self, _job: &Job<'_>, _node: usize) -> Duration {
        Duration::from_micros(30)
    }

    fn prepare_time(&self, _key: &GraphKey) -> Duration {
        Duration::from_millis(2)
    }
}

/// A recording of a live run over three devices, with the queue depths of those that are late.
fn recorded(seed: u64, late: Vec<usize>) -> Timeline {
    let mut setup = Setup {
        devices: 3,
        kinds: vec![DeviceKind::Cpu, DeviceKind::Npu, DeviceKind::Gpu],
        strategy: Some(Arc::new(RandomPlans(seed))),
        layers: 2,
        time: Some(Arc::new(Times)),
        late,
        ..Setup::default()
    };
    setup.config.permits = 4;
    let recorder = recorder();
    recorder.set_scope(Scope::All);
    let live = paced(&setup, &recorder);
    // One after the other: a request that arrives while others run keeps its time.
    for round in 0..3 {
        let request = request(&prompt(10 * round, 40), 5);
        let mut events = live.submit(live.admit().expect("room"), request).expect("alive");
        while let StreamEvent::Token(_) = events.next_blocking() {}
    }
    live.shutdown(Shutdown::Drain);
    Timeline::new(&recorder.recording())
}

fn makespan(timeline: &Timeline, what_if: &str) -> u64 {
    Replay::new(timeline, &what_if.parse().expect(what_if)).expect(what_if).makespan
}

/// Checks that a replay without changes equals the recording.
fn check_unchanged(timeline: &Timeline, name: &str) {
    let replay = Replay::new(timeline, &Default::default()).expect("no change");
    for span in timeline.outer() {
        let recorded = (timeline.spans[span].start.0, timeline.spans[span].end.0);
        assert_eq!(replay.times[span], recorded, "{name}");
    }
}

/// Checks that nothing remains without the time of any work, message and restart: each span has what it waited for.
/// The share that a single change takes away is not judged, since preempted threads of a busy machine restart late.
fn check_nothing(timeline: &Timeline, name: &str) {
    let activities: BTreeSet<&str> =
        timeline.spans.iter().map(|span| span.activity.name()).collect();
    let changes = activities.iter().map(|activity| format!("activity:{activity}*0"));
    let nothing: Vec<String> = changes.chain(["sync*0", "restart*0"].map(str::to_owned)).collect();
    let (all, left) = (timeline.makespan(), makespan(timeline, &nothing.join(",")));
    assert!(left <= all / 100, "{name}: {left} of {all} ns remain of nothing");
}

#[test]
fn work_stays_where_it_was_without_what_it_waited_for() {
    for seed in 0..6 {
        // Emulated devices only, then devices with queues among them.
        for late in [Vec::new(), vec![0, 0, 3], vec![0, 2, 3]] {
            let name = format!("devices with queues of {late:?}, seed {seed}");
            let timeline = recorded(seed, late);
            check_unchanged(&timeline, &name);
            check_nothing(&timeline, &name);
        }
    }
}

/// A recording of one request at a time whose work is a chain over a CPU and an NPU: no work overlaps other work.
fn recorded_chain(late: Vec<usize>) -> Timeline {
    let mut setup = Setup {
        devices: 2,
        kinds: vec![DeviceKind::Cpu, DeviceKind::Npu],
        time: Some(Arc::new(Times)),
        late,
        ..Setup::default()
    };
    setup.config.permits = 1;
    let recorder = recorder();
    recorder.set_scope(Scope::All);
    let live = paced(&setup, &recorder);
    let mut events =
        live.submit(live.admit().expect("room"), request(&prompt(0, 16), 8)).expect("alive");
    while let StreamEvent::Token(_) = events.next_blocking() {}
    live.shutdown(Shutdown::Drain);
    Timeline::new(&recorder.recording())
}

/// What the critical path gives each activity and each lane, in ns, by the change that takes it away.
fn on_the_path(timeline: &Timeline) -> BTreeMap<String, u64> {
    let mut shares = BTreeMap::new();
    for segment in Analysis::new(timeline).critical_path.segments {
        let SegmentKind::Running(mut span) = segment.kind else { continue };
        while let Some(parent) = timeline.spans[span].parent {
            span = parent;
        }
        let activity = timeline.spans[span].activity.name();
        let lane = &timeline.lanes[segment.lane].name;
        for change in [format!("activity:{activity}*0"), format!("on:{lane}*0")] {
            *shares.entry(change).or_default() += segment.end - segment.start;
        }
    }
    shares
}

/// What is on the critical path and has nothing beside it is saved without it, to four fifths at least. In some
/// recordings a preempted thread takes the path over, so each change is judged by the best of several.
#[test]
fn what_the_critical_path_says_is_saved_without_it() {
    for late in [Vec::new(), vec![0, 2]] {
        let mut best: BTreeMap<String, f64> = BTreeMap::new();
        for _ in 0..5 {
            let timeline = recorded_chain(late.clone());
            for (change, share) in on_the_path(&timeline) {
                let saved = timeline.makespan() - makespan(&timeline, &change);
                let best = best.entry(change).or_default();
                *best = best.max(saved as f64 / share as f64);
            }
        }
        for change in ["activity:prepare*0", "activity:compute*0"] {
            assert!(best.contains_key(change), "{change} is not on the path of {best:?}");
        }
        for (change, saved) in best {
            assert!(saved >= 0.8, "{change} saves {saved:.2} of its share, queues of {late:?}");
        }
    }
}

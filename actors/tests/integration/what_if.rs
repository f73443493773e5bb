//! A what-if of a live run on several devices keeps work where it was recorded, although what it waited for is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_kernels::device::{DeviceKind, GraphKey};
use lapwing_plan::time::{Job, TimeModel};
use lapwing_traces::analysis::{Replay, SegmentKind};
use lapwing_traces::{Analysis, Scope, Timeline};

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

/// What the critical path gives to each activity and each lane, as changes that take it away.
fn shares(timeline: &Timeline, analysis: &Analysis) -> BTreeMap<String, u64> {
    let mut shares = BTreeMap::new();
    for segment in &analysis.critical_path.segments {
        if let SegmentKind::Running(span) = segment.kind {
            let activity = timeline.spans[span].activity.name();
            for what_if in [
                format!("activity:{activity}*0"),
                format!("on:{}*0", timeline.lanes[segment.lane].name),
            ] {
                *shares.entry(what_if).or_default() += segment.end - segment.start;
            }
        }
    }
    shares
}

/// Checks that a what-if takes away what the critical path says, unless the work of another path takes its place.
fn check(timeline: &Timeline, name: &str) {
    let analysis = Analysis::new(timeline);
    let replay = Replay::new(timeline, &Default::default()).expect("no change");
    for span in timeline.outer() {
        let recorded = (timeline.spans[span].start.0, timeline.spans[span].end.0);
        assert_eq!(replay.times[span], recorded, "{name}: a replay without changes");
    }
    let all = timeline.makespan();
    let shares = shares(timeline, &analysis);
    for (what_if, share) in &shares {
        let left = makespan(timeline, what_if);
        let work = makespan(timeline, &format!("{what_if},restart*0"));
        let is_shorter = all - left >= share * 4 / 5;
        // A path that takes its place consists of work and messages, not of waiting that nothing explains.
        assert!(
            is_shorter || work >= left * 4 / 5,
            "{name}: {what_if} leaves {left} of {all} ns, of which {share} were its own, and {work} are work"
        );
    }
}

/// Checks that nothing remains without the time of any work.
fn check_nothing(timeline: &Timeline, name: &str) {
    let shares = shares(timeline, &Analysis::new(timeline));
    let all = timeline.makespan();
    let activities = shares.keys().filter(|change| change.starts_with("activity"));
    let nothing: Vec<&str> =
        activities.map(String::as_str).chain(["sync*0", "restart*0"]).collect();
    let left = makespan(timeline, &nothing.join(","));
    assert!(left <= all / 100, "{name}: {left} of {all} ns remain of nothing");
}

#[test]
fn work_of_late_devices_stays_where_it_was_without_what_it_waited_for() {
    for seed in 0..6 {
        for late in [vec![0, 0, 3], vec![0, 2, 3]] {
            let name = format!("devices with queues of {late:?}, seed {seed}");
            let timeline = recorded(seed, late);
            check(&timeline, &name);
            check_nothing(&timeline, &name);
        }
    }
}

#[test]
fn work_of_emulated_devices_stays_where_it_was_without_what_it_waited_for() {
    for seed in 0..4 {
        check(&recorded(seed, Vec::new()), &format!("emulated, seed {seed}"));
    }
}

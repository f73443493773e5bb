//! A what-if of a live run on several devices keeps work where it was recorded, although what it waited for is gone,
//! and saves what the critical path says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::message::{Shutdown, StreamEvent};
use lapwing_kernels::device::{DeviceKind, GraphKey, Prepare};
use lapwing_kernels::part::Part;
use lapwing_plan::blocks::blocks;
use lapwing_plan::strategy::{ChunkShape, PlanInput, PromptRows, Strategy};
use lapwing_plan::time::{Job, TimeModel};
use lapwing_plan::{DeviceId, PlanError, Route, Stage, StagePart, StageWork};
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

/// Puts each block on the next device that can run it, whole. Graphs are prepared ahead of the work, or where they run.
struct InTurns(Prepare);

impl Strategy for InTurns {
    fn name(&self) -> &str {
        "in-turns"
    }

    fn chunk_rows(&self, _: &PlanInput<'_>, prompt: PromptRows) -> usize {
        prompt.remaining
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let mut turns = (0..input.devices.len()).cycle();
        let stages = blocks(input.graph).into_iter().map(|block| {
            let ops = &input.graph.nodes()[block.nodes.clone()];
            let can_run = |device: &usize| {
                let info = &input.devices[*device];
                ops.iter().all(|node| info.runs(&node.op))
            };
            let device = turns.find(can_run).expect("the CPU runs all");
            let graphs = match input.devices[device].kind {
                DeviceKind::Npu => vec![shape.rows.next_multiple_of(32)],
                _ => Vec::new(),
            };
            let part = StagePart { device: DeviceId(device), part: Part { graphs, ..Part::WHOLE } };
            Stage { work: StageWork::Nodes, nodes: block.nodes, parts: vec![part], prepare: self.0 }
        });
        Route::new(stages.collect(), "in turns".to_owned(), None, input.route_for(shape))
    }
}

/// A recording of a request whose work is a chain over a CPU and an NPU: no work overlaps other work, except that graphs are
/// prepared ahead of it.
fn recorded_chain(prepare: Prepare, late: Vec<usize>) -> Timeline {
    let mut setup = Setup {
        devices: 2,
        kinds: vec![DeviceKind::Cpu, DeviceKind::Npu],
        strategy: Some(Arc::new(InTurns(prepare))),
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
        let SegmentKind::Running(span) = segment.kind else { continue };
        let activity = timeline.spans[span].activity.name();
        let lane = &timeline.lanes[segment.lane].name;
        for change in [format!("activity:{activity}*0"), format!("on:{lane}*0")] {
            *shares.entry(change).or_default() += segment.end - segment.start;
        }
    }
    shares
}

/// The share of what the critical path gives a change that it saves, in the best of several recordings: in some, a preempted
/// thread takes the path over.
fn best_savings(prepare: Prepare, late: &[usize]) -> BTreeMap<String, f64> {
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..5 {
        let timeline = recorded_chain(prepare, late.to_vec());
        // What takes little time is easily hidden behind what a busy machine adds.
        let shares = on_the_path(&timeline).into_iter();
        for (change, share) in shares.filter(|(_, share)| *share >= timeline.makespan() / 5) {
            let saved = timeline.makespan() - makespan(&timeline, &change);
            let best = best.entry(change).or_default();
            *best = best.max(saved as f64 / share as f64);
        }
    }
    best
}

#[test]
fn what_the_critical_path_says_is_saved_without_it() {
    for late in [&[][..], &[0, 2]] {
        let savings = best_savings(Prepare::OnTheSpot, late);
        assert!(savings.contains_key("on:oracle-1*0"), "the NPU is not on the path of {savings:?}");
        for (change, saved) in savings {
            assert!(saved >= 0.8, "{change} saves {saved:.2} of its share, queues of {late:?}");
        }
    }
    // Work goes on beside graphs that are prepared ahead of it, but an emulated NPU takes most of the time for them.
    let savings = best_savings(Prepare::Ahead, &[]);
    let saved = savings.get("activity:prepare*0");
    assert!(saved.is_some_and(|saved| *saved >= 0.8), "{savings:?}");
}

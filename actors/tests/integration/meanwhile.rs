//! Requests do not wait for graphs that another device can spare them: the CPU computes until the graphs are ready, and they
//! are made while there is no request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lapwing_actors::scheduler::{BUSY_MAX, BUSY_PAUSE, REST};
use lapwing_kernels::device::{DeviceKind, GraphKey};
use lapwing_plan::strategy::{ChunkGraph, CpuOnly, Meanwhile, OrderSwap};
use lapwing_plan::time::{FixedRate, Job, TimeModel};
use lapwing_traces::event::Activity;
use lapwing_traces::{Nanos, Scope, Timeline};

use crate::support::{Setup, Stream, World, foretell, generate};

/// Time to make a graph.
const MAKE: Duration = Duration::from_millis(400);

/// Rates of a device, and the time of its graphs.
struct Times(FixedRate);

impl TimeModel for Times {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.0.overhead(job)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        self.0.node_time(job, node)
    }

    fn prepare_time(&self, _key: &GraphKey) -> Duration {
        MAKE
    }
}

fn rate() -> FixedRate {
    FixedRate { per_stage: Duration::from_micros(100), per_row: Duration::from_micros(10) }
}

/// A CPU and an NPU.
fn setup() -> Setup {
    let strategy = ChunkGraph { chunk: 16, order_swap: OrderSwap::Off };
    Setup {
        devices: 2,
        kinds: vec![DeviceKind::Cpu, DeviceKind::Npu],
        strategy: Some(Arc::new(strategy)),
        meanwhile: Some(Arc::new(Meanwhile::new("chunk-graph", false, 2))),
        time: Some(Arc::new(Times(rate()))),
        ..Setup::default()
    }
}

const CPU: usize = 0;
const NPU: usize = 1;

fn prompt(length: u32) -> Vec<u32> {
    (0..length).map(|at| 3 + at * 7 % 50).collect()
}

/// Submits a prompt.
fn submit(world: &mut World, at: Duration, length: u32) -> Stream {
    let ids = prompt(length);
    world.submit(Nanos(0) + at, &ids, generate(&ids, 5))
}

/// Runs until a stream has ended; returns the time.
fn ended(world: &mut World, stream: &mut Stream, length: u32) -> Nanos {
    while stream.end.is_none() {
        assert!(world.sim.step(), "the engine stands still");
        stream.drain();
    }
    assert_eq!(stream.tokens, foretell(&prompt(length), 5).0);
    world.sim.now()
}

fn stages_on(world: &World, device: usize) -> usize {
    world.stages_run[device].load(Ordering::Relaxed)
}

/// Start and end of each graph that was made.
fn made(world: &World) -> Vec<(Nanos, Nanos)> {
    let timeline = Timeline::new(&world.sim.recorder().recording());
    let spans = timeline.outer().map(|span| &timeline.spans[span]);
    let made = spans.filter(|span| span.activity == Activity::Prepare);
    let mut made: Vec<_> = made.map(|span| (span.start, span.end)).collect();
    made.sort_unstable();
    made
}

fn recorded(setup: &Setup) -> World {
    let world = World::new(setup);
    world.sim.recorder().set_scope(Scope::All);
    world
}

/// Time of a prompt on the CPU alone.
fn alone(length: u32) -> Duration {
    let setup = Setup { strategy: Some(Arc::new(CpuOnly)), meanwhile: None, ..setup() };
    let mut world = World::new(&setup);
    let mut stream = submit(&mut world, Duration::ZERO, length);
    ended(&mut world, &mut stream, length).since(Nanos(0))
}

#[test]
fn a_first_prompt_takes_the_time_of_the_cpu_alone_and_a_later_one_uses_the_graphs() {
    for length in [10, 40, 100] {
        let mut world = recorded(&setup());
        let mut first = submit(&mut world, Duration::ZERO, length);
        let end = ended(&mut world, &mut first, length);
        assert_eq!(end.since(Nanos(0)), alone(length), "{length} tokens");
        assert_eq!((stages_on(&world, NPU), made(&world).len()), (0, 0), "{length} tokens");
        let graphs = world.sim.scheduler().stats().graphs;
        assert!(graphs.chunks_elsewhere > 0 && graphs.wanted > 0 && graphs.ready == 0);
        let timeline = Timeline::new(&world.sim.recorder().recording());
        let sent = timeline.messages.iter();
        let elsewhere = sent.filter(|it| it.name == "chunk whose graphs are not ready");
        assert_eq!(elsewhere.count() as u64, graphs.chunks_elsewhere, "{length} tokens");

        // Then there is no request.
        world.sim.run();
        let made = made(&world);
        let graphs = world.sim.scheduler().stats().graphs;
        assert_eq!((graphs.wanted, graphs.ready), (0, made.len()), "{length} tokens");
        assert!(made.iter().all(|(start, _)| *start >= end + REST), "{made:?} after {end}");
        assert!(made.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two at once: {made:?}");

        let before = (stages_on(&world, NPU), graphs.chunks_elsewhere);
        let now = world.sim.now().since(Nanos(0));
        let mut later = submit(&mut world, now, length);
        ended(&mut world, &mut later, length);
        assert!(stages_on(&world, NPU) > before.0, "{length} tokens");
        assert_eq!(world.sim.scheduler().stats().graphs.chunks_elsewhere, before.1);
        world.sim.run();
        world.assert_empty();
    }
}

#[test]
fn no_graph_is_begun_while_a_request_runs() {
    let length = 40;
    let mut world = recorded(&setup());
    let mut first = submit(&mut world, Duration::ZERO, length);
    let end = ended(&mut world, &mut first, length).since(Nanos(0));
    // The second arrives while the first graph is made, the third during the rest after it, and so on.
    let arrivals = [end + REST + MAKE / 2, end + REST + MAKE + REST / 2, end + 2 * (REST + MAKE)];
    let mut runs = Vec::new();
    for at in arrivals {
        let mut stream = submit(&mut world, at, length);
        let stop = ended(&mut world, &mut stream, length);
        assert_eq!(stop.since(Nanos(0)) - at, alone(length), "it waits for the graph");
        runs.push((Nanos(0) + at, stop));
    }
    world.sim.run();
    let made = made(&world);
    assert!(made.len() > 2, "{made:?}");
    for (arrived, stop) in runs {
        let begun = made.iter().filter(|(start, _)| (arrived..stop + REST).contains(start));
        assert_eq!(begun.count(), 0, "{arrived} to {stop}: {made:?}");
    }
    world.assert_empty();
}

#[test]
fn a_program_that_pauses_for_less_than_a_rest_has_no_graph_made_beside_it() {
    let length = 10;
    let mut world = recorded(&setup());
    for _ in 0..20 {
        let at = world.sim.now().since(Nanos(0)) + REST / 2;
        let mut stream = submit(&mut world, at, length);
        ended(&mut world, &mut stream, length);
    }
    assert_eq!(made(&world), []);
    world.sim.run();
    assert!(!made(&world).is_empty());
}

/// Requests overlap, so that there is always one.
#[test]
fn an_engine_that_is_never_idle_makes_graphs_in_a_small_part_of_its_time() {
    let slow = FixedRate { per_stage: Duration::from_millis(50), per_row: Duration::ZERO };
    let length = 10;
    let mut world = recorded(&Setup { time: Some(Arc::new(Times(slow))), ..setup() });
    let (mut streams, mut count): (Vec<Stream>, usize) = (Vec::new(), 0);
    while world.sim.now() < Nanos(0) + BUSY_MAX * 2 {
        while streams.len() < 3 {
            let (ids, now) = (prompt(length), world.sim.now());
            // They end at different times.
            streams.push(world.submit(now, &ids, generate(&ids, [40, 64, 90][count % 3])));
            count += 1;
        }
        assert!(world.sim.step(), "the engine stands still");
        streams.iter_mut().for_each(Stream::drain);
        streams.retain(|stream| stream.end.is_none());
    }
    let end = world.sim.now();
    let made = made(&world);
    assert!(!made.is_empty() && stages_on(&world, NPU) > 0, "{made:?}");
    assert!(made[0].0 >= Nanos(0) + BUSY_MAX, "{made:?}");
    let during: Vec<_> = made.into_iter().filter(|(start, _)| *start < end).collect();
    for pair in during.windows(2) {
        let (pause, took) = (pair[1].0.since(pair[0].1), pair[0].1.since(pair[0].0));
        assert!(pause >= took * BUSY_PAUSE, "{during:?}");
    }
}

#[test]
fn graphs_of_other_lengths_make_room_and_a_budget_that_is_too_small_is_given_up() {
    for (budget, is_enough) in [(64, true), (6, true), (2, false)] {
        let mut world = recorded(&Setup { graphs: (budget, None), ..setup() });
        for length in [40, 3, 40] {
            let now = world.sim.now().since(Nanos(0));
            let mut stream = submit(&mut world, now, length);
            ended(&mut world, &mut stream, length);
            world.sim.run();
            assert_eq!(world.sim.scheduler().stats().graphs.wanted, 0, "{budget}, {length}");
        }
        assert!(world.sim.scheduler().stats().graphs.ready <= budget, "{budget}");
        assert_eq!(stages_on(&world, NPU) > 0, is_enough, "{budget}");
        assert!(stages_on(&world, CPU) > 0);
        world.assert_empty();
    }
}

#[test]
fn a_graph_that_cannot_be_made_is_the_error_of_a_request_that_needs_it() {
    let length = 40;
    let mut world = World::new(&Setup { graphs: (64, Some(1)), ..setup() });
    let mut first = submit(&mut world, Duration::ZERO, length);
    ended(&mut world, &mut first, length);
    world.sim.run();
    let now = world.sim.now().since(Nanos(0));
    let mut second = submit(&mut world, now, length);
    world.sim.run();
    second.drain();
    let error = second.end.expect("an end").expect_err("a failure").to_string();
    assert!(error.contains("no such graph"), "{error}");
    world.assert_empty();
}

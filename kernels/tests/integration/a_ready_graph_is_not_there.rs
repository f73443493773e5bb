//! A graph that a preparer has reported as ready runs immediately, whatever graphs the device prepares
//! on the spot and whatever other graphs are being prepared.

use std::slice::from_ref;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use lapwing_kernels::device::{BlockingDevice, DeviceError, GraphKey, Prepare};
use lapwing_kernels::npu::array::graph_bytes;
use lapwing_kernels::npu::{GraphSpec, NpuBackend, PreparedGraph, Systolic};
use proptest::prelude::*;

use crate::npu::{Report, Task, Tiny, properties_of_inner};

fn task(tiny: &Tiny, graphs: &[usize], prepare: Prepare) -> Task {
    let rows = graphs.iter().sum::<usize>() - 5;
    Task { prepare, ..Task::new(tiny.gated(), rows, graphs) }
}

fn keys(tiny: &Tiny, graphs: &[usize]) -> Vec<GraphKey> {
    Task::new(tiny.gated(), 1, graphs).keys()
}

/// Bytes of a graph of `rows` rows.
fn bytes(tiny: &Tiny, rows: usize) -> u64 {
    graph_bytes(&tiny.graph, &keys(tiny, &[rows])[0])
}

#[test]
fn graphs_made_on_the_spot_evict_no_graph_prepared_ahead() {
    let tiny = Tiny::open("llama");
    let mut npu = tiny.npu(bytes(&tiny, 128));
    let mut preparer = npu.preparer().expect("a preparer");
    let ahead = keys(&tiny, &[64, 32]);
    preparer.prepare(&ahead, &[], &mut ()).expect("graphs");
    let spot = task(&tiny, &[96, 32, 96], Prepare::OnTheSpot);
    let want = tiny.run(&mut tiny.cpu(), &spot, &mut ()).expect("a run");
    for turn in 1..3 {
        let mut report = Report::default();
        let got = tiny.run(&mut npu, &spot, &mut report).expect("a run");
        tiny.assert_same(&spot, &got, &want, "not cached");
        assert_eq!(report.prepared, [96], "prepared once for its two runs, and not cached");
        let stats = npu.cache().stats();
        assert_eq!((stats.graphs, stats.evicted), (2, 0));
        assert_eq!((stats.prepared, stats.uncached), (2 + turn, turn));
        assert_eq!((stats.bytes, stats.peak_bytes), (bytes(&tiny, 96), bytes(&tiny, 192)));
    }
    let run = task(&tiny, &[64, 32], Prepare::Ahead);
    tiny.run(&mut npu, &run, &mut ()).expect("both are ready");
    // A graph of its first matmul for 32 rows fits beside them; a preparer may evict it.
    let first = tiny.gated().start;
    let small = Task { prepare: Prepare::OnTheSpot, ..Task::new(first..first + 1, 20, &[32]) };
    tiny.run(&mut npu, &small, &mut ()).expect("a run");
    assert!(npu.cache().contains(&small.keys()[0]));
    let done = preparer.prepare(&keys(&tiny, &[128]), &[], &mut ()).expect("a graph");
    assert_eq!(done.evicted.len(), 3);
}

#[test]
fn a_graph_that_a_preparer_finds_ready_counts_as_prepared_ahead() {
    let tiny = Tiny::open("llama");
    let mut npu = tiny.npu(bytes(&tiny, 128));
    let mut preparer = npu.preparer().expect("a preparer");
    tiny.run(&mut npu, &task(&tiny, &[64], Prepare::OnTheSpot), &mut ()).expect("a run");
    // No preparer has requested it, so it may be evicted.
    tiny.run(&mut npu, &task(&tiny, &[96], Prepare::OnTheSpot), &mut ()).expect("a run");
    assert_eq!((npu.cache().stats().evicted, npu.cache().stats().uncached), (1, 0));
    let found = preparer.prepare(&keys(&tiny, &[96]), &[], &mut ()).expect("a graph");
    assert!(found.made.is_empty());
    tiny.run(&mut npu, &task(&tiny, &[64], Prepare::OnTheSpot), &mut ()).expect("a run");
    assert_eq!((npu.cache().stats().evicted, npu.cache().stats().uncached), (1, 1));
    tiny.run(&mut npu, &task(&tiny, &[96], Prepare::Ahead), &mut ()).expect("it is ready");
}

#[test]
fn graphs_that_together_exceed_the_budget_are_reported_as_a_set() {
    let tiny = Tiny::open("llama");
    let mut npu = tiny.npu(bytes(&tiny, 128));
    let mut preparer = npu.preparer().expect("a preparer");
    preparer.prepare(&keys(&tiny, &[32]), &[], &mut ()).expect("a graph");
    let sizes = [64, 32, 96, 32];
    let spot = task(&tiny, &sizes, Prepare::OnTheSpot);
    let errors = [
        preparer.prepare(&keys(&tiny, &sizes), &[], &mut ()).expect_err("no room"),
        tiny.run(&mut npu, &spot, &mut ()).expect_err("no room"),
    ];
    for error in errors {
        let wanted = DeviceError::GraphTooLarge {
            device: "npu".to_owned(),
            graphs: 3,
            bytes: bytes(&tiny, 192),
            nodes: tiny.gated(),
            rows: 96,
            largest: bytes(&tiny, 96),
            budget: bytes(&tiny, 128),
        };
        assert_eq!(error, wanted);
        let advice = format!("raise the device's budget to {} bytes", bytes(&tiny, 192));
        assert!(error.to_string().contains(&advice), "{error}");
    }
    // The failed requests prepared and evicted nothing.
    let stats = npu.cache().stats();
    assert_eq!((stats.prepared, stats.evicted, stats.graphs), (1, 0, 1));
    // The advice in the error is right.
    let npu = tiny.npu(bytes(&tiny, 192));
    let mut preparer = npu.preparer().expect("a preparer");
    preparer.prepare(&keys(&tiny, &sizes), &[], &mut ()).expect("graphs");
}

/// A back end whose preparation of graphs of 96 rows blocks until the test releases it.
struct Slow {
    inner: Systolic,
    begun: SyncSender<()>,
    release: Receiver<()>,
    released: SyncSender<bool>,
}

impl NpuBackend for Slow {
    properties_of_inner!();

    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        if spec.key.rows == 96 {
            self.begun.send(()).expect("a test");
            let released = self.release.recv_timeout(Duration::from_secs(20)).is_ok();
            self.released.send(released).expect("a test");
        }
        self.inner.prepare(spec)
    }
}

#[test]
fn ready_graphs_run_while_another_is_being_prepared() {
    let tiny = Tiny::open("llama");
    let (begun, has_begun) = sync_channel(1);
    let (send_release, release) = sync_channel(1);
    let (released, was_released) = sync_channel(1);
    let slow = Slow { inner: tiny.systolic(), begun, release, released };
    let mut npu = tiny.npu_over(Box::new(slow), bytes(&tiny, 192));
    let mut lane = npu.preparer().expect("a preparer");
    let mut other = npu.preparer().expect("another");
    lane.prepare(&keys(&tiny, &[64, 32]), &[], &mut ()).expect("graphs");
    std::thread::scope(|scope| {
        let slow = keys(&tiny, &[96]);
        let lane = scope.spawn(move || lane.prepare(&slow, &[], &mut ()));
        has_begun.recv().expect("it prepares");
        for prepare in [Prepare::OnTheSpot, Prepare::Ahead] {
            tiny.run(&mut npu, &task(&tiny, &[64, 32], prepare), &mut ()).expect("a run");
        }
        let found = other.prepare(&keys(&tiny, &[32, 64]), &[], &mut ()).expect("graphs");
        assert!(found.made.is_empty());
        send_release.send(()).expect("it still blocks");
        assert!(was_released.recv().expect("an end"), "everything ran before the release");
        assert_eq!(lane.join().expect("the lane").expect("a graph").made.len(), 1);
    });
}

/// A request to a device. Sizes are row counts, multiples of 32.
#[derive(Clone, Debug)]
enum Event {
    Prepare { sizes: Vec<usize>, keep: Vec<usize> },
    OnTheSpot { sizes: Vec<usize> },
}

fn sizes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec((1usize..6).prop_map(|size| 32 * size), count)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (sizes(1..4), sizes(0..3)).prop_map(|(sizes, keep)| Event::Prepare { sizes, keep }),
        sizes(1..4).prop_map(|sizes| Event::OnTheSpot { sizes }),
    ]
}

/// Rows of all different sizes.
fn sum(sizes: &[usize]) -> usize {
    let different = sizes.iter().enumerate().filter(|(at, size)| !sizes[..*at].contains(size));
    different.map(|(_, size)| size).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn graphs_reported_ready_stay_ready_until_their_eviction_is_reported(
        events in prop::collection::vec(event(), 1..20),
        budget in 32usize..320,
    ) {
        let tiny = Tiny::open("llama");
        let mut npu = tiny.npu(bytes(&tiny, budget));
        let cache = npu.cache();
        let mut preparer = npu.preparer().expect("a preparer");
        // The scheduler's view: sizes reported ready and not reported evicted.
        let mut ready: Vec<usize> = Vec::new();
        for event in events {
            let (requested, result) = match event {
                Event::Prepare { sizes, keep } => {
                    let (want, keep) = (keys(&tiny, &sizes), keys(&tiny, &keep));
                    let result = preparer.prepare(&want, &keep, &mut ());
                    match &result {
                        Ok(done) => {
                            ready.retain(|rows| done.evicted.iter().all(|key| key.rows != *rows));
                            ready.extend(&sizes);
                        }
                        Err(_) => ready.retain(|rows| keep.iter().any(|key| key.rows == *rows)),
                    }
                    (sizes, result.err())
                }
                Event::OnTheSpot { sizes } => {
                    let before = cache.stats();
                    let spot = task(&tiny, &sizes, Prepare::OnTheSpot);
                    let result = tiny.run(&mut npu, &spot, &mut ());
                    let is_no_room = |error: &DeviceError| matches!(error, DeviceError::NoRoom { .. });
                    prop_assert!(!result.as_ref().is_err_and(is_no_room), "on the spot, it runs uncached");
                    prop_assert!(cache.stats().evicted == before.evicted || result.is_ok());
                    (sizes, result.err())
                }
            };
            match result {
                None => prop_assert!(sum(&requested) <= budget),
                Some(DeviceError::GraphTooLarge { .. }) => prop_assert!(sum(&requested) > budget),
                Some(DeviceError::NoRoom { .. }) => prop_assert!(sum(&requested) <= budget),
                Some(error) => return Err(TestCaseError::fail(error.to_string())),
            }
            for rows in &ready {
                let run = task(&tiny, from_ref(rows), Prepare::Ahead);
                let result = tiny.run(&mut npu, &run, &mut ());
                prop_assert!(result.is_ok(), "{:?} of {:?}", result.err(), ready);
            }
            let stats = cache.stats();
            prop_assert!(stats.bytes <= stats.budget);
            // The graphs of one part, uncached, beside the cached ones.
            prop_assert!(stats.peak_bytes <= 2 * stats.budget);
        }
    }
}

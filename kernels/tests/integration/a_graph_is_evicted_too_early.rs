//! Prepared graphs within a byte budget: which graphs are evicted, and which bytes count.

use std::slice::from_ref;

use lapwing_kernels::device::{BlockingDevice, DeviceError, GraphKey, Prepare};
use lapwing_kernels::npu::array::graph_bytes;
use lapwing_kernels::npu::{GraphSpec, NpuBackend};
use lapwing_kernels::part::Share;
use proptest::prelude::*;

use crate::npu::{ORDERS, Report, SHARES, Task, Tiny};

/// Bytes that the graph of the gated block with `rows` rows occupies.
fn bytes(tiny: &Tiny, rows: usize) -> u64 {
    let inputs: usize = tiny.graph.live_in(tiny.gated()).iter().map(|v| width(tiny, *v)).sum();
    let outputs: usize = tiny.graph.writes(tiny.gated()).iter().map(|v| width(tiny, *v)).sum();
    (4 * rows * (inputs + outputs)) as u64
}

fn width(tiny: &Tiny, value: lapwing_kernels::graph::ValueId) -> usize {
    tiny.graph.value(value).width
}

fn key(tiny: &Tiny, rows: usize) -> GraphKey {
    Task::new(tiny.gated(), rows, &[rows]).keys().remove(0)
}

#[test]
fn the_least_recently_used_graphs_are_evicted_first() {
    let tiny = Tiny::open("llama");
    let keys: Vec<GraphKey> = [32, 64, 96, 128].map(|rows| key(&tiny, rows)).to_vec();
    // Room for 192 rows: all of 32, 64 and 96, but not 128 beside them.
    let mut npu = tiny.npu(bytes(&tiny, 192));
    let cache = npu.cache();
    let mut preparer = npu.preparer().expect("a preparer");
    let prepared = preparer.prepare(&keys[..3], &[], &mut ()).expect("graphs");
    assert_eq!((&prepared.made[..], &prepared.evicted[..]), (&keys[..3], &[][..]));
    assert_eq!(prepared.bytes, bytes(&tiny, 192));
    // A run is a use.
    let task = Task::new(tiny.gated(), 20, &[32]);
    tiny.run(&mut npu, &task, &mut ()).expect("a run");
    let prepared = preparer.prepare(&keys[3..], &[], &mut ()).expect("a graph");
    assert_eq!(prepared.evicted, [keys[1].clone(), keys[2].clone()]);
    assert!(cache.contains(&keys[0]) && cache.contains(&keys[3]));
    let stats = cache.stats();
    assert_eq!((stats.graphs, stats.bytes), (2, bytes(&tiny, 160)));
    assert_eq!((stats.prepared, stats.evicted, stats.runs), (4, 2, 1));
    assert_eq!(
        stats.peak_bytes,
        bytes(&tiny, 192),
        "old and new graphs were never in memory together"
    );
    // A graph that is ready costs nothing and evicts nothing.
    let mut report = Report::default();
    let again = preparer.prepare(&keys[3..], &[], &mut report).expect("a graph");
    assert!(again.made.is_empty() && again.evicted.is_empty() && report.prepared.is_empty());
    assert_eq!(again.bytes, stats.bytes);
}

#[test]
fn graphs_to_keep_are_not_evicted_however_old() {
    let tiny = Tiny::open("llama");
    let [old, new, third] = [32, 64, 96].map(|rows| key(&tiny, rows));
    let npu = tiny.npu(bytes(&tiny, 128));
    let mut preparer = npu.preparer().expect("a preparer");
    preparer.prepare(&[old.clone(), new.clone()], &[], &mut ()).expect("graphs");
    let prepared = preparer.prepare(from_ref(&third), from_ref(&old), &mut ()).expect("a graph");
    assert_eq!(prepared.evicted, from_ref(&new));
    // Nothing else may be evicted: the request fails and changes nothing.
    let keep = [old.clone(), third.clone()];
    let error = preparer.prepare(from_ref(&new), &keep, &mut ()).expect_err("no room");
    let DeviceError::NoRoom { rows: 64, bytes: needed, kept, budget, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((needed, kept), (bytes(&tiny, 64), bytes(&tiny, 128)));
    assert_eq!(budget, bytes(&tiny, 128));
    assert!(npu.cache().contains(&old) && npu.cache().contains(&third));
}

#[test]
fn graphs_requested_together_do_not_evict_each_other() {
    let tiny = Tiny::open("llama");
    let npu = tiny.npu(bytes(&tiny, 100));
    let mut preparer = npu.preparer().expect("a preparer");
    let keys = [key(&tiny, 32), key(&tiny, 64)];
    preparer.prepare(&keys, &[], &mut ()).expect("graphs");
    let more = [key(&tiny, 64), key(&tiny, 32), key(&tiny, 96)];
    let error = preparer.prepare(&more, &[], &mut ()).expect_err("no room");
    assert!(matches!(error, DeviceError::GraphTooLarge { rows: 96, .. }), "{error}");
    assert!(keys.iter().all(|key| npu.cache().contains(key)));
}

#[test]
fn all_graphs_of_a_part_are_prepared_on_the_spot() {
    let tiny = Tiny::open("llama");
    // 64 and 32 fit together, but not beside the graph of 128 rows.
    let mut npu = tiny.npu(bytes(&tiny, 128));
    let mut task = Task::new(tiny.gated(), 100, &[128]);
    task.prepare = Prepare::OnTheSpot;
    tiny.run(&mut npu, &task, &mut ()).expect("a run");
    task = Task { prepare: task.prepare, ..Task::new(tiny.gated(), 90, &[64, 32]) };
    let mut report = Report::default();
    let got = tiny.run(&mut npu, &task, &mut report).expect("a run");
    let want = tiny.run(&mut tiny.cpu(), &task, &mut ()).expect("a run");
    tiny.assert_same(&task, &got, &want, "on the spot");
    assert_eq!(report.prepared, [64, 32]);
    assert_eq!(npu.cache().stats().evicted, 1);
}

#[test]
fn a_graph_counts_the_bytes_of_its_buffers_only() {
    for name in ["llama", "qwen2", "gemma2"] {
        let tiny = Tiny::open(name);
        let npu = tiny.npu(1 << 30);
        let mut preparer = npu.preparer().expect("a preparer");
        let before = npu.cache().stats().bytes;
        let prepared = preparer.prepare(&[key(&tiny, 96)], &[], &mut ()).expect("a graph");
        let counted = graph_bytes(&tiny.graph, &key(&tiny, 96));
        assert_eq!(prepared.bytes - before, counted, "{name}");
        // Intermediate values, at least the gated ones, are shared and do not count.
        let gate = width(&tiny, tiny.graph.nodes()[tiny.gated().start].output);
        assert!(npu.cache().stats().shared_bytes >= 4 * 96 * gate as u64, "{name}");
    }
}

/// Compares with the actual buffers of software graphs, for all graphs that a planner may request.
#[test]
fn a_planner_counts_the_same_bytes_as_the_device() {
    for name in ["llama", "qwen2", "qwen3", "gemma2"] {
        let tiny = Tiny::open(name);
        let npu = tiny.npu(1 << 30);
        assert_eq!(npu.info().budget.as_ref().map(|budget| budget.bytes), Some(1 << 30));
        let mut backend = tiny.systolic();
        for nodes in tiny.runs(&npu).into_iter().chain([tiny.gated()]) {
            let shares = match tiny.graph.can_cut_features(nodes.clone()) {
                true => &SHARES[..],
                false => &[],
            };
            for &features in shares.iter().chain([&Share::WHOLE]) {
                for order in ORDERS {
                    let key = GraphKey {
                        model: lapwing_kernels::device::ModelId::default(),
                        nodes: nodes.clone(),
                        features,
                        rows: 96,
                        order,
                    };
                    let spec = GraphSpec::new(&tiny.graph, &key, "npu").expect("a graph");
                    let mut graph = backend.prepare(&spec).expect("a graph");
                    let inputs: usize = (0..spec.inputs.len()).map(|p| graph.input(p).len()).sum();
                    let outputs = 0..spec.outputs.len();
                    let outputs: usize = outputs.map(|port| graph.output(port).len()).sum();
                    let counted = graph_bytes(&tiny.graph, &key);
                    assert_eq!(counted, 4 * (inputs + outputs) as u64, "{name} {key:?}");
                    assert_eq!(counted, graph.bytes(), "{name} {key:?}");
                    assert_eq!(counted, backend.estimate_bytes(&spec), "{name} {key:?}");
                }
            }
        }
    }
}

/// A device runs while another thread prepares and evicts graphs in a cache too small for all.
#[test]
fn preparing_graphs_does_not_disturb_a_concurrent_run() {
    let tiny = Tiny::open("format-q4_0");
    let mut npu = tiny.npu(bytes(&tiny, 160));
    let serving = Task::new(tiny.gated(), 40, &[64]);
    let mut preparer = npu.preparer().expect("a preparer");
    preparer.prepare(&serving.keys(), &[], &mut ()).expect("a graph");
    let want = tiny.run(&mut tiny.cpu(), &serving, &mut ()).expect("a run");
    // They alternate, because only one of them fits beside the graph in use.
    let others = [32, 96].map(|rows| key(&tiny, rows));
    let cache = npu.cache();
    let runs = std::thread::scope(|scope| {
        let keep = serving.keys();
        let lane = scope.spawn(move || {
            let mut made = 0;
            for turn in 0..60 {
                let keys = &others[turn % 2..=turn % 2];
                let prepared = preparer.prepare(keys, &keep, &mut ()).expect("a graph");
                assert!(prepared.evicted.iter().all(|key| !keep.contains(key)));
                made += prepared.made.len();
            }
            made
        });
        let mut runs = 0;
        while !lane.is_finished() || runs < 20 {
            let got = tiny.run(&mut npu, &serving, &mut ()).expect("a run");
            tiny.assert_same(&serving, &got, &want, "beside a preparer");
            runs += 1;
        }
        assert_eq!(lane.join().expect("the lane"), 60);
        runs
    });
    let stats = cache.stats();
    assert_eq!(stats.runs, runs, "each run runs its graph once");
    assert!(stats.peak_bytes <= stats.budget, "{stats:?}");
}

#[test]
fn concurrent_preparations_make_a_graph_once() {
    let tiny = Tiny::open("llama");
    let mut npu = tiny.npu(1 << 30);
    let mut task = Task::new(tiny.gated(), 500, &[256, 256]);
    task.prepare = Prepare::OnTheSpot;
    let mut preparers = [npu.preparer().expect("one"), npu.preparer().expect("another")];
    std::thread::scope(|scope| {
        for preparer in &mut preparers {
            let keys = task.keys();
            scope.spawn(move || preparer.prepare(&keys, &[], &mut ()).expect("a graph"));
        }
        tiny.run(&mut npu, &task, &mut ()).expect("a run");
    });
    let stats = npu.cache().stats();
    assert_eq!((stats.prepared, stats.graphs, stats.runs), (1, 1, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_budget_holds_for_any_sequence_of_requests(
        requests in prop::collection::vec((1usize..8, prop::collection::vec(1usize..8, 0..3)), 1..12),
        budget in 32usize..400,
    ) {
        let tiny = Tiny::open("llama");
        let npu = tiny.npu(bytes(&tiny, budget));
        let cache = npu.cache();
        let mut preparer = npu.preparer().expect("a preparer");
        let (mut ready, mut prepared) = (Vec::<GraphKey>::new(), 0);
        for (rows, keep) in requests {
            let requested = key(&tiny, 32 * rows);
            let keep: Vec<GraphKey> = keep.iter().map(|rows| key(&tiny, 32 * rows)).collect();
            match preparer.prepare(from_ref(&requested), &keep, &mut ()) {
                Ok(done) => {
                    prop_assert!(done.evicted.iter().all(|key| !keep.contains(key)));
                    prop_assert_eq!(done.made.contains(&requested), !ready.contains(&requested));
                    ready.retain(|key| !done.evicted.contains(key));
                    prepared += done.made.len() as u64;
                    ready.extend(done.made);
                    prop_assert_eq!(done.bytes, cache.stats().bytes);
                }
                Err(DeviceError::GraphTooLarge { .. }) => prop_assert!(32 * rows > budget),
                Err(DeviceError::NoRoom { .. }) => {
                    prop_assert!(32 * rows <= budget);
                    let stays: usize =
                        ready.iter().filter(|key| keep.contains(key)).map(|key| key.rows).sum();
                    prop_assert!(stays + 32 * rows > budget);
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
            prop_assert!(ready.iter().all(|key| cache.contains(key)));
            let stats = cache.stats();
            let rows: usize = ready.iter().map(|key| key.rows).sum();
            prop_assert_eq!((stats.graphs, stats.bytes), (ready.len(), bytes(&tiny, rows)));
            prop_assert_eq!(stats.prepared, prepared);
            prop_assert!(stats.peak_bytes <= stats.budget);
        }
    }
}

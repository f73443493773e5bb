//! Ops are placed where the user asks, or where their chain takes the least time.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::part::Part;
use lapwing_plan::blocks::blocks;
use lapwing_plan::cost::{CostModel, Modelled};
use lapwing_plan::place::{Placed, Places, path};
use lapwing_plan::strategy::{AutoPlace, OrderSwap, Strategy, StrategyOptions, all, by_name};
use lapwing_plan::time::{Crossing, Job, TimeModel};
use lapwing_plan::{DeviceId, PlanError, Route, Stage, StagePart};
use proptest::prelude::*;

use crate::setup::{Setup, decode};
use crate::support::{Rate, devices, prefill};

fn placed(strategy: &str, places: &[&str]) -> Placed {
    Placed {
        inner: by_name(strategy, &StrategyOptions::default()).expect("is known"),
        places: Places::parse(places).expect("placements"),
        order_swap: OrderSwap::On,
    }
}

/// Path and device of each op; `a|b` if it is divided.
fn devices_by_path(setup: &Setup, route: &Route) -> Vec<(String, String)> {
    let nodes =
        route.compute_stages().flat_map(|stage| stage.nodes.clone().map(move |n| (n, stage)));
    nodes.map(|(n, stage)| (path(&setup.graph.nodes()[n]), setup.names(stage))).collect()
}

#[test]
fn every_op_has_a_unique_path() {
    for model in ["llama", "gemma2", "gemma3", "qwen2", "qwen3", "internlm2", "minicpm3"] {
        let setup = Setup::new(model, "cpu");
        let mut paths: Vec<String> = setup.graph.nodes().iter().map(path).collect();
        for path in &paths {
            let known = ["embed", "output", "output_norm", "output.scale", "output.cap"]
                .contains(&path.as_str());
            let layer = path.starts_with("layers.") && path.split('.').count() == 4;
            assert!(known || layer, "{path}");
        }
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count, "{model}");
    }
}

#[test]
fn placed_ops_run_on_their_device_under_every_strategy() {
    let setup = Setup::new("gemma3", "cpu gpu npu");
    let texts = ["layers.*.ffn=npu", "layers.0.ffn.down=cpu", "layers.*.attn.attend=cpu"];
    for strategy in all(&StrategyOptions::default()) {
        for shape in [prefill(300), decode(3)] {
            let alone = setup.route(&*strategy, shape).expect("a route");
            let strategy = placed(strategy.name(), &texts);
            let route = setup.route(&strategy, shape).expect("a route");
            let before = devices_by_path(&setup, &alone);
            for ((path, found), (_, was)) in devices_by_path(&setup, &route).iter().zip(&before) {
                let want = match path.as_str() {
                    "layers.0.ffn.down" => "cpu",
                    path if path.ends_with("attn.attend") => "cpu",
                    path if path.contains(".ffn.") => "npu",
                    _ => was,
                };
                assert_eq!(found, want, "{} {path}", strategy.name());
            }
        }
    }
}

#[test]
fn placing_an_op_on_its_own_device_changes_no_stage() {
    let setup = Setup::new("llama", "cpu gpu npu");
    for (name, text) in [("cpu-only", "layers.0=cpu"), ("npu-padding", "layers.*.ffn.up=npu")] {
        let strategy = by_name(name, &StrategyOptions::default()).expect("is known");
        let plain = setup.route(&*strategy, prefill(300)).expect("a route");
        let placed = placed(name, &[text]);
        let route = setup.route(&placed, prefill(300)).expect("a route");
        if name == "cpu-only" {
            assert_eq!(route.stages, plain.stages);
        } else {
            // Only the last layer's `up` moves: its rows are selected, so it was not on the NPU.
            assert_eq!(route.compute_stages().count(), plain.compute_stages().count() + 2);
        }
    }
}

#[test]
fn stages_that_a_strategy_keeps_apart_stay_apart() {
    let setup = Setup::new("llama", "cpu");
    let route = setup.route(&placed("barrier-per-op", &["*=cpu"]), prefill(8)).expect("a route");
    assert_eq!(route.compute_stages().count(), setup.graph.nodes().len());
}

#[test]
fn selected_rows_get_graphs_of_their_own_size() {
    let setup = Setup::new("llama", "cpu npu");
    let route = setup.route(&placed("cpu-only", &["output=npu"]), prefill(300)).expect("a route");
    let last = route.compute_stages().last().expect("stages");
    assert_eq!((setup.names(last).as_str(), &last.parts[0].part.graphs[..]), ("npu", &[32][..]));
}

#[test]
fn an_impossible_placement_names_its_reason() {
    let setup = Setup::new("llama", "cpu npu");
    let fail = |text: &str| setup.route(&placed("cpu-only", &[text]), prefill(8)).expect_err(text);
    let error = fail("layers.*.fnn=npu");
    assert!(matches!(&error, PlanError::NoMatch { pattern, .. } if pattern == "layers.*.fnn"));
    assert!(error.to_string().contains("layers.0.ffn.gate"), "{error}");
    let error = fail("layers.*.ffn=tpu");
    assert!(matches!(&error, PlanError::UnknownDevice { device, .. } if device == "tpu"));
    assert!(error.to_string().contains("cpu, npu"), "{error}");
    let error = fail("layers.0.attn=npu").to_string();
    assert!(!error.contains("nodes") && error.contains("layers.*.attn.q, .k, .v"), "{error}");
    for op in ["layers.0.attn.rope_q", "layers.0.attn.rope_k", "layers.0.attn.attend"] {
        assert!(error.contains(op), "{error}");
    }
    assert!(!error.contains("layers.0.attn.q,"), "{error}");
    for text in ["layers", "=npu", "layers..ffn=npu", "layers="] {
        let error = Places::parse([text]).expect_err(text);
        assert!(matches!(&error, PlanError::Placement { text: t, .. } if t == text));
    }
}

/// Predicted time of stages that run one after another.
fn chain_time(cost: &Modelled, stages: &[Stage], rows: usize) -> Duration {
    let batch = prefill(rows).batch();
    let mut total = Duration::ZERO;
    let mut before: Option<DeviceId> = None;
    for stage in stages {
        let [StagePart { device, part }] = &stage.parts[..] else { panic!("a divided stage") };
        if let Some(from) = before {
            total += cost.sync_time(Crossing { from, to: *device });
        }
        before = Some(*device);
        let (first, end) = (stage.nodes.start, stage.nodes.end);
        let job = Job::alone(first..end, part, &batch);
        total += cost.job_time(*device, &job);
    }
    total
}

/// A device with a random time for each node.
struct RandomTimes {
    per_stage: Duration,
    nodes: Vec<Duration>,
}

impl TimeModel for RandomTimes {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        self.per_stage
    }

    fn node_time(&self, _job: &Job<'_>, node: usize) -> Duration {
        self.nodes[node]
    }
}

/// Least time over all assignments of blocks to two devices that run every op.
fn least(cost: &Modelled, blocks: &[Range<usize>]) -> Duration {
    let assignments = 0..1usize << blocks.len();
    let time = |bits: usize| {
        let mut stages: Vec<Stage> = Vec::new();
        for (at, nodes) in blocks.iter().enumerate() {
            let device = DeviceId(bits >> at & 1);
            match stages.last_mut() {
                Some(last) if last.parts[0].device == device => last.nodes.end = nodes.end,
                _ => stages.push(Stage::one(device, nodes.clone(), Part::WHOLE)),
            }
        }
        chain_time(cost, &stages, 8)
    };
    assignments.map(time).min().expect("an assignment")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn auto_place_finds_the_fastest_assignment(
        times in proptest::collection::vec((0..100u64, 0..100u64), 64),
        (a, b, sync) in (0..50u64, 0..50u64, 0..120u64),
    ) {
        let mut setup = Setup::new("llama", "cpu gpu");
        let all = blocks(&setup.graph);
        // Only the first blocks are free; the others are too slow anywhere but on the CPU.
        let free = all.len().min(11);
        let border = all[free - 1].nodes.end;
        let count = setup.graph.nodes().len();
        let time = |of: &dyn Fn(usize) -> u64| (0..count).map(|n| Duration::from_micros(of(n))).collect();
        let micros = Duration::from_micros;
        let far = 1_000_000;
        let models: Vec<Arc<dyn TimeModel>> = vec![
            Arc::new(RandomTimes { per_stage: micros(a), nodes: time(&|n| times[n % 64].0) }),
            Arc::new(RandomTimes {
                per_stage: micros(b),
                nodes: time(&|n| if n < border { times[n % 64].1 } else { far }),
            }),
        ];
        setup.cost = Modelled { devices: models, sync: micros(sync), copy_rate: 1e9 };
        let route = setup.route(&AutoPlace::default(), prefill(8)).expect("a route");
        let found = route.predicted.expect("a predicted time");
        prop_assert_eq!(found, chain_time(&setup.cost, &route.compute_stages().cloned().collect::<Vec<_>>(), 8));
        let mut free: Vec<_> = all[..free].iter().map(|b| b.nodes.clone()).collect();
        free.push(border..count);
        prop_assert_eq!(found, least(&setup.cost, &free));
    }
}

#[test]
fn ops_go_to_the_npu_only_if_it_saves_more_than_the_synchronisation() {
    let setup = Setup::new("llama", "cpu gpu npu");
    let long = setup.route(&AutoPlace::default(), prefill(1000)).expect("a route");
    assert!(long.compute_stages().any(|stage| setup.names(stage) == "npu"));
    assert_eq!(
        long.predicted,
        Some(chain_time(&setup.cost, &long.compute_stages().cloned().collect::<Vec<_>>(), 1000)),
    );
    // If synchronisation costs more than all ops, the fastest device that runs them all gets them.
    let mut slow_sync = setup;
    slow_sync.cost.sync = Duration::from_secs(100);
    let route = slow_sync.route(&AutoPlace::default(), prefill(1000)).expect("a route");
    assert_eq!(route.compute_stages().count(), 1);
    assert_eq!(slow_sync.names(&route.stages[0]), "gpu");
}

#[test]
fn a_chain_is_never_slower_than_one_device() {
    for names in ["cpu npu", "cpu gpu npu", "gpu npu"] {
        for rows in [1, 33, 300] {
            let mut setup = Setup::new("qwen3", names);
            let graph = Arc::clone(&setup.graph);
            let slow = Rate { graph, per_stage: Duration::from_micros(300), flops_per_us: 50 };
            setup.cost.devices[devices(names).len() - 1] = Arc::new(slow);
            let auto = setup.route(&AutoPlace::default(), prefill(rows)).expect("a route");
            let whole = vec![Stage::whole(DeviceId(0), 0..setup.graph.nodes().len())];
            let alone = chain_time(&setup.cost, &whole, rows);
            assert!(auto.predicted.expect("a time") <= alone, "{names} {rows}");
        }
    }
}

//! The routes of `auto` for chunks that are computed beside others.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Arithmetic, DeviceInfo};
use lapwing_kernels::op::Op;
use lapwing_plan::Route;
use lapwing_plan::cost::Modelled;
use lapwing_plan::moment::{CANDIDATES_MAX, Candidate, Haste, Moment, Prices};
use lapwing_plan::strategy::{ChunkShape, MomentRoutes, StrategyOptions, by_name};
use lapwing_plan::time::{Job, TimeModel};
use lapwing_traces::division::least_mix;

use crate::setup::Setup;
use crate::support::{Rate, prefill};

/// Another rate for attention than for other ops, in FLOP/µs.
struct Rates {
    other: Rate,
    attention: u64,
}

impl TimeModel for Rates {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.other.overhead(job)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        match self.other.graph.nodes()[node].op {
            Op::Attention(_) => {
                let flops = self.other.graph.part_cost(node, job.part, job.batch).flops;
                Duration::from_nanos(flops * 1000 / self.attention)
            }
            _ => self.other.node_time(job, node),
        }
    }
}

/// A CPU that is better at attention than at all else, a GPU that is worse at it, and an NPU that is not much faster.
fn setup() -> Setup {
    let setup = Setup::new("llama", "cpu gpu npu");
    let model = |[flops_per_us, attention]: [u64; 2]| -> Arc<dyn TimeModel> {
        let (graph, per_stage) = (Arc::clone(&setup.graph), Duration::from_nanos(200));
        Arc::new(Rates { other: Rate { graph, per_stage, flops_per_us }, attention })
    };
    let devices = [[4000, 10_000], [10_000, 2000], [12_000, 1]].map(model).to_vec();
    let cost = Modelled { devices, sync: Duration::from_nanos(500), copy_rate: 1e9 };
    Setup { cost, ..setup }
}

fn routes(setup: &Setup, moment: MomentRoutes, shape: &ChunkShape) -> Vec<Arc<Route>> {
    let options = StrategyOptions { moment, ..StrategyOptions::default() };
    let auto = by_name("auto", &options).expect("is known");
    auto.routes(&setup.input(), shape).expect("routes")
}

fn is_mix(route: &Route) -> bool {
    route.reason.starts_with("mix (")
}

/// Least mean time of chunks on these routes, in ns.
fn mean(candidates: &[Candidate]) -> f64 {
    let work = |it: &Candidate| -> Vec<f64> {
        it.lanes.iter().map(|lane| lane.time.as_nanos() as f64).collect()
    };
    least_mix(&candidates.iter().map(work).collect::<Vec<_>>()).time
}

#[test]
fn routes_of_undivided_blocks_are_mixed_where_that_keeps_devices_busier() {
    let setup = setup();
    let shape = prefill(256);
    let all = routes(&setup, MomentRoutes::Class, &shape);
    assert!(all.iter().any(|route| is_mix(route)), "no further route");
    let known: Vec<Arc<Route>> = all.iter().filter(|route| !is_mix(route)).cloned().collect();
    let candidates = |routes| Candidate::of_routes(&setup.input(), &shape, routes);
    let [all, known] = [all, known].map(candidates);
    assert!(all.len() <= CANDIDATES_MAX);
    assert!(mean(&all) < 0.97 * mean(&known), "{} {}", mean(&all), mean(&known));
    // Chunks that are cut one after another are done sooner than on the routes on which each ends first.
    let most = |behind: &dyn Fn(usize) -> f64| {
        let mut moment = Moment { prices: Prices::of(3), ..Moment::default() };
        moment.lanes = vec![Default::default(); 3];
        for at in 0..40 {
            moment.behind = behind(at);
            let choice = moment.choose(&all, Haste::InTurn, |_| true);
            let lanes = moment.lanes.iter_mut().zip(&*all[choice.at].lanes);
            lanes.for_each(|(lane, own)| lane.time += own.time);
        }
        moment.lanes.iter().map(|lane| lane.time).max().unwrap_or_default().as_nanos() as f64
    };
    let (known_behind, greedy) = (most(&|at| (39 - at) as f64), most(&|_| 0.0));
    assert!(known_behind < 1.05 * 40.0 * mean(&all), "{known_behind} {}", 40.0 * mean(&all));
    assert!(known_behind <= greedy, "{known_behind} {greedy}");
}

#[test]
fn steps_and_other_arithmetic_have_no_such_routes_and_off_means_one() {
    let own = |info: DeviceInfo| match &*info.name {
        "cpu" => info,
        _ => info.with_arithmetic(Arithmetic::Own),
    };
    let Setup { graph, devices, cost, chunk_rows } = setup();
    let devices: Vec<DeviceInfo> = devices.into_iter().map(own).collect();
    let other = Setup { graph, devices, cost, chunk_rows };
    let shape = prefill(256);
    let mixed = |setup: &Setup, moment, shape: &ChunkShape| {
        routes(setup, moment, shape).iter().filter(|route| is_mix(route)).count()
    };
    assert_eq!(mixed(&other, MomentRoutes::Class, &shape), 0);
    assert!(mixed(&other, MomentRoutes::Any, &shape) > 0);
    assert_eq!(routes(&setup(), MomentRoutes::Off, &shape).len(), 1);
    let step = ChunkShape { phase: lapwing_plan::Phase::Decode, rows: 1, prompt: 0, ..shape };
    assert_eq!(mixed(&setup(), MomentRoutes::Class, &step), 0);
}

#[test]
fn prices_are_a_grid_of_few_points_with_each_device_alone() {
    for devices in 1..=8 {
        let prices = Prices::of(devices);
        let points: Vec<&[f64]> = prices.iter().collect();
        assert!((devices..=120).contains(&points.len()), "{devices}: {}", points.len());
        assert!(points.iter().all(|point| (point.iter().sum::<f64>() - 1.0).abs() < 1e-9));
        for device in 0..devices {
            assert!(points.iter().any(|point| point[device] == 1.0), "{devices}");
        }
    }
}

//! What chunks need of devices bounds the predicted time of every route.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::Batch;
use lapwing_plan::Phase;
use lapwing_plan::needs::Needs;
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::predict::alone;
use lapwing_plan::strategy::{ChunkShape, CpuOnly, StrategyOptions, all};

use crate::setup::{Setup, decode};
use crate::support::prefill;

fn planner(setup: &Setup) -> Planner {
    Planner::new(PlannerParts {
        model: Default::default(),
        graph: Arc::clone(&setup.graph),
        devices: setup.devices.clone(),
        cost: Arc::new(setup.cost.clone()),
        strategy: Arc::new(CpuOnly),
        chunk_rows: setup.chunk_rows,
    })
}

/// Work in ns at these prices of the devices, whose sum is 1.
fn priced(needs: &Needs, prices: &[f64]) -> f64 {
    let least = |times: &[Option<Duration>]| {
        let priced = times
            .iter()
            .zip(prices)
            .filter_map(|(time, price)| Some((*time)?.as_nanos() as f64 * price));
        priced.fold(f64::MAX, f64::min)
    };
    needs.blocks.iter().map(|block| f64::from(block.count) * least(&block.times)).sum()
}

#[test]
fn no_route_is_predicted_to_be_faster_than_the_bound() {
    for (model, names) in [
        ("llama", "cpu gpu npu"),
        ("llama", "cpu gpu"),
        ("gemma3", "gpu npu"),
        ("qwen3", "cpu npu"),
    ] {
        let setup = Setup::new(model, names);
        let mut planner = planner(&setup);
        let mut routes = 0;
        let shapes = [prefill(31), prefill(135), prefill(300), prefill(1000), decode(1), decode(5)];
        for shape in shapes {
            let needs = planner.needs(&shape.batch()).expect("several devices");
            let devices = setup.devices.len();
            let mut prices = vec![vec![1.0 / devices as f64; devices]];
            for device in 0..devices {
                let rest = 0.2 / (devices - 1) as f64;
                prices.push(
                    (0..devices).map(|other| if other == device { 0.8 } else { rest }).collect(),
                );
            }
            let area = prices.iter().map(|prices| priced(&needs, prices)).fold(0.0, f64::max);
            let path = needs.path.as_nanos() as f64;
            assert!(area > 0.0 && path > 0.0, "{needs:?}");
            for strategy in all(&StrategyOptions::default()) {
                let Ok(route) = setup.route(&*strategy, shape) else { continue };
                let time = alone(&setup.input(), &shape, &route).makespan.as_nanos() as f64;
                let what = format!("{} of {shape:?} on {names}", strategy.name());
                assert!(
                    area <= 1.001 * time && path <= 1.001 * time,
                    "{what}: {area} {path} {time}"
                );
                routes += 1;
            }
        }
        assert!(routes > 40, "{routes} routes");
    }
}

#[test]
fn an_op_has_no_time_on_a_device_that_cannot_run_it() {
    let setup = Setup::new("llama", "cpu npu");
    let needs = planner(&setup).needs(&prefill(64).batch()).expect("several devices");
    let on =
        |device: usize| needs.blocks.iter().filter(|block| block.times[device].is_some()).count();
    assert!(on(0) == needs.blocks.len() && (1..on(0)).contains(&on(1)), "{needs:?}");
    let count: u32 = needs.blocks.iter().map(|block| block.count).sum();
    assert!(count as usize <= setup.graph.nodes().len(), "{needs:?}");
    assert_eq!(planner(&Setup::new("llama", "cpu")).needs(&prefill(64).batch()), None);
}

#[test]
fn several_sequences_need_no_more_than_one_as_long() {
    let setup = Setup::new("llama", "cpu gpu");
    let mut planner = planner(&setup);
    let shape = ChunkShape { phase: Phase::Decode, rows: 2, selected: 2, context: 96, prompt: 0 };
    let one = planner.needs(&shape.batch()).expect("several devices");
    let mut two = Batch::default();
    two.push(&[0], 96, Vec::new(), 0..1);
    two.push(&[0], 3000, Vec::new(), 0..1);
    let two = planner.needs(&two).expect("several devices");
    assert!(priced(&two, &[0.5, 0.5]) <= priced(&one, &[0.5, 0.5]));
}

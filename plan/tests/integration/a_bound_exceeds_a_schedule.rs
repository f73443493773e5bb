//! Lower bounds that a schedule beats.

use std::sync::Arc;
use std::time::Duration;

use lapwing_plan::bound::{area_at, lower_bound, work_of_prompts};
use lapwing_plan::cost::Modelled;
use lapwing_plan::predict::{PlannedChunk, Workload, plan, predict_warm};
use lapwing_plan::rate::{RateModel, Rates};
use lapwing_plan::strategy::{StrategyOptions, all};
use lapwing_plan::time::{FixedRate, TimeModel};
use proptest::prelude::*;

use crate::setup::Setup;

/// How devices take their time.
#[derive(Clone, Copy, Debug)]
enum Laws {
    /// Of operations alone.
    Operations,
    /// Of operations or bytes.
    Roofline,
    /// Of rows, whatever is computed.
    Rows,
}

fn setup(names: &str, laws: Laws, chunk_rows: usize) -> Setup {
    let mut setup = Setup { chunk_rows, ..Setup::new("llama", names) };
    let count = setup.devices.len();
    let graph = &setup.graph;
    let model = |at: usize| -> Arc<dyn TimeModel> {
        let factor = 1.0 + at as f64;
        let (gflops, gbps) = (1e-3 * factor, 2e-3 / factor);
        let rates = Rates { gflops, gbps, ..Rates::GPU };
        let (per_stage, per_row) = (Duration::from_micros(20), Duration::from_micros(9));
        match laws {
            Laws::Rows => Arc::new(FixedRate { per_stage, per_row }),
            _ => Arc::new(RateModel::new(Arc::clone(graph), rates).expect("rates")),
        }
    };
    if !matches!(laws, Laws::Operations) {
        let devices = (0..count).map(model).collect();
        setup.cost = Modelled { devices, ..setup.cost };
    }
    setup
}

fn laws() -> impl Strategy<Value = Laws> {
    prop_oneof![Just(Laws::Operations), Just(Laws::Roofline), Just(Laws::Rows)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_schedule_ends_before_the_bound(
        names in prop_oneof![Just("cpu"), Just("cpu gpu"), Just("cpu npu"), Just("cpu gpu npu")],
        laws in laws(),
        prompts in proptest::collection::vec(1..700_usize, 1..4),
        chunk_rows in prop_oneof![Just(32_usize), Just(100), Just(256), Just(1024)],
        in_flight in 1..6_usize,
        prices in [0.001..1.0_f64, 0.001..1.0, 0.001..1.0],
    ) {
        let setup = setup(names, laws, chunk_rows);
        let input = setup.input();
        let work = work_of_prompts(&input, &prompts);
        let bound = lower_bound(&work).time();
        let other = area_at(&work, &prices[..setup.devices.len()]);
        prop_assert!(bound > Duration::ZERO);
        for strategy in all(&StrategyOptions::default()) {
            let chunks = |prompt: &usize| {
                let work = Workload { prompt: *prompt, context: 0, in_flight };
                plan(&*strategy, &input, work)
            };
            let chunks: Result<Vec<Vec<PlannedChunk>>, _> = prompts.iter().map(chunks).collect();
            let Ok(chunks) = chunks else { continue };
            let time = predict_warm(&input, &chunks.concat(), in_flight).makespan;
            prop_assert!(bound <= time, "{}: {time:?}, but at least {bound:?}", strategy.name());
            prop_assert!(other <= time.as_nanos() as f64, "{}: {time:?} {other}", strategy.name());
        }
    }
}

#[test]
fn a_device_alone_is_close_to_its_bound() {
    let setup = setup("cpu", Laws::Operations, 512);
    let input = setup.input();
    let bound = lower_bound(&work_of_prompts(&input, &[1000, 300])).time();
    let strategy = &all(&StrategyOptions::default())[0];
    let chunks = |prompt| {
        let work = Workload { prompt, context: 0, in_flight: 1 };
        plan(&**strategy, &input, work).expect("a route")
    };
    let time = predict_warm(&input, &[chunks(1000), chunks(300)].concat(), 1).makespan;
    let ratio = time.as_secs_f64() / bound.as_secs_f64();
    assert!((1.0..1.02).contains(&ratio), "{ratio}");
}

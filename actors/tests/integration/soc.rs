//! Modelled systems on a chip: published figures, and laws that hold for every system.

use std::sync::Arc;

use lapwing_actors::drive::soc::{SocModel, SocOptions, SocOutcome, SocSimulation};
use lapwing_actors::plan::soc::{Soc, SyncMode};
use lapwing_actors::plan::strategy::{StrategyOptions, by_name};
use lapwing_kernels::model::shape::ModelShape;

pub(crate) fn model(name: &str) -> SocModel {
    let shape = ModelShape::by_name(name).expect("a known shape");
    SocModel::of_shape(shape).expect("a model")
}

pub(crate) fn run(model: &SocModel, soc: &Soc, strategy: &str, options: &SocOptions) -> SocOutcome {
    let strategy = by_name(strategy, &StrategyOptions::default()).expect("is known");
    let simulation = SocSimulation::new(model, soc, &strategy, options).expect("a route");
    simulation.run().expect("an outcome")
}

#[test]
#[ignore]
fn print() {
    let m = model("llama-3-8b");
    let soc = Soc::preset("sd8gen3").expect("a preset");
    for sync in [SyncMode::Fast, SyncMode::Slow] {
        for (strategy, prompt) in [
            ("gpu-only", 256),
            ("layer-level", 256),
            ("layer-level", 1024),
            ("tensor-level", 256),
            ("tensor-level", 1024),
            ("tensor-level", 525),
            ("npu-padding", 525),
            ("pipe", 525),
            ("online-prepare", 525),
            ("online-prepare", 135),
            ("auto", 256),
        ] {
            let t = std::time::Instant::now();
            let o = run(&m, &soc, strategy, &SocOptions { prompt, sync, ..Default::default() });
            let d = o.decode.as_ref().unwrap();
            println!(
                "{sync:?} {strategy} {prompt}: {:.2} ms {:.2} tok/s, decode {:.2} tok/s, {:.2} W {:.2} W, ho {} m {} dec ho {} m {} | lb {:.1} mk {:.1} {:?}",
                o.prefill_ms,
                o.prefill_tokens_per_second,
                o.decode_tokens_per_second.unwrap(),
                o.prefill.power_w,
                d.power_w,
                o.prefill.hand_overs,
                o.prefill.merges,
                d.hand_overs / 32,
                d.merges / 32,
                o.lower_bound_ms,
                o.makespan_ms,
                t.elapsed()
            );
        }
    }
    let _ = Arc::new(0);
}

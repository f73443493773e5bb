//! Modelled systems on a chip: published figures, and laws that hold for every system.

use std::sync::Arc;

use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::soc::{SocModel, SocOptions, SocOutcome, SocSimulation};
use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::model::shape::ModelShape;
use lapwing_plan::soc::Soc;
use lapwing_plan::strategy::{Strategy, StrategyOptions, by_name};
use lapwing_traces::analysis::IdleCause;
use lapwing_traces::{Analysis, Timeline};

mod closed_forms;
mod descriptions;
mod figures;
mod form;
mod laws;
mod own;
mod random;
mod values;

fn model(name: &str) -> SocModel {
    SocModel::of_shape(ModelShape::by_name(name).expect("a known shape")).expect("a model")
}

/// A model of the shape with two layers only, which have every kind of border.
fn short(shape: &ModelShape) -> SocModel {
    SocModel::of_shape(&ModelShape { layers: 2, ..shape.clone() }).expect("a model")
}

fn sd8gen3() -> Soc {
    Soc::preset("sd8gen3").expect("a preset")
}

fn try_run(
    model: &SocModel,
    soc: &Soc,
    strategy: &str,
    options: &SocOptions,
) -> Result<SocOutcome, SocRunError> {
    SocSimulation::new(model, soc, &named(strategy), options)?.run()
}

fn named(strategy: &str) -> Arc<dyn Strategy> {
    by_name(strategy, &StrategyOptions::default()).expect("is known")
}

fn run(model: &SocModel, soc: &Soc, strategy: &str, options: &SocOptions) -> SocOutcome {
    try_run(model, soc, strategy, options).expect("an outcome")
}

fn of(prompt: usize) -> SocOptions {
    SocOptions { prompt, ..SocOptions::default() }
}

fn near(what: &str, found: f64, published: f64, tolerance: f64) {
    let error = found / published - 1.0;
    assert!(error.abs() <= tolerance, "{what}: {found:.3} against {published}: {error:+.3}");
}

fn zero_cost() -> Soc {
    let mut soc = Soc::preset("ideal").expect("a preset");
    soc.set("gpu.element_kernel", 0.0).expect("a number");
    soc
}

#[test]
fn two_runs_differ_or_depend_on_the_order_of_devices() {
    let mut soc = sd8gen3();
    soc.set("noise.spread", 0.05).expect("a number");
    let model = short(&ModelShape::all()[0]);
    for strategy in ["gpu-only", "tensor-level", "pipe", "chunk-graph", "sequence-cut"] {
        let options = |devices: &[DeviceKind]| SocOptions {
            devices: devices.to_vec(),
            record: true,
            renderer: true,
            seed: 7,
            decode: 5,
            ..of(300)
        };
        let (cpu, gpu, npu) = (DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Npu);
        let outcome = |devices: &[DeviceKind]| run(&model, &soc, strategy, &options(devices));
        let mut first = outcome(&[gpu, npu, cpu]);
        assert!(first == outcome(&[gpu, npu, cpu]), "{strategy}");
        // Its lanes are in the order of the devices.
        first.recording = None;
        for order in [[npu, gpu, cpu], [gpu, cpu, npu], [npu, cpu, gpu]] {
            let other = SocOutcome { recording: None, ..outcome(&order) };
            assert_eq!(first, other, "{strategy} {order:?}");
        }
        let seeded = SocOptions { seed: 8, ..options(&[gpu, npu, cpu]) };
        let seeded = run(&model, &soc, strategy, &seeded);
        assert_ne!(first.makespan_ms, seeded.makespan_ms, "{strategy}: noise does nothing");
    }
}

#[test]
fn rows_that_are_verified_together_are_computed_apart() {
    let (llama, soc) = (model("llama-3-8b"), sd8gen3());
    for strategy in ["gpu-only", "tensor-level"] {
        let outcome = |verify| {
            let options = SocOptions { verify, decode: 6, record: true, ..of(256) };
            run(&llama, &soc, strategy, &options)
        };
        let (one, five) = (outcome(1), outcome(5));
        assert_eq!(one.prefill, five.prefill, "{strategy}: it is one prompt");
        let (step, steps) = (one.decode_ms.expect("steps"), five.decode_ms.expect("steps"));
        near("rate", five.decode_tokens_per_second.expect("steps"), 5.0 / steps * 1e3, 1e-9);
        assert!(steps > step && steps < 5.0 * step, "{strategy}: {steps} {step}");
        assert_eq!(five.tokens.len(), 1 + 6 * 5, "{strategy}: a draft is accepted as a whole");
        let recording = five.recording.as_ref().expect("a recording");
        let timeline = Timeline::new(recording);
        let none = Analysis::new(&timeline).gaps.iter().all(|gap| gap.cause != IdleCause::Unknown);
        assert!(none, "{strategy}: an idle nanosecond has no cause");
    }
    // Weights, keys and values are read once for all rows.
    let bytes = |verify| {
        let options = SocOptions { verify, decode: 6, ..of(256) };
        run(&llama, &soc, "gpu-only", &options).decode.expect("steps").gigabytes
    };
    assert!(bytes(5) < 1.02 * bytes(1), "{} {}", bytes(5), bytes(1));
}

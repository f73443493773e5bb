//! Fits to runs whose numbers are known.

use std::time::Duration;

use lapwing_engine::devices::DeviceSpec;
use lapwing_engine::profile::Profile;
use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;
use lapwing_plan::profile::{DeviceProfile, Machine as MachineIdentity, Sample, Spread, VERSION};
use lapwing_plan::shape::OpShape;

use super::*;

/// Runs whose times are those of a machine with other numbers, in which `stranger` takes `factor` times as long.
fn calibration(stranger: Option<(&str, f64)>) -> (Calibration, Machine) {
    let machine = Machine::of_devices("phone", DeviceSpec::list("phone").expect("devices"));
    let machine = machine.expect("a machine");
    let mut truth = machine.clone();
    truth.set("hand_over", 150.0).expect("a number");
    truth.set("gpu.gflops", 9.0).expect("a number");
    truth.set("gpu.gbps", 7.2).expect("a number");
    let model = "layers=4,dim=256,ffn=768,heads=4,vocab=1024".to_owned();
    let names = ["cpu-only", "gpu-only", "pipe", "row-cut", "tensor-level", "online-prepare"];
    let run = |strategy: &str| MeasuredRun {
        strategy: strategy.to_owned(),
        prompt: 64,
        is_warm: strategy != "online-prepare",
        ttft_ms: 0.0,
        tpot_ms: None,
    };
    let runs = names.map(run).to_vec();
    let planned = Planned::Machine(Arc::new(machine.clone()));
    let mut calibration =
        Calibration { machine, model, decode: 4, runs, infos: Vec::new(), planned };
    let times = calibration.runs.iter().map(|run| calibration.simulated(&truth, run));
    let times: Vec<Simulated> = times.map(|time| time.expect("a run")).collect();
    let tpots: Vec<Option<f64>> = times.iter().map(|time| calibration.tpot(time)).collect();
    for ((run, time), tpot) in calibration.runs.iter_mut().zip(&times).zip(tpots) {
        let factor = stranger.filter(|(name, _)| run.strategy == *name).map_or(1.0, |it| it.1);
        (run.ttft_ms, run.tpot_ms) = (time.prefill_ms * factor, tpot.map(|it| it * factor));
    }
    (calibration, truth)
}

#[test]
fn numbers_that_made_the_times_are_found_and_predict_a_strategy_never_seen() {
    let (calibration, truth) = calibration(None);
    let found = calibration.fit(&[]).expect("a fit");
    for key in ["hand_over", "gpu.gflops", "gpu.gbps", "cpu.gflops", "npu.gflops"] {
        let [found, truth] = [&found, &truth].map(|it| it.value(key).expect("a number"));
        assert!((found / truth - 1.0).abs() < 0.03, "{key}: {found} for {truth}");
    }
    // Without it, others say little of the CPU, which only helps them.
    for strategy in calibration.strategies().into_iter().filter(|name| *name != "cpu-only") {
        for left in calibration.predicted(strategy, &[strategy]).expect("predictions") {
            assert!(left.ttft_ms.error.abs() < 0.05, "{left:?}");
            assert!(left.tpot_ms.expect("a step").error.abs() < 0.05, "{left:?}");
        }
    }
}

#[test]
fn a_strategy_that_is_left_out_says_nothing_about_its_own_prediction() {
    let [plain, slow] = [None, Some(("tensor-level", 2.0))].map(|stranger| {
        let (calibration, _) = calibration(stranger);
        calibration.predicted("tensor-level", &["tensor-level"]).expect("predictions")
    });
    assert_eq!(plain[0].ttft_ms.predicted, slow[0].ttft_ms.predicted);
    assert!((slow[0].ttft_ms.error + 0.5).abs() < 0.03, "{slow:?}");
    let (one, _) = calibration(None);
    assert!(one.fit(&one.strategies()).is_err(), "nothing is left");
}

const MODEL: &str = "layers=4,dim=256,ffn=768,heads=4,vocab=1024";

/// A profile of devices whose products take so many ns by device, weights and rows.
fn profile(names: &[&str], law: impl Fn(usize, usize, usize) -> usize) -> Profile {
    let mut scenario = Scenario::new("sd8gen3").expect("a preset");
    scenario.model = MODEL.to_owned();
    let graph = scenario.load_model().expect("a model").0.graph;
    let once = |ns: usize| Spread::of(&[Duration::from_nanos(ns as u64)]).expect("a time");
    let device = |(at, name): (usize, &&str)| {
        let mut samples = Vec::new();
        for (node, op) in graph.nodes().iter().enumerate() {
            if matches!(op.op, Op::MatMul { .. }) {
                let shape = OpShape::of(&graph, node, &Part::WHOLE);
                for m in [1, 16, 64, 256] {
                    let time = once(law(at, shape.n * shape.k, m));
                    samples.push(Sample { shape: shape.clone(), m, context: 0, time });
                }
            }
        }
        DeviceProfile {
            name: (*name).to_owned(),
            kind: (*name).to_owned(),
            description: String::new(),
            submit_idle_ns: 5000,
            submit_queued_ns: 1000,
            crossing_ns: 300,
            convert_ns_per_byte: 0.0,
            prepares: Vec::new(),
            asked: samples.len(),
            samples,
        }
    };
    let [cpu, isa, os] = ["a", "b", "c"].map(str::to_owned);
    Profile {
        version: VERSION,
        program: "0.1.0".to_owned(),
        machine: MachineIdentity { cpu, cores: 2, isa, os },
        model: MODEL.to_owned(),
        chunk_rows: 256,
        devices: names.iter().enumerate().map(device).collect(),
        sync: once(20_000),
        copy_bytes_per_second: 1e9,
    }
}

#[test]
fn ops_of_a_profile_take_their_measured_times_and_a_slower_device_is_found() {
    // No rate of arithmetic and of memory has these times: a row costs what it costs, and each product 30 µs.
    let law = |device: usize, weights: usize, rows: usize| {
        30_000 + weights * (2 + rows) / if device == 0 { 4 } else { 9 }
    };
    let profile = profile(&["cpu", "gpu"], law);
    let machine = Machine::of_profile("measured", &profile).expect("rates");
    let run = |strategy: &str| MeasuredRun {
        strategy: strategy.to_owned(),
        prompt: 64,
        is_warm: true,
        ttft_ms: 0.0,
        tpot_ms: None,
    };
    let runs = ["cpu-only", "gpu-only", "row-cut", "layer-split"].map(run).to_vec();
    let kinds = [("cpu", DeviceKind::Cpu), ("gpu", DeviceKind::Gpu)];
    let infos = kinds.map(|(name, kind)| DeviceInfo::new(name, kind)).to_vec();
    let (planned, model) = (Planned::Machine(Arc::new(machine.clone())), MODEL.to_owned());
    let plain = Calibration { machine: machine.clone(), model, decode: 4, runs, infos, planned };
    let mut measured = plain.with_profile(&profile).expect("of these devices");

    let alone = measured.simulated(&machine, &measured.runs[0]).expect("a run");
    let step = measured.tpot(&alone).expect("steps") * 1e6;
    let products = profile.devices[0].samples.iter().filter(|sample| sample.m == 1);
    let sum: f64 = products.map(|sample| sample.time.median_ns as f64).sum();
    assert!(step >= 0.99 * sum, "{step} ns in all, {sum} ns of products");

    let mut truth = machine.clone();
    for key in ["gpu.gflops", "gpu.gbps"] {
        truth.set(key, machine.value(key).expect("a number") / 2.0).expect("a number");
    }
    for at in 0..measured.runs.len() {
        let time = measured.simulated(&truth, &measured.runs[at]).expect("a run");
        measured.runs[at].tpot_ms = measured.tpot(&time);
        measured.runs[at].ttft_ms = time.prefill_ms;
    }
    let found = measured.fit(&["row-cut"]).expect("a fit");
    let ratio =
        found.value("gpu.gflops").expect("a number") / truth.value("gpu.gflops").expect("a number");
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    let left = measured.predicted("row-cut", &["row-cut"]).expect("predictions");
    assert!(left[0].ttft_ms.error.abs() < 0.05, "{left:?}");
}

#[test]
fn a_profile_of_other_devices_is_refused() {
    let (plain, _) = calibration(None);
    let error =
        plain.with_profile(&profile(&["gpu"], |_, weights, _| weights)).expect_err("others");
    assert!(error.to_string().contains("the profile is of gpu"), "{error}");
}

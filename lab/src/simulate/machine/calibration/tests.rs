//! Fits to runs whose numbers are known.

use super::*;
use lapwing_engine::devices::DeviceSpec;

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
    let mut calibration = Calibration { machine, model, decode: 4, runs };
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

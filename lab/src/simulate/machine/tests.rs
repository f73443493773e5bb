//! Tests of machines.

use super::super::processors::Processors;
use super::super::scenario::Scenario;
use super::*;

mod own_memory;

fn phone() -> Machine {
    let specs = DeviceSpec::list("phone").expect("devices");
    Machine::of_devices("phone", specs).expect("a machine")
}

#[test]
fn numbers_survive_the_file() {
    let specs = DeviceSpec::list(
        "cpu=throttled:gflops=8,gbps=6+gpu=throttled:gflops=24,gbps=8,sync=31us+\
         npu=systolic:gflops=72,gbps=6,floor=0.25,sizes=32-256",
    )
    .expect("devices");
    let machine = Machine::of_devices("a", specs.clone()).expect("a machine");
    let read = Machine::from_toml(&machine.to_toml().expect("text")).expect("its own text");
    assert_eq!(read.specs().expect("devices"), specs);
}

#[test]
fn the_preset_phone_has_the_devices_of_that_name() {
    let preset = Machine::preset("phone").expect("valid").expect("is there");
    assert_eq!(preset.specs().expect("devices"), phone().specs().expect("devices"));
    let shared = |machine: &Machine| (machine.hand_over.value, machine.copy.value);
    assert_eq!(shared(&preset), shared(&phone()));
}

#[test]
fn wrong_numbers_are_rejected() {
    let text = phone().to_toml().expect("text");
    let wrong = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        Machine::from_toml(&changed).expect_err(to).to_string()
    };
    assert!(wrong("GFLOP/s", "TFLOP/s").contains("GFLOP/s"));
    assert!(wrong("numbers.gflops", "numbers.speed").contains("speed"));
    assert!(wrong("=throttled", "=steamed").contains("steamed"));
    assert!(wrong("value = 10.0", "value = 0.0").contains("gflops"));
    assert!(Machine::of_devices("cpu", vec![DeviceSpec::cpu()]).is_err());
}

/// Decode on the default phone. The row cut gives each processor as many output channels as it computes
/// in the time of the others. With graphs of 32 rows only, the array computes 31 rows of padding for each
/// token.
#[test]
fn a_decode_step_on_the_npu_is_not_padded() {
    let ms = |devices: &str, strategy: &str| {
        let specs = DeviceSpec::list(devices).expect("devices");
        let machine = Machine::of_devices("phone", specs).expect("a machine");
        let mut scenario = Scenario::on(Processors::Machine(machine));
        scenario.set("model", "llama-3.2-3b").expect("a model");
        scenario.set("strategy", strategy).expect("a strategy");
        (scenario.prompt, scenario.decode) = (32, 4);
        scenario.run().expect("a run").decode_ms.expect("steps") / 4.0
    };
    let standard = "cpu=throttled+gpu+npu=systolic:sizes=32-1024";
    let (alone, cut) = (ms("phone", "gpu-only"), ms("phone", "row-cut"));
    let padded = ms(standard, "row-cut");
    assert!(cut < 0.7 * alone, "row-cut {cut} ms, gpu-only {alone} ms");
    assert!(padded > 3.0 * cut, "in graphs of 32 rows {padded} ms, of one row {cut} ms");
}

#[test]
fn a_missing_number_is_an_error() {
    for key in ["gflops", "sync", "floor", "array", "prepare-gweight"] {
        let mut machine = phone();
        machine.device[2].numbers.remove(key);
        let error = Machine::from_toml(&machine.to_toml().expect("text")).expect_err(key);
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn set_changes_the_named_number() {
    let mut machine = phone();
    for (key, number) in phone().numbers() {
        machine.set(&key, number.value / 2.0).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(machine.value(&key).expect("is there"), number.value / 2.0, "{key}");
    }
    assert!(machine.set("gpu.floor", 0.5).is_err());
    assert!(machine.set("npu.floor", 1.5).is_err());
    assert_eq!(machine.value("npu.floor").expect("is there"), 1.0 / 12.0);
}

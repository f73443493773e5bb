//! Devices of the caller's own, and the choice of devices.

use std::time::Duration;

use lapwing_kernels::device::{DeviceInfo, DeviceKind, MemoryDomain, OpSet};
use lapwing_kernels::op::{Op, WeightId};
use lapwing_plan::soc::{PRESETS, Workload};
use lapwing_plan::strategy::registry;
use lapwing_plan::time::{Job, TimeModel};
use lapwing_traces::Timeline;

use super::*;
use crate::simulate::simulated::Simulated;

/// A model of two layers, which takes a moment.
const SMALL: &str = "layers=2,dim=1024,ffn=2816,heads=16,kv-heads=4,vocab=4096,bits=4";
const KIND: DeviceKind = DeviceKind::Own("memory");

/// The law of a processor in memory: the bytes of weights at its bandwidth, and a command for each node.
struct InMemory {
    workload: Workload,
    gb_per_s: f64,
    command: Duration,
}

impl TimeModel for InMemory {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        if job.crossed { Duration::from_micros(5) } else { Duration::ZERO }
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        let bytes = self.workload.work(job, node).weight_bytes;
        self.command + Duration::from_nanos((bytes / self.gb_per_s).round() as u64)
    }

    fn transfer_time(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes)
    }
}

fn info(name: &str) -> DeviceInfo {
    DeviceInfo::new(name, KIND)
}

fn in_memory(info: DeviceInfo, gb_per_s: f64) -> OwnDevice {
    OwnDevice::new(info, move |workload: &Workload| InMemory {
        workload: workload.clone(),
        gb_per_s,
        command: Duration::from_micros(2),
    })
}

/// Matmuls only.
fn matmuls() -> OpSet {
    OpSet::NONE.with(&Op::MatMul { weight: WeightId(0), bias: None })
}

fn base() -> Scenario {
    let mut scenario = Scenario::new("sd8gen3").expect("a preset");
    SMALL.clone_into(&mut scenario.model);
    (scenario.prompt, scenario.decode) = (40, 3);
    scenario
}

fn with(scenario: &Scenario, changes: &[(&str, &str)]) -> Scenario {
    let mut scenario = scenario.clone();
    changes.iter().for_each(|(key, value)| scenario.set(key, value).expect(value));
    scenario
}

fn run(scenario: &Scenario, changes: &[(&str, &str)]) -> Simulated {
    with(scenario, changes).run().expect("a run")
}

fn used(run: &Simulated) -> Vec<&str> {
    run.devices.iter().filter(|device| device.runs > 0).map(|device| &*device.name).collect()
}

#[test]
fn a_run_on_a_device_of_ones_own_takes_the_time_of_its_law() {
    let device = in_memory(info("pim"), 100.0).with_power(2.0);
    let scenario = base().own_device(device).devices(["pim"]).expect("a device");
    let graph = scenario.load_model().expect("a model").0.graph;
    let matmul = |node: &lapwing_kernels::graph::Node| match node.op {
        Op::MatMul { weight, .. } => {
            let weight = &graph.weights()[weight.0];
            (weight.rows * weight.cols) as f64 / 2.0 / 100.0
        }
        _ => 0.0,
    };
    let nanos: f64 = graph.nodes().iter().map(|node| 2000.0 + matmul(node).round()).sum();
    for strategy in ["auto-place", "layer-split", "tensor-level", "barrier-per-op", "auto"] {
        let found = run(&scenario, &[("strategy", strategy)]);
        // The prompt and each step read all weights once; nothing else takes time.
        let law = 4.0 * nanos / 1e6;
        assert!((found.makespan_ms - law).abs() < 1e-9, "{strategy}: {} {law}", found.makespan_ms);
        assert_eq!(used(&found), ["pim"], "{strategy}");
        let joules = (0.5 + 2.0) * law / 1e3;
        let energy = found.energy_j.expect("known powers");
        assert!((energy - joules).abs() < 1e-9, "{strategy}: {energy} {joules}");
    }
    let unknown = base().own_device(in_memory(info("pim"), 100.0));
    assert_eq!(run(&unknown, &[]).energy_j, None, "its power is unknown");
}

/// A strategy gives a device work only where its law is the fastest.
#[test]
fn strategies_plan_with_the_law_that_drives_the_device() {
    for (gb_per_s, wins) in [(1000.0, true), (0.1, false)] {
        let device = in_memory(info("pim").with_ops(matmuls()), gb_per_s);
        let scenario = base().own_device(device);
        for strategy in ["auto-place", "tensor-level", "barrier-per-op"] {
            let found = run(&scenario, &[("strategy", strategy)]);
            let names = used(&found);
            assert_eq!(names.contains(&"pim"), wins, "{strategy} {gb_per_s}: {names:?}");
        }
        let by_role = run(&scenario, &[("strategy", "layer-level")]);
        assert!(!used(&by_role).contains(&"pim"), "it has no role by its kind");
    }
}

#[test]
fn values_cross_into_a_memory_of_its_own() {
    let made = |info: DeviceInfo| base().own_device(in_memory(info.with_ops(matmuls()), 1000.0));
    let own = info("pim").with_queue(MemoryDomain::Device(1), 3);
    let transfers = |scenario: &Scenario| {
        let (_, recording) = scenario.record().expect("a run");
        let timeline = Timeline::new(&recording);
        let names = timeline.spans.iter().filter(|span| span.name == "transfer");
        names.map(|span| (span.tags.bytes, span.duration())).collect::<Vec<_>>()
    };
    let scenario = |info| with(&made(info), &[("strategy", "auto-place")]);
    assert_eq!(transfers(&scenario(info("pim"))), []);
    let crossing = transfers(&scenario(own));
    assert!(!crossing.is_empty());
    assert!(crossing.iter().all(|(bytes, nanos)| bytes == nanos), "a byte each ns: {crossing:?}");
}

#[test]
fn an_own_device_with_graphs_runs_its_sizes_only() {
    let device =
        in_memory(info("array").with_ops(OpSet::STATIC).with_graphs(vec![1, 64], None), 1e4);
    assert!(device.info().is_static());
    let scenario = with(&base().own_device(device), &[("strategy", "auto-place")]);
    let (found, _) = scenario.record().expect("a run");
    assert!(used(&found).contains(&"array"), "{found:?}");
}

#[test]
fn the_cpu_and_the_npu_of_every_preset_run_every_strategy_that_needs_no_gpu() {
    for (preset, _) in PRESETS {
        let scenario = with(&base(), &[("soc", preset), ("device", "cpu+npu"), ("prompt", "300")]);
        for strategy in registry().iter().map(|entry| entry.name()) {
            let found = with(&scenario, &[("strategy", strategy)]).run();
            if strategy == "gpu-only" {
                let error = found.expect_err("no GPU is chosen").to_string();
                assert!(error.contains("needs a device of kind gpu"), "{error}");
                continue;
            }
            let found = found.unwrap_or_else(|error| panic!("{preset} {strategy}: {error}"));
            let names: Vec<&str> = found.devices.iter().map(|device| &*device.name).collect();
            assert_eq!(names, ["cpu", "npu"], "{strategy}");
        }
        let game = with(&scenario, &[("interference", "game")]).run();
        assert!(game.expect_err("no GPU draws").to_string().contains("no device is a GPU"));
    }
}

#[test]
fn an_impossible_choice_names_the_nearest_device() {
    let mut scenario = base().own_device(in_memory(info("memory"), 100.0));
    assert_eq!(scenario.device_names(), ["gpu", "npu", "cpu", "memory"]);
    for (text, says) in [
        ("gpuu+npu", "did you mean gpu?"),
        ("memroy", "did you mean memory?"),
        ("tpu+", "one of gpu, npu, cpu, memory"),
        ("gpu+npu+gpu", "'gpu' is given twice"),
        ("x=cores", "no device 'x'"),
        ("dsp=opencl", "throttled or systolic"),
        ("dsp=throttled:gflops=0", "gflops"),
    ] {
        let error = scenario.set("device", text).map(|()| text.to_owned());
        let error = error.map_err(|error| error.to_string());
        if text == "x=cores" {
            assert!(error.is_err(), "it states no times");
            continue;
        }
        let error = error.expect_err(text);
        assert!(error.contains(says), "{text}: {error}");
    }
    assert_eq!(scenario.chosen_devices(), None, "a refused choice changes nothing");
    let twice = scenario.own_device(in_memory(info("memory"), 1.0));
    assert!(twice.run().expect_err("two of one name").to_string().contains("given twice"));
}

#[test]
fn an_own_device_takes_the_place_of_one_with_its_name() {
    let fast = |info| {
        OwnDevice::new(info, |workload: &Workload| InMemory {
            workload: workload.clone(),
            gb_per_s: 1e6,
            command: Duration::ZERO,
        })
    };
    let gpu = DeviceInfo::new("gpu", DeviceKind::Gpu);
    let scenario = with(&base(), &[("strategy", "gpu-only")]);
    let other = scenario.clone().own_device(fast(gpu));
    let (before, after) = (run(&scenario, &[]), run(&other, &[]));
    assert!(after.makespan_ms < before.makespan_ms / 100.0, "{before:?} {after:?}");
    assert_eq!(used(&after), ["gpu"]);
    assert_ne!(scenario.key(), other.key(), "they are other runs");
    assert_eq!(other.key(), other.clone().key());
}

#[test]
fn a_text_describes_a_device_by_the_rates_of_a_live_one() {
    let text = "gpu+npu+slow=throttled:kind=cpu,gflops=0.001,gbps=0.001";
    let slow = run(&base(), &[("device", text), ("strategy", "auto-place")]);
    assert_eq!(slow.devices.len(), 3);
    assert!(!used(&slow).contains(&"slow"), "{slow:?}");
    let fast = text.replace("0.001", "1e9") + ",submit=0,idle-submit=0,sync=0";
    let fast = run(&base(), &[("device", &fast), ("strategy", "auto-place")]);
    assert_eq!(used(&fast), ["slow"], "{fast:?}");
}

#[test]
fn devices_of_a_machine_are_chosen_and_joined_by_own_ones() {
    let machine =
        crate::simulate::Machine::of_devices("phone", DeviceSpec::list("phone").expect("devices"));
    let mut scenario = Scenario::on(machine.expect("a machine"));
    SMALL.clone_into(&mut scenario.model);
    (scenario.prompt, scenario.decode) = (40, 2);
    let chosen = run(&scenario, &[("device", "cpu+npu"), ("strategy", "chunk-graph")]);
    assert_eq!(used(&chosen), ["cpu", "npu"]);
    let own = scenario.clone().own_device(in_memory(info("pim"), 1e6));
    let joined = run(&own, &[("strategy", "auto-place")]);
    assert_eq!(joined.devices.len(), 4);
    assert!(used(&joined).contains(&"pim"), "{joined:?}");
    let alone = run(&own, &[("device", "pim"), ("strategy", "layer-split")]);
    assert_eq!(used(&alone), ["pim"]);
}

#[test]
fn a_law_that_does_not_hold_fails_the_run_with_its_reason() {
    let device = OwnDevice::with_law(info("pim"), |_: &Workload| Err("measured for another model"));
    let error = base().own_device(device).run().expect_err("no law").to_string();
    assert!(error.contains("'pim'") && error.contains("measured for another model"), "{error}");
}

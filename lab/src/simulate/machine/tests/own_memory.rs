//! Devices with a memory of their own, in virtual time.

use super::super::super::scenario::Scenario;
use super::super::super::simulated::Simulated;
use lapwing_engine::devices::Rates;

use super::*;

/// A model with experts on the laptop.
fn laptop(strategy: &str, prompt: usize) -> Scenario {
    let mut scenario = Scenario::new("laptop").expect("a preset");
    for (key, value) in [("model", "qwen3-30b-a3b"), ("strategy", strategy), ("chunk", "128")] {
        scenario.set(key, value).expect(key);
    }
    (scenario.prompt, scenario.decode) = (prompt, 2);
    scenario
}

fn busy(run: &Simulated, name: &str) -> f64 {
    run.devices.iter().find(|device| device.name == name).expect("a device").busy_ms
}

#[test]
fn the_emulated_laptop_is_a_thousandth_of_the_preset() {
    let preset = Machine::preset("laptop").expect("valid").expect("is there").specs();
    let emulated = DeviceSpec::list("laptop").expect("devices");
    for (full, small) in preset.expect("devices").iter().zip(&emulated) {
        assert_eq!((&full.name, full.kind), (&small.name, small.kind));
        let near = |a: f64, b: f64| assert!((a / b / 1000.0 - 1.0).abs() < 1e-9, "{a} {b}");
        let [a, b] = [full, small].map(|spec| *spec.rates().expect("rates"));
        near(a.gflops, b.gflops);
        near(a.gbps, b.gbps);
        let fixed = |rates: Rates| (rates.submit_queued, rates.submit_idle, rates.sync);
        assert_eq!(fixed(a), fixed(b));
        assert_eq!(full.memory.is_some(), small.memory.is_some());
        if let (Some(a), Some(b)) = (full.memory, small.memory) {
            near(a.bytes as f64, b.bytes as f64);
            near(a.link.gbps, b.link.gbps);
            assert_eq!(a.link.latency, b.link.latency);
        }
    }
    let machine = Machine::of_devices("laptop", emulated.clone()).expect("a machine");
    let read = Machine::from_toml(&machine.to_toml().expect("text")).expect("its own text");
    assert_eq!(read.specs().expect("devices"), emulated);
    let mut wrong = machine;
    let memory = wrong.device[1].numbers["memory"].clone();
    wrong.device[0].numbers.insert("memory".to_owned(), memory);
    assert!(wrong.specs().expect_err("a CPU").to_string().contains("no number 'memory'"));
}

#[test]
fn what_is_too_large_for_the_gpu_is_refused_and_auto_places_within_its_memory() {
    let alone = laptop("gpu-only", 256).run().expect_err("17 GB in 8 GB").to_string();
    assert!(alone.contains("'gpu' needs") && alone.contains("bytes of weights"), "{alone}");
    let run = |strategy: &str| laptop(strategy, 256).run().expect("a run");
    let (cpu, placed, auto) = (run("cpu-only"), run("auto-place"), run("auto"));
    assert!(busy(&placed, "gpu") > 0.0 && busy(&placed, "cpu") > 0.0, "{placed:?}");
    assert!(placed.makespan_ms < 0.75 * cpu.makespan_ms, "{placed:?} {cpu:?}");
    assert!(auto.makespan_ms <= 1.05 * placed.makespan_ms, "{auto:?} {placed:?}");
    let mut large = laptop("gpu-only", 256);
    large.set("gpu.memory", "24").expect("a number");
    let large = large.run().expect("it fits into 24 GB");
    assert!(large.makespan_ms < placed.makespan_ms && busy(&large, "cpu") == 0.0);
    assert_eq!(run("auto-place"), placed, "virtual time has no dice");
}

/// One processor takes attention of a chunk while the other has the experts of the chunk before it.
#[test]
fn chunks_in_flight_overlap_on_both_processors() {
    let mut scenario = laptop("auto-place", 2048);
    scenario.decode = 0;
    scenario.set("chunk", "512").expect("a setting");
    let mut run = |permits: &str| {
        scenario.set("permits", permits).expect("a setting");
        scenario.run().expect("a run")
    };
    let (one, four) = (run("1"), run("4"));
    assert!(one.overlap == 0.0, "one chunk runs on one device at a time: {one:?}");
    assert!(four.overlap > 0.0 && four.makespan_ms < one.makespan_ms, "{four:?}");
    assert!(four.makespan_ms < 1.05 * four.lower_bound_ms, "{four:?}");
}

#[test]
fn a_slower_link_makes_a_run_on_both_processors_longer() {
    let time = |link: &str| {
        let mut scenario = laptop("auto-place", 256);
        scenario.decode = 0;
        scenario.set("gpu.link", link).expect("a number");
        scenario.run().expect("a run").makespan_ms
    };
    assert!(time("12") < time("6") && time("6") < time("1"));
}

//! Devices of the caller's own beside the processors of a system.

use std::time::Duration;

use lapwing_actors::simulate::OwnDevice;
use lapwing_actors::simulate::soc::Fault;
use lapwing_kernels::device::{DeviceInfo, MemoryDomain, ModelId, OpSet};
use lapwing_kernels::op::{Op, WeightId};
use lapwing_plan::cost::{AsSimulated, Modelled};
use lapwing_plan::predict::{Workload as Prompt, plan, predict};
use lapwing_plan::soc::{SyncMode, Workload};
use lapwing_plan::strategy::PlanInput;
use lapwing_plan::time::{Job, TimeModel};

use super::*;

const KIND: DeviceKind = DeviceKind::Own("memory");

/// A nanosecond for each kilobyte of weights and for each byte that crosses, and two microseconds to start.
struct InMemory(Workload);

impl TimeModel for InMemory {
    fn overhead(&self, _: &Job<'_>) -> Duration {
        Duration::from_micros(2)
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        Duration::from_nanos((self.0.work(job, node).weight_bytes / 1024.0).round() as u64)
    }

    fn transfer_time(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes)
    }
}

/// A device that multiplies in a memory of its own.
fn in_memory(name: &str) -> OwnDevice {
    let matmuls = OpSet::NONE.with(&Op::MatMul { weight: WeightId(0), bias: None });
    let info = DeviceInfo::new(name, KIND).with_ops(matmuls);
    let info = info.with_queue(MemoryDomain::Device(7), 2);
    OwnDevice::new(info, |workload: &Workload| InMemory(workload.clone()))
}

#[test]
fn a_prediction_differs_from_the_run_of_an_own_device() {
    let model = short(&ModelShape::all()[0]);
    let mut soc = zero_cost();
    soc.set("memory.cap", 1e9).expect("a number");
    let kinds = [DeviceKind::Gpu, DeviceKind::Npu];
    let own = in_memory("pim");
    let mut devices = Soc::devices(&kinds);
    devices.push(own.info().clone());
    let models = soc.cost(&kinds, &model.workload, SyncMode::Fast);
    let mut times = models.devices.clone();
    times.push(own.times(&model.workload).expect("a law"));
    let models = Modelled { devices: times, ..models };
    let cost = AsSimulated { models, own: vec!["pim".to_owned()] };
    let input = PlanInput {
        model: ModelId::default(),
        graph: &model.workload.graph,
        devices: &devices,
        cost: &cost,
        chunk_rows: 64,
    };
    for strategy in ["auto-place", "barrier-per-op", "gpu-only"] {
        let options = SocOptions { own: vec![own.clone()], decode: 0, record: true, ..of(64) };
        let found = run(&model, &soc, strategy, &options);
        let work = Prompt { prompt: 64, context: 0, in_flight: options.in_flight };
        let chunks = plan(&*named(strategy), &input, work).expect("chunks");
        let predicted = predict(&input, &chunks, options.in_flight).makespan;
        near(strategy, found.prefill_ms, predicted.as_secs_f64() * 1e3, 1e-6);
        let transfers = chunks.iter().flat_map(|chunk| &chunk.route.stages);
        let transfers = transfers.filter(|stage| !stage.computes() && !stage.decides()).count();
        assert_eq!(transfers > 0, strategy != "gpu-only", "{strategy}");
        let used = found.prefill.units.iter().find(|unit| unit.name == "pim").expect("a device");
        assert_eq!(used.runs > 0, strategy != "gpu-only", "{strategy}");
    }
}

#[test]
fn a_device_of_another_system_is_taken_for_one_of_this() {
    let (model, soc) = (short(&ModelShape::all()[0]), sd8gen3());
    let attempt = |options: &SocOptions| try_run(&model, &soc, "tensor-level", options);
    let own = |names: &[&str]| names.iter().map(|name| in_memory(name)).collect::<Vec<_>>();
    let foreign = SocOptions { devices: vec![DeviceKind::Gpu, KIND], ..of(64) };
    assert_eq!(attempt(&foreign), Err(SocRunError::NoProcessor { kind: "memory" }));
    let faulty = SocOptions { fault: Some(Fault { kind: KIND, run: 0 }), ..of(64) };
    assert_eq!(attempt(&faulty), Err(SocRunError::NoProcessor { kind: "memory" }));
    for (names, name) in [(&["npu"][..], "npu"), (&["x", "x"], "x")] {
        let options = SocOptions { own: own(names), ..of(64) };
        assert_eq!(attempt(&options), Err(SocRunError::NameTwice { name: name.to_owned() }));
    }
}

#[test]
fn the_cpu_joins_where_it_is_not_asked_to() {
    let (model, soc) = (short(&ModelShape::all()[0]), sd8gen3());
    let attempt = |adds_cpu| {
        let options = SocOptions { adds_cpu, decode: 0, ..of(64) };
        SocSimulation::new(&model, &soc, &named("cpu-only"), &options)
    };
    let names = attempt(true).expect("a route").devices().collect::<Vec<_>>().join(" ");
    assert_eq!(names, "gpu npu cpu");
    assert!(matches!(attempt(false).map(drop), Err(SocRunError::Plan(_))));
}

//! True values with modelled times.

use std::sync::Arc;

use lapwing_actors::simulate::SocRunError;
use lapwing_actors::simulate::soc::{
    Fault, SocModel, SocOptions, SocOutcome, SocSimulation, SocValues,
};
use lapwing_kernels::cpu::{BindError, Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Blocking, Device, DeviceInfo, DeviceKind, SlotPool};
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::model::Model;
use lapwing_kernels::npu::array::Array;
use lapwing_kernels::npu::{NpuDevice, NpuDeviceParts};
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::soc::WeightBits;

use super::{model, named, of, run, sd8gen3};

/// A tiny model with its weights, on processors emulated by the CPU and an NPU in software.
fn with_values(strategy: &str, file: &WeightFile) -> (SocOutcome, SocOutcome) {
    let parsed = Model::from_weights(file).expect("a model");
    let model = SocModel::of_model("tiny", &parsed, WeightBits::Stored);
    let (graph, slots) = (&model.workload.graph, SlotPool::default());
    let kv = Arc::new(KvStore::new(model.kv.clone(), 256).expect("memory"));
    let device = |info: &DeviceInfo| -> Result<Box<dyn Device>, BindError> {
        let (name, graph, slots) = (info.name.clone(), Arc::clone(graph), slots.clone());
        let cpu = Cpu::new(1, Isa::best());
        if info.kind == DeviceKind::Npu {
            let parts = NpuDeviceParts { name, graph, slots, budget: 1 << 30 };
            let npu = NpuDevice::systolic(parts, cpu, Array::default(), file)?;
            return Ok(Box::new(Blocking::new(info.clone(), npu)));
        }
        let parts = CpuDeviceParts { name, cpu, graph, kv: Arc::clone(&kv), slots };
        Ok(Box::new(Blocking::new(info.clone(), CpuDevice::new(parts, file)?)))
    };
    let ids: Vec<u32> = (0..300).map(|i| (7 + i * i * 13 + i * 5) % 250).collect();
    let values = SocValues { ids: &ids, slots: slots.clone(), pages: 256, device: &device };
    let (soc, options) = (sd8gen3(), SocOptions { decode: 8, ..of(300) });
    let made = named(strategy);
    let simulation = SocSimulation::with_values(&model, &soc, &made, &options, &values);
    let outcome = simulation.expect("a route").run().expect("an outcome");
    (outcome, run(&model, &soc, strategy, &options))
}

#[test]
fn true_values_change_a_time_or_a_model_of_time_changes_a_token() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/reference/tiny/llama.gguf");
    let file = WeightFile::open(std::path::Path::new(path)).expect("a tiny model");
    let (alone, _) = with_values("gpu-only", &file);
    assert!(alone.tokens.iter().any(|token| *token != 0));
    for strategy in ["tensor-level", "row-cut", "layer-level", "pipe", "sequence-cut"] {
        let (values, shapes) = with_values(strategy, &file);
        assert_eq!(values.tokens, alone.tokens, "{strategy}");
        assert_eq!(SocOutcome { tokens: shapes.tokens.clone(), ..values }, shapes, "{strategy}");
    }
}

#[test]
fn an_option_that_true_values_do_not_know_is_ignored() {
    let (model, soc) = (model("qwen2-1.5b"), sd8gen3());
    let device = |_: &DeviceInfo| -> Result<Box<dyn Device>, BindError> {
        panic!("no device is needed to refuse")
    };
    let values =
        SocValues { ids: &[1, 2, 3], slots: SlotPool::default(), pages: 8, device: &device };
    let fault = Some(Fault { kind: DeviceKind::Gpu, run: 0 });
    let wrong = [
        SocOptions { fault, ..SocOptions::default() },
        SocOptions { stepped_preparation: true, ..SocOptions::default() },
    ];
    for options in wrong {
        let made = SocSimulation::with_values(&model, &soc, &named("gpu-only"), &options, &values);
        assert!(matches!(made.err(), Some(SocRunError::Values { .. })), "{options:?}");
    }
}

//! Options of a simulated run.

use std::sync::Arc;

use lapwing_kernels::cpu::BindError;
use lapwing_kernels::device::{Device, DeviceInfo, DeviceKind, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::KvLayout;
use lapwing_kernels::model::shape::ModelShape;
use lapwing_kernels::model::{Model, ModelError};
use lapwing_traces::Nanos;

use super::Fault;
use crate::policy::PolicyChoice;
use crate::simulate::own_device::OwnDevice;
use lapwing_plan::soc::{SyncMode, WeightBits, Workload};

/// A model to simulate.
#[derive(Clone, Debug)]
pub struct SocModel {
    /// Name, such as `llama-3-8b`.
    pub name: String,
    /// Ops, and bits per weight.
    pub workload: Workload,
    /// Shape of its KV pages.
    pub kv: KvLayout,
}

impl SocModel {
    /// A published shape, with weights of 4 bits.
    ///
    /// # Errors
    /// [`ModelError`] for a shape of an unknown architecture.
    pub fn of_shape(shape: &ModelShape) -> Result<SocModel, ModelError> {
        Ok(SocModel::of_model(shape.name, &shape.model()?, WeightBits::default()))
    }

    /// A model, of a weight file or of its header.
    pub fn of_model(name: &str, model: &Model, bits: WeightBits) -> SocModel {
        let workload = Workload { graph: Arc::new(model.graph.clone()), bits };
        SocModel { name: name.to_owned(), workload, kv: model.config.kv_layout() }
    }

    pub(super) fn graph(&self) -> &Arc<Graph> {
        &self.workload.graph
    }
}

/// Options of a simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct SocOptions {
    /// Rows of the prompt, at least 1.
    pub prompt: usize,
    /// Steps of decoding after the first token.
    pub decode: usize,
    /// Rows of each step: 1, or those that a speculative decoder verifies at once, all of which
    /// count as accepted.
    pub verify: usize,
    /// How processors synchronise.
    pub sync: SyncMode,
    /// The synchronisation that strategies plan for. The published ablations of synchronisation keep the
    /// plans that were made for fast synchronisation: with slow synchronisation, a solver that models it
    /// would not cut.
    pub planned_sync: SyncMode,
    /// Whether graphs that are prepared during a run are prepared for the next standard size of 1, 32,
    /// 64 … 1024 rows instead of the exact row count.
    pub stepped_preparation: bool,
    /// Whether a renderer draws 60 frames per second on the GPU.
    pub renderer: bool,
    /// Seed of the noise, if the system has any.
    pub seed: u64,
    /// Maximum prompt rows of a chunk; `None` is the whole prompt.
    pub chunk_rows: Option<usize>,
    /// Maximum number of chunks in flight.
    pub in_flight: usize,
    /// Orders requests.
    pub policy: PolicyChoice,
    /// Processors that compute, each once, in order of registration. The outcome does not depend on the
    /// order. A CPU that is not named only controls, unless `adds_cpu` is set.
    pub devices: Vec<DeviceKind>,
    /// Whether a CPU that is not named computes if the strategy requires it.
    pub adds_cpu: bool,
    /// Devices of the caller's own, which compute beside the processors.
    pub own: Vec<OwnDevice>,
    /// Whether a recording is made.
    pub record: bool,
    /// A run that fails.
    pub fault: Option<Fault>,
    /// Virtual time at which the caller cancels.
    pub cancel: Option<Nanos>,
}

impl Default for SocOptions {
    fn default() -> SocOptions {
        SocOptions {
            prompt: 256,
            decode: 32,
            verify: 1,
            sync: SyncMode::Fast,
            planned_sync: SyncMode::Fast,
            stepped_preparation: false,
            renderer: false,
            seed: 0,
            chunk_rows: None,
            in_flight: 2,
            policy: PolicyChoice::default(),
            devices: vec![DeviceKind::Gpu, DeviceKind::Npu],
            adds_cpu: true,
            own: Vec::new(),
            record: false,
            fault: None,
            cancel: None,
        }
    }
}

impl SocOptions {
    /// Whether a CPU may join the devices.
    pub(super) fn may_add_cpu(&self) -> bool {
        let cpu = DeviceKind::Cpu;
        let is_there = self.devices.contains(&cpu)
            || self.own.iter().any(|device| device.name() == cpu.name());
        self.adds_cpu && !is_there
    }
}

/// Makes the device that an info describes.
pub type MakeDevice<'a> = dyn Fn(&DeviceInfo) -> Result<Box<dyn Device>, BindError> + 'a;

/// Inputs of a run that computes true values in modelled time.
pub struct SocValues<'a> {
    /// Token ids of the prompt.
    pub ids: &'a [u32],
    /// Pool of the buffers that hold results.
    pub slots: SlotPool,
    /// Pages of the cache that the devices share.
    pub pages: u32,
    /// Makes the devices, which must compute the model's own graph.
    pub device: &'a MakeDevice<'a>,
}

//! What is simulated.

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
use lapwing_plan::soc::{SyncMode, WeightBits, Workload};

/// A model to simulate.
#[derive(Clone, Debug)]
pub struct SocModel {
    /// Name, such as `llama-3-8b`.
    pub name: String,
    /// Ops, and how many bits a weight takes.
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

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct SocOptions {
    /// Rows of the prompt, at least 1.
    pub prompt: usize,
    /// Steps of decoding after the first token.
    pub decode: usize,
    /// Rows of each step: 1, or those that a speculative decoder verifies at once, all of which
    /// count as accepted.
    pub verify: usize,
    /// How processors hand over.
    pub sync: SyncMode,
    /// How strategies think that they do. The published ablations of synchronisation keep the plans
    /// that were made for fast hand-overs: with slow ones a solver that knows of them would not cut.
    pub planned_sync: SyncMode,
    /// Graphs are prepared for the next of 1, 32, 64 … 1024 rows and not for the very number,
    /// where they are prepared when they are needed.
    pub stepped_preparation: bool,
    /// A renderer draws 60 frames a second on the GPU (device model, 3.8).
    pub renderer: bool,
    /// Seed of the noise, if the system has any.
    pub seed: u64,
    /// Most prompt rows in a chunk; `None` is the whole prompt.
    pub chunk_rows: Option<usize>,
    /// Chunks in flight.
    pub in_flight: usize,
    /// Orders requests.
    pub policy: PolicyChoice,
    /// Processors that compute, each once, in any order: they are registered in this one, and what
    /// comes of a run does not depend on it. The CPU only controls, unless a strategy cannot do
    /// without it.
    pub devices: Vec<DeviceKind>,
    /// Whether a recording is made.
    pub record: bool,
    /// A run of a device that fails.
    pub fault: Option<Fault>,
    /// When the caller leaves.
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
            record: false,
            fault: None,
            cancel: None,
        }
    }
}

/// Makes a device of that name and kind.
pub type MakeDevice<'a> = dyn Fn(&DeviceInfo) -> Result<Box<dyn Device>, BindError> + 'a;

/// True values beside the modelled times.
pub struct SocValues<'a> {
    /// The prompt.
    pub ids: &'a [u32],
    /// Where results lie.
    pub slots: SlotPool,
    /// Pages of the cache that the devices share.
    pub pages: u32,
    /// Makes the devices, which must compute the model's own graph.
    pub device: &'a MakeDevice<'a>,
}

//! Consecutive layers on each device.

use std::sync::Arc;

use lapwing_kernels::device::DeviceKind;

use super::entry::{StrategyEntry, builtin};
use super::interface::{PlanInput, Strategy};
use super::roles::Needs;
use crate::chunk::ChunkShape;
use crate::device::{DeviceId, device_of};
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::Stage;

/// An equal number of consecutive layers on each device that runs every op, in the order of the
/// devices, with one stage per device. Chunks overlap as in a pipeline: n chunks of equal stages
/// take T = (n + devices − 1)·T_stage.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerSplit;

pub(super) const ENTRY: StrategyEntry = builtin(
    "layer-split",
    "an equal number of consecutive layers on each device that runs every op",
    &[],
    |_, _| Arc::new(LayerSplit),
);

impl Strategy for LayerSplit {
    fn name(&self) -> &str {
        "layer-split"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let nodes = input.graph.nodes();
        let devices: Vec<DeviceId> = (0..input.devices.len())
            .filter(|d| nodes.iter().all(|node| input.devices[*d].runs(&node.op)))
            .map(DeviceId)
            .collect();
        if devices.is_empty() {
            let needs = Needs { strategy: self.name(), devices: input.devices };
            return Err(needs.missing(DeviceKind::Cpu));
        }
        LayersOn { devices }.route(input, shape)
    }
}

/// As [`LayerSplit`], on the given devices, whatever their kinds.
#[derive(Clone, Debug)]
pub struct LayersOn {
    /// The devices, in the order of the layers.
    pub devices: Vec<DeviceId>,
}

impl Strategy for LayersOn {
    fn name(&self) -> &str {
        "layers-on"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let (nodes, devices) = (input.graph.nodes(), &self.devices);
        let count = input.devices.len();
        if let Some(DeviceId(device)) = devices.iter().find(|device| device.0 >= count) {
            return Err(PlanError::NoDevice { device: *device, devices: count });
        }
        let layers = nodes.iter().filter_map(|n| n.layer).max().map_or(0, |l| l + 1);
        let mut stages = Vec::new();
        let mut start = 0;
        for (at, device) in devices.iter().enumerate() {
            let last_layer = layers * (at + 1) / devices.len();
            let end = if at + 1 == devices.len() {
                nodes.len()
            } else {
                nodes.iter().position(|n| n.layer.is_some_and(|l| l >= last_layer)).unwrap_or(start)
            };
            if end > start {
                stages.push(Stage::whole(*device, start..end));
                start = end;
            }
        }
        let reason = format!("{layers} layers divided equally between {} devices", devices.len());
        Route::new(stages, reason, None, input.route_for(shape))
    }
}

/// The last layers and the output matrix on the first GPU, everything before them on the first CPU: a
/// model that is larger than the GPU's memory.
#[derive(Clone, Copy, Debug)]
pub struct GpuLayers {
    /// Layers on the GPU; as many as the model has, or more, for the whole model.
    pub layers: usize,
}

impl Strategy for GpuLayers {
    fn name(&self) -> &str {
        "gpu-layers"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let nodes = input.graph.nodes();
        let layers = nodes.iter().filter_map(|n| n.layer).max().map_or(0, |l| l + 1);
        let needs = Needs { strategy: self.name(), devices: input.devices };
        let find = |kind| device_of(input.devices, kind).ok_or_else(|| needs.missing(kind));
        let on_gpu = self.layers.min(layers);
        let border = match on_gpu {
            0 => nodes.len(),
            all if all == layers => 0,
            // A layer may have no nodes.
            some => {
                let is_on_gpu = |layer| layer >= layers - some;
                nodes.iter().position(|n| n.layer.is_some_and(is_on_gpu)).unwrap_or(0)
            }
        };
        let mut stages = Vec::new();
        if border > 0 {
            stages.push(Stage::whole(find(DeviceKind::Cpu)?, 0..border));
        }
        if border < nodes.len() {
            stages.push(Stage::whole(find(DeviceKind::Gpu)?, border..nodes.len()));
        }
        let reason = format!("the last {on_gpu} of {layers} layers on the GPU");
        Route::new(stages, reason, None, input.route_for(shape))
    }
}

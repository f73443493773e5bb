//! Strategies: from the op graph to a route.

use std::sync::Arc;

use lapwing_kernels::graph::Graph;

use super::{DeviceId, PlanError, Route, Stage};

/// What a strategy may look at.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// Ops of the model.
    pub graph: &'a Graph,
    /// Names of the devices, by their number.
    pub devices: &'a [String],
}

/// Decides which device runs which ops.
pub trait Strategy: Send + Sync {
    /// Name on the command line.
    fn name(&self) -> &str;

    /// The route of a chunk.
    ///
    /// # Errors
    /// [`PlanError`] when no route fits the devices.
    fn route(&self, input: PlanInput<'_>) -> Result<Arc<Route>, PlanError>;
}

/// Everything on the first device: one stage, so a decode step costs one message.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOnly;

impl Strategy for CpuOnly {
    fn name(&self) -> &str {
        "cpu-only"
    }

    fn route(&self, input: PlanInput<'_>) -> Result<Arc<Route>, PlanError> {
        let stage = Stage { device: DeviceId(0), nodes: 0..input.graph.nodes().len() };
        let reason = "the CPU is the only device of this strategy".to_owned();
        Route::new(vec![stage], reason, input.graph, input.devices.len())
    }
}

/// Whole layers in equal runs over all devices, one stage each, in the order of the devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerSplit;

impl Strategy for LayerSplit {
    fn name(&self) -> &str {
        "layer-split"
    }

    fn route(&self, input: PlanInput<'_>) -> Result<Arc<Route>, PlanError> {
        let nodes = input.graph.nodes();
        let layers = nodes.iter().filter_map(|n| n.layer).max().map_or(0, |l| l + 1);
        let devices = input.devices.len();
        let mut stages = Vec::new();
        let mut start = 0;
        for device in 0..devices {
            let last_layer = layers * (device + 1) / devices;
            let end = if device + 1 == devices {
                nodes.len()
            } else {
                nodes.iter().position(|n| n.layer.is_some_and(|l| l >= last_layer)).unwrap_or(start)
            };
            if end > start {
                stages.push(Stage { device: DeviceId(device), nodes: start..end });
                start = end;
            }
        }
        let reason = format!("{layers} layers in equal runs over {devices} devices");
        Route::new(stages, reason, input.graph, devices)
    }
}

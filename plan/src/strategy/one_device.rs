//! All ops on one device, by its number.

use std::sync::Arc;

use super::interface::{PlanInput, Strategy};
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::error::PlanError;
use crate::route::Route;
use crate::stage::Stage;

/// All ops on one device that takes any number of rows, whatever its kind. T = T_device(all). Draft models
/// of speculative decoding use it.
#[derive(Clone, Copy, Debug)]
pub struct OneDevice {
    /// The device.
    pub device: DeviceId,
}

impl Strategy for OneDevice {
    fn name(&self) -> &str {
        "one-device"
    }

    fn route(&self, input: &PlanInput<'_>, shape: &ChunkShape) -> Result<Arc<Route>, PlanError> {
        let (device, devices) = (self.device.0, input.devices.len());
        let Some(info) = input.devices.get(device) else {
            return Err(PlanError::NoDevice { device, devices });
        };
        let reason = format!("'{}' runs every op", info.name);
        let stage = Stage::whole(self.device, 0..input.graph.nodes().len());
        Route::new(vec![stage], reason, None, input.route_for(shape))
    }
}

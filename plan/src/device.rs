//! Devices by number and by kind.

use lapwing_kernels::device::{DeviceInfo, DeviceKind};

/// Index of a device in the engine, and of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub usize);

/// The first device of a kind.
pub fn device_of(devices: &[DeviceInfo], kind: DeviceKind) -> Option<DeviceId> {
    devices.iter().position(|device| device.kind == kind).map(DeviceId)
}

/// Whether a device runs only static graphs that are prepared for a number of rows, and multiplies
/// in an order of operands that the planner chooses. Other devices take any number of rows.
pub(crate) fn needs_graphs(info: &DeviceInfo) -> bool {
    info.is_static()
}

/// Whether a device can run that many rows at all: one that needs prepared graphs cannot if it has
/// no graph sizes, or if there is no row to run.
pub(crate) fn takes_rows(info: &DeviceInfo, rows: usize) -> bool {
    !needs_graphs(info) || (rows > 0 && !info.sizes.is_empty())
}

//! Builds NPUs whose graphs OpenVINO compiles.

use super::{Built, Shared};
use crate::devices::DeviceSpec;
use crate::error::Error;

/// Opens OpenVINO's device of that name, and binds the model to it.
#[cfg(feature = "openvino")]
pub(super) fn build(spec: &DeviceSpec, device: &str, shared: &Shared<'_>) -> Result<Built, Error> {
    use std::sync::Arc;

    use super::{Rates, calibrate, estimated, time_model, with_sizes};
    use lapwing_actors::drive::live::LiveDevice;
    use lapwing_kernels::device::{Blocking, Device};
    use lapwing_kernels::npu::{NpuDevice, NpuDeviceParts, OpenVino, OpenVinoSettings};

    let threads = spec.threads.unwrap_or(1);
    let settings = OpenVinoSettings {
        device: Some(device).filter(|name| !name.is_empty()).map(str::to_owned),
        threads,
    };
    let Shared { graph, file, slots, clock, .. } = shared;
    let backend = OpenVino::open(&spec.name, &settings, graph, file)?;
    let kernels = backend.describe();
    let parts = NpuDeviceParts {
        name: spec.name.clone(),
        graph: Arc::clone(graph),
        slots: (*slots).clone(),
        budget: spec.graphs.budget,
    };
    let device = NpuDevice::new(parts, Box::new(backend), file);
    let mut device = Blocking::new(with_sizes(spec, device.info().clone()), device);
    let info = device.info().clone();
    let rates = clock.and_then(|clock| calibrate::rates(&mut device, graph, clock));
    let timed = rates.map(|(gflops, gbps)| Rates { gflops, gbps, ..estimated(threads) });
    let time = time_model(spec, graph, timed.unwrap_or_else(|| estimated(threads)))?;
    let device = LiveDevice { device: Box::new(device), time: None, cores: None };
    Ok(Built { device, info, time, timed, capacity: None, kernels, notes: Vec::new() })
}

/// This build has no OpenVINO.
#[cfg(not(feature = "openvino"))]
pub(super) fn build(spec: &DeviceSpec, _: &str, _: &Shared<'_>) -> Result<Built, Error> {
    let expected =
        "a device that this build has; build Lapwing with the feature `openvino` for this one";
    Err(Error::config("device", spec, expected))
}

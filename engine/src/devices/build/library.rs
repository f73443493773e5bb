//! Builds NPUs whose graphs a vendor's library runs, at its own pace.

use std::sync::Arc;

use lapwing_actors::drive::live::LiveDevice;
use lapwing_kernels::device::Device;
use lapwing_kernels::npu::{NpuBackend, NpuDevice, NpuDeviceParts, NpuQueue};

use super::{Built, Rates, Shared, calibrate, estimated, time_model, with_sizes};
use crate::devices::DeviceSpec;
use crate::engine::opened::Opened;
use crate::error::Error;

/// Makes a device of an opened library. `kernels` is one line on it; `threads` is the number of CPU
/// threads that its speed is estimated by, if it is not timed.
pub(in crate::devices) fn device(
    spec: &DeviceSpec,
    backend: Box<dyn NpuBackend>,
    kernels: String,
    threads: usize,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    let Shared { opened, memory, clock } = shared;
    let Opened { graph, file, .. } = opened;
    let parts = NpuDeviceParts {
        name: spec.name.clone(),
        graph: Arc::clone(graph),
        slots: memory.slots.clone(),
        budget: spec.graphs.budget,
    };
    let mut device = NpuDevice::new(parts, backend, file);
    if let Some(programs) = opened.settings.programs() {
        device = device.keep_graphs(programs.with_file_name("graphs"), file);
    }
    let mut device = NpuQueue::new(with_sizes(spec, device.info().clone()), device);
    let info = device.info().clone();
    if let Some(clock) = clock {
        calibrate::graphs(&device, graph, *clock);
    }
    let rates = clock.and_then(|clock| calibrate::rates(&mut device, graph, clock));
    let timed = rates.map(|(gflops, gbps)| Rates { gflops, gbps, ..estimated(threads) });
    let time = time_model(spec, graph, timed.unwrap_or_else(|| estimated(threads)))?;
    let device = LiveDevice { device: Box::new(device), time: None, cores: None };
    Ok(Built {
        device,
        info,
        time,
        timed,
        capacity: None,
        kernels,
        notes: Vec::new(),
        outliers: None,
    })
}

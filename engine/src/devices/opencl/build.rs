//! Builds OpenCL devices.

use super::OpenClSettings;
use crate::devices::DeviceSpec;
use crate::devices::build::{Built, Shared};
use crate::error::Error;

/// Opens the device that the settings select, and binds the model to it.
#[cfg(feature = "opencl")]
pub(super) fn build(
    number: usize,
    spec: &DeviceSpec,
    settings: &OpenClSettings,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    use crate::devices::build::{estimated, time_per_model};
    use crate::devices::{Rates, calibrate};
    use lapwing_actors::drive::live::LiveDevice;
    use lapwing_kernels::device::{Device, MemoryDomain, PerModel};
    use lapwing_kernels::opencl::{OpenClBindError, OpenClDevice, OpenClDeviceParts, find};
    use std::sync::Arc;

    let note_of_copies = in_place_or_copied(number, spec, settings, shared)?;
    let found = find(&settings.which)?;
    let Shared { opened, memory, clock } = *shared;
    let in_place = opened.in_place.of(number);
    let programs = opened.settings.programs();
    let capacity = Some(found.memory);
    let mut kernels = format!(
        "OpenCL on {}, a {} with {} compute units ({}, driver {}), {}",
        found.name,
        found.kind,
        found.units,
        found.platform,
        found.driver,
        opened.in_place.about(number)
    );
    let parts = OpenClDeviceParts {
        name: spec.name.clone(),
        device: found,
        domain: in_place.map_or(MemoryDomain::Device(number), |_| MemoryDomain::Host),
        graph: Arc::clone(&opened.graph),
        kv: Arc::clone(&memory.kv),
        slots: memory.slots.clone(),
        shared: in_place.cloned(),
        persistent: !settings.no_persistent,
        programs: programs.clone(),
    };
    let wrong = |error: OpenClBindError| match error {
        OpenClBindError::OpenCl(error) => error.into(),
        OpenClBindError::Weights(error) => error.into(),
        other => Error::config("device", &spec.name, &other.to_string()),
    };
    let device = OpenClDevice::new(parts, &opened.file).map_err(wrong)?;
    let mut notes = device.notes();
    notes.extend(note_of_copies);
    if device.has_persistent() {
        kernels.push_str(", runs of few rows in one kernel");
    } else if settings.no_persistent {
        kernels.push_str(", runs of few rows op by op (persistent=off)");
    }
    let draft = shared.draft_on(number);
    let mut device: Box<dyn Device> = match draft {
        None => Box::new(device),
        Some(draft) => {
            let (graph, kv) = (Arc::clone(&draft.graph), Arc::clone(&draft.kv));
            let second = device.with_model(graph, kv, programs, &draft.file);
            let second = second.map_err(wrong)?;
            notes.extend(second.notes().into_iter().filter(|note| !device.notes().contains(note)));
            Box::new(PerModel::new(device, [second]))
        }
    };
    let info = device.info().clone();
    let rates = clock.and_then(|clock| calibrate::rates(&mut *device, &opened.graph, clock));
    let timed = rates.map(|(gflops, gbps)| Rates { gflops, gbps, ..estimated(1) });
    let time = time_per_model(spec, &opened.graph, draft, timed.unwrap_or_else(|| estimated(1)))?;
    let device = LiveDevice { device, time: None, cores: None };
    Ok(Built { device, info, time, timed, capacity, kernels, notes, outliers: None })
}

/// A note where keys and values are copied although the device's memory is used in place.
///
/// # Errors
/// When the user asked for memory in place.
#[cfg(feature = "opencl")]
fn in_place_or_copied(
    number: usize,
    spec: &DeviceSpec,
    settings: &OpenClSettings,
    shared: &Shared<'_>,
) -> Result<Option<String>, Error> {
    let Shared { opened, memory, .. } = shared;
    let copied = if opened.in_place.is_of(number) { memory.kv.layers_of_host() } else { 0 };
    if copied == 0 {
        return Ok(None);
    }
    let note = format!(
        "keys, values or states of {copied} layers are copied: the driver has no memory for them that is used in place, or \
         they would take more than half of it"
    );
    if settings.memory == Some(crate::devices::OpenClMemory::Shared) {
        let expected =
            format!("one with room for keys and values in place, or memory=copied ({note})");
        return Err(Error::config("device", spec, &expected));
    }
    Ok(Some(note))
}

/// This build has no OpenCL.
#[cfg(not(feature = "opencl"))]
pub(super) fn build(
    _: usize,
    spec: &DeviceSpec,
    _: &OpenClSettings,
    _: &Shared<'_>,
) -> Result<Built, Error> {
    let expected =
        "a device that this build has; build Lapwing with the feature `opencl` for this one";
    Err(Error::config("device", spec, expected))
}

//! Builds NPUs whose graphs OpenVINO compiles.

use crate::config::Threads;
use crate::devices::DeviceSpec;
use crate::devices::build::{Built, Shared};
use crate::error::Error;

/// Opens OpenVINO's device of that name, and binds the model to it.
#[cfg(feature = "openvino")]
pub(super) fn build(
    spec: &DeviceSpec,
    device: &str,
    threads: &Threads,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    use lapwing_kernels::npu::{OpenVino, OpenVinoSettings};

    let settings = OpenVinoSettings {
        device: Some(device).filter(|name| !name.is_empty()).map(str::to_owned),
        threads: threads.count,
        cores: threads.cores.clone(),
    };
    let backend = OpenVino::open(&spec.name, &settings, &shared.opened.graph, &shared.opened.file)?;
    let kernels = backend.describe();
    crate::devices::build::library::device(spec, Box::new(backend), kernels, threads.count, shared)
}

/// This build has no OpenVINO.
#[cfg(not(feature = "openvino"))]
pub(super) fn build(
    spec: &DeviceSpec,
    _: &str,
    _: &Threads,
    _: &Shared<'_>,
) -> Result<Built, Error> {
    let expected =
        "a device that this build has; build Lapwing with the feature `openvino` for this one";
    Err(Error::config("device", spec, expected))
}

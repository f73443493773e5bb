//! Builds NPUs whose graphs QNN prepares.

use crate::devices::build::{Built, Shared};
use crate::devices::{DeviceSpec, QnnSettings};
use crate::error::Error;

/// Opens QNN's processor, and binds the model to it.
#[cfg(feature = "qnn")]
pub(super) fn build(
    spec: &DeviceSpec,
    settings: &QnnSettings,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    use lapwing_kernels::npu::{ActivationRanges, Qnn, QnnActivations};
    use std::sync::Arc;

    let ranges = match settings.activations {
        QnnActivations::F16 => Arc::new(ActivationRanges::default()),
        integers => shared.ranges(integers.name())?,
    };
    let (graph, file) = (&shared.opened.graph, &shared.opened.file);
    let backend = Qnn::open(&spec.name, settings, graph, file, &ranges)?;
    let kernels = backend.describe();
    crate::devices::build::library::device(spec, Box::new(backend), kernels, 1, shared)
}

/// This build has no QNN.
#[cfg(not(feature = "qnn"))]
pub(super) fn build(spec: &DeviceSpec, _: &QnnSettings, _: &Shared<'_>) -> Result<Built, Error> {
    let expected =
        "a device that this build has; build Lapwing with the feature `qnn` for this one";
    Err(Error::config("device", spec, expected))
}

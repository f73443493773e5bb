//! Builds NPUs whose graphs QNN prepares.

use super::{Built, Shared};
use crate::devices::{DeviceSpec, QnnProcessor};
use crate::error::Error;

/// Opens QNN's processor, and binds the model to it.
#[cfg(feature = "qnn")]
pub(super) fn build(
    spec: &DeviceSpec,
    processor: &QnnProcessor,
    shared: &Shared<'_>,
) -> Result<Built, Error> {
    use lapwing_kernels::npu::{Qnn, QnnSettings};

    let QnnProcessor { library, soc, arch, weights } = processor.clone();
    let settings = QnnSettings { library, soc, arch, weights };
    let backend = Qnn::open(&spec.name, &settings, shared.graph, shared.file)?;
    let kernels = backend.describe();
    super::library::device(spec, (Box::new(backend), kernels), 1, shared)
}

/// This build has no QNN.
#[cfg(not(feature = "qnn"))]
pub(super) fn build(spec: &DeviceSpec, _: &QnnProcessor, _: &Shared<'_>) -> Result<Built, Error> {
    let expected =
        "a device that this build has; build Lapwing with the feature `qnn` for this one";
    Err(Error::config("device", spec, expected))
}

//! The kernels that were chosen for a device, for reports.

use std::path::PathBuf;

use super::discovery::OpenClInfo;
use super::error::OpenClError;
use super::ops::{KernelSpec, Kernels};
use super::program::ProgramCache;
use super::session::Session;
use lapwing_model::formats::DType;

/// The kernels of a device for matmuls with weights of one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatMulKernels {
    /// Format of the weights.
    pub dtype: DType,
    /// The kernel for many rows.
    pub many: &'static str,
    /// The kernel for few rows.
    pub few: &'static str,
    /// Nanoseconds of each kernel for many rows that was measured on the device; empty if its features
    /// leave no choice, or it has no clock.
    pub many_ns: Vec<(&'static str, u64)>,
    /// The same of kernels for few rows.
    pub few_ns: Vec<(&'static str, u64)>,
}

/// Chooses the kernels of matmuls on a device, as a model's start does. `programs` is the folder of
/// compiled programs and of measurements; what it has is not measured again.
///
/// # Errors
/// If the device fails or does not compile a kernel.
pub fn matmul_kernels(
    device: &OpenClInfo,
    programs: Option<PathBuf>,
    formats: &[DType],
) -> Result<Vec<MatMulKernels>, OpenClError> {
    let session = Session::open(device)?;
    let cache = ProgramCache::new(programs);
    let spec = KernelSpec { dtypes: formats.to_vec(), ..KernelSpec::default() };
    let mut kernels = Kernels::new(&session, &cache, &spec)?;
    let tuned = |dtype: &DType| {
        let tuned = kernels.tune(*dtype)?;
        Ok(MatMulKernels {
            dtype: *dtype,
            many: tuned.shapes.many.name(),
            few: tuned.shapes.few.name(),
            many_ns: tuned.many.iter().map(|(many, ns)| (many.name(), *ns)).collect(),
            few_ns: tuned.few.iter().map(|(few, ns)| (few.name(), *ns)).collect(),
        })
    };
    let found = formats.iter().map(tuned).collect::<Result<_, OpenClError>>()?;
    kernels.save(&cache);
    Ok(found)
}

//! Profiles: measured op times of an engine's devices, used by strategies to predict.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use lapwing::Engine;
//! use lapwing::devices::DeviceSpec;
//! use lapwing::profile::Limits;
//!
//! let builder = || {
//!     let builder = Engine::builder().model("model.gguf").device(DeviceSpec::cpu());
//!     builder.device(DeviceSpec::systolic("npu"))
//! };
//! let profile = builder().measure_blocking(Limits::default(), &mut |step| {
//!     println!("{} of {}: {}", step.done, step.of, step.what);
//!     ControlFlow::Continue(())
//! })?;
//! let engine = builder().profile(profile).build_blocking()?;
//! # Ok::<(), lapwing::Error>(())
//! ```

use std::path::Path;

pub use lapwing_actors::drive::measure::{Limits, MeasureError, MeasureProgress};
pub use lapwing_plan::fit::{DeviceFit, Errors, Fitted, FittedTimes, Trust};
pub use lapwing_plan::profile::{
    DeviceProfile, Identity, Machine, PrepareSample, Profile, ProfileError, Sample, Spread,
};
pub use lapwing_plan::shape::OpShape;

/// Writes a profile to a file, and creates its parent folders. An existing file is replaced
/// completely or left unchanged.
///
/// # Errors
/// [`ProfileError::File`] when the file cannot be written.
pub fn save(profile: &Profile, path: &Path) -> Result<(), ProfileError> {
    let file = |source| ProfileError::File { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(file)?;
    }
    let text = profile.to_json().map_err(|source| ProfileError::Format {
        path: path.to_owned(),
        field: ".".to_owned(),
        source,
    })?;
    lapwing_traces::whole_file::write(path, text.as_bytes()).map_err(file)
}

/// This machine, with kernels of that instruction set.
pub(crate) fn machine(isa: &str) -> Machine {
    // If /proc/cpuinfo has no name, the architecture's name is used.
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        ["model name", "Model", "Hardware"].contains(&key.trim()).then(|| value.trim().to_owned())
    });
    Machine {
        cpu: model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: crate::config::cores(),
        isa: isa.to_owned(),
        os: std::env::consts::OS.to_owned(),
    }
}

//! Ranges of activations, from which NPUs with activations in integers take their scales; and int8 activations, whose
//! outliers the CPU computes beside an NPU.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use lapwing::Engine;
//! use lapwing::devices::DeviceSpec;
//! use lapwing::ranges::RangeOptions;
//!
//! let builder = || Engine::builder().model("model.gguf").packed_cache("cache/packed");
//! let options = RangeOptions::of_text("a text of a few thousand words …");
//! let measured = builder().measure_ranges_blocking(&options, &mut |_| ControlFlow::Continue(()))?;
//! println!("{} products", measured.ranges.products().len());
//! let npu: DeviceSpec = "npu=systolic:activations=int8,outliers=cpu,prune=0.85".parse()?;
//! let engine = builder().device(DeviceSpec::cpu()).device(npu).build_blocking()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::PathBuf;
use std::sync::Arc;

pub use lapwing_kernels::npu::{
    ActivationRange, ActivationRanges, MeasureRangesError, OutlierCounts, RangesFileError,
    ScalesError, StaticInt8,
};
use lapwing_kernels::weights::WeightFile;

use crate::config::Settings;
use crate::error::Error;

pub(crate) mod error;

pub use error::RangesError;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeOptions {
    /// The text. It is cut into windows of tokens, each of which starts with an empty context; an incomplete last
    /// one counts, too.
    pub text: String,
    /// Tokens of a window, at least 1.
    pub window: usize,
    /// Maximum number of windows.
    pub windows_max: usize,
}

impl RangeOptions {
    /// At most 16 windows of 512 tokens of a text.
    pub fn of_text(text: impl Into<String>) -> RangeOptions {
        RangeOptions { text: text.into(), window: 512, windows_max: 16 }
    }
}

/// A window that is about to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeProgress {
    /// Windows that are done.
    pub done: usize,
    /// All windows.
    pub of: usize,
}

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MeasuredRanges {
    /// The ranges.
    pub ranges: ActivationRanges,
    /// Windows that were run.
    pub windows: usize,
    /// The file that holds them from now on; `None` without
    /// [`packed_cache`](crate::EngineBuilder::packed_cache).
    pub file: Option<PathBuf>,
}

/// Outliers of a device since the engine started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceOutliers {
    /// Name of the device.
    pub device: String,
    /// What it has counted.
    pub counts: OutlierCounts,
}

/// Where the ranges of an engine's model come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSource {
    given: Option<Arc<ActivationRanges>>,
    pub(crate) folder: Option<PathBuf>,
    /// What changes activations, apart from the model's file.
    pub(crate) variant: String,
}

impl RangeSource {
    pub(crate) fn of(settings: &Settings) -> RangeSource {
        let folder = settings.packed_cache.as_ref().map(|folder| folder.join("ranges"));
        let masks: Vec<String> = settings.attention.iter().map(ToString::to_string).collect();
        let shared = settings.share_kv.map(|sharing| sharing.to_string());
        let variant = format!("{}\0{}", masks.join(" "), shared.unwrap_or_default());
        RangeSource { given: settings.ranges.clone(), folder, variant }
    }

    /// The ranges: those that were given, or else those in the folder. `precision` is what a device rounds to, for the
    /// error.
    pub(crate) fn get(
        &self,
        file: &WeightFile,
        precision: &str,
    ) -> Result<Arc<ActivationRanges>, Error> {
        if let Some(given) = &self.given {
            return Ok(Arc::clone(given));
        }
        let Some(folder) = &self.folder else {
            let needs = "one of floats where no ranges are stored: set a cache folder (no --no-packed-cache), or EngineBuilder::ranges";
            return Err(Error::config("the activations' precision of an NPU", precision, needs));
        };
        let ranges = ActivationRanges::load(folder, file, &self.variant);
        Ok(Arc::new(ranges.map_err(RangesError::File)?))
    }
}

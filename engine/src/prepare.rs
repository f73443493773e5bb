//! Preparation ahead of the first prompt: the plans of an engine, and the graphs of its NPUs.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use lapwing::Engine;
//! use lapwing::devices::DeviceSpec;
//! use lapwing::prepare::PrepareOptions;
//!
//! let builder = || {
//!     let builder = Engine::builder().model("model.gguf").packed_cache("cache/packed");
//!     builder.device(DeviceSpec::cpu()).device(DeviceSpec::openvino("npu", ""))
//! };
//! let prepared = builder().prepare_blocking(&PrepareOptions::default(), &mut |step| {
//!     println!("{}: {} of {} graphs", step.device, step.done, step.of);
//!     ControlFlow::Continue(())
//! })?;
//! let engine = builder().plans(prepared.plans).build_blocking()?;
//! # Ok::<(), lapwing::Error>(())
//! ```

use std::path::Path;
use std::time::Duration;

pub use lapwing_plan::plans::{Plans, PlansError, PlansSubject};

/// What is prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareOptions {
    /// Prompts, in tokens. Those that exceed the context are left out.
    pub prompts: Vec<usize>,
    /// Most sequences of a decode step; at most as many as the engine computes at the same time. Steps of 1 to so many are
    /// planned, with the contexts that follow the prompts.
    pub decode_rows: usize,
}

impl Default for PrepareOptions {
    /// Prompts of 32, 64, 128, 256 and 512 tokens, and decode steps of up to 8 sequences.
    fn default() -> PrepareOptions {
        PrepareOptions { prompts: vec![32, 64, 128, 256, 512], decode_rows: 8 }
    }
}

/// A graph that is about to be prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrepareProgress<'a> {
    /// The device.
    pub device: &'a str,
    /// Graphs of the device that are done.
    pub done: usize,
    /// All graphs of the device.
    pub of: usize,
}

/// The result of a preparation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Preparation {
    /// The plans: those that the builder had, and new ones.
    pub plans: Plans,
    /// Prompts that were planned, in tokens.
    pub prompts: Vec<usize>,
    /// Most sequences of a decode step that were planned.
    pub decode_rows: usize,
    /// Routes that were solved; the builder had the others.
    pub solved: usize,
    /// Time to solve them.
    pub planning: Duration,
    /// The devices that run prepared graphs.
    pub devices: Vec<PreparedDevice>,
}

/// The graphs of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedDevice {
    /// Name of the device.
    pub device: String,
    /// Whether the device keeps graphs on disk. If not, nothing was prepared: a start makes its own.
    pub keeps: bool,
    /// Graphs that the plans need.
    pub graphs: usize,
    /// Graphs among them that were made and checked; the others were on disk.
    pub prepared: usize,
    /// Graphs among them that are on disk now. Fewer than `graphs` if the folder is too small for all, or cannot be written.
    pub kept: usize,
    /// Time to prepare them.
    pub time: Duration,
}

impl Preparation {
    /// Whether nothing had to be solved or made.
    pub fn was_there(&self) -> bool {
        self.solved == 0 && self.devices.iter().all(|device| device.prepared == 0)
    }
}

/// Writes plans to a file, and creates its parent folders. An existing file is replaced completely or left unchanged.
///
/// # Errors
/// [`PlansError::File`] when the file cannot be written.
pub fn save(plans: &Plans, path: &Path) -> Result<(), PlansError> {
    let file = |source| PlansError::File { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(file)?;
    }
    let text =
        plans.to_json().map_err(|source| PlansError::Format { path: path.to_owned(), source })?;
    lapwing_traces::whole_file::write(path, text.as_bytes()).map_err(file)
}

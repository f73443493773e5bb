//! Systems on a chip, described by numbers: processors, memory, synchronisation, graph preparation,
//! power and a competing renderer. Each number has a unit, a source and a kind. A file gives all
//! numbers, or only those that differ from a base preset.
//!
//! The equations and the preset `sd8gen3` are fitted to HeteroLLM (arXiv 2501.14794) and its later
//! version HeteroInfer (SOSP 2025).

mod cpu;
mod description;
mod error;
mod gpu;
mod groups;
mod models;
mod npu;
mod parameters;
mod presets;
mod range;
mod times;
mod workload;

pub use cpu::CpuTimes;
pub use description::{Number, NumberKind, Soc};
pub use error::SocError;
pub use gpu::GpuTimes;
pub use npu::NpuTimes;
pub use parameters::{PARAMETERS, Parameter};
pub use presets::{MACHINES, PRESETS};
pub use range::Range;
pub use workload::{SyncMode, WeightBits, Workload};

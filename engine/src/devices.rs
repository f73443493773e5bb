//! Devices of an engine: processors of this machine, and emulated ones, which compute true values
//! on CPU threads and are throttled to the times of the processor they stand for.
//!
//! ```
//! use lapwing::devices::DeviceSpec;
//!
//! let gpu: DeviceSpec = "gpu=throttled:gflops=40,gbps=8,sync=20us".parse()?;
//! assert_eq!(gpu.name, "gpu");
//! let devices = DeviceSpec::list("cpu+gpu+npu")?;
//! assert_eq!(devices.len(), 3);
//! # Ok::<(), lapwing::devices::DeviceSpecError>(())
//! ```

use std::time::Duration;

use lapwing_kernels::device::DeviceKind;
use lapwing_kernels::npu::BUCKETS;

mod back_end;
mod back_ends;
pub mod build;
mod calibrate;
mod cpu;
mod error;
mod keys;
mod memory;
mod opencl;
mod openvino;
mod parse;
mod present;
mod properties;
mod qnn;
mod systolic;
mod text;

pub use error::DeviceSpecError;
pub use lapwing_kernels::npu::{QnnActivations, QnnSettings, StaticInt8, WeightForm};
pub use lapwing_plan::rate::Rates;
pub use memory::OwnMemory;
pub(crate) use opencl::InPlace;
pub use opencl::{OpenClMemory, OpenClSettings};
pub use openvino::OpenVinoSettings;
pub use present::PresentDevices;
pub use systolic::ArraySettings;

/// A device of an engine: its name and its properties.
///
/// As text it is a preset name (`cpu`, `gpu`, `npu`) or `NAME=FORM:KEY=VALUE,…`. The forms are
/// `cores`, `throttled`, `systolic`, `opencl`, `openvino` and `qnn`; every key is optional. `NAME=opencl` and
/// `NAME=opencl:WHICH,KEY=VALUE,…` are a real processor with an OpenCL driver, where `WHICH` is a number or a
/// part of its name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceSpec {
    /// Name, unique in the engine: letters, digits, `-` and `_`.
    pub name: String,
    /// Kind of processor, by which strategies assign it a role.
    pub kind: DeviceKind,
    /// Compute threads; by default a CPU takes all that other devices leave, any other device one.
    pub threads: Option<usize>,
    /// The backend that computes the device's results.
    pub backend: Backend,
    /// The speed at which the device runs.
    pub pace: Pace,
    /// Graphs that it may prepare, if it is an NPU.
    pub graphs: GraphSettings,
    /// Memory of its own, if it is an emulated GPU that has one.
    pub memory: Option<OwnMemory>,
}

/// The backend that computes the results of a device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Backend {
    /// The CPU kernels; the time of a run depends on its operations and bytes alone.
    Cpu,
    /// A systolic array in software. Its device is an NPU and is throttled: no rates follow from
    /// the array alone, so [`Pace::Native`] is refused.
    Systolic(ArraySettings),
    /// A processor of this machine with an OpenCL driver. It needs the feature `opencl`.
    OpenCl(OpenClSettings),
    /// Graphs compiled by Intel OpenVINO. It needs the feature `openvino`.
    OpenVino(OpenVinoSettings),
    /// Graphs prepared and run by Qualcomm QNN, on x86-64 by its emulator. It needs the feature `qnn`.
    Qnn(QnnSettings),
}

/// The speed at which a device runs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pace {
    /// As fast as its back end computes, which the CPU, OpenCL, OpenVINO and QNN can.
    Native,
    /// Throttled to a processor of these rates.
    Throttled(Rates),
}

/// Graphs of a device that runs only prepared graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// Row counts of the graphs that can be prepared, ascending.
    pub sizes: Vec<usize>,
    /// Maximum bytes of all prepared graphs; the least recently used are dropped first.
    pub budget: u64,
}

impl Default for GraphSettings {
    /// Powers of two from 1 to 1024: those below 32 for decode and verification, and the standard
    /// sizes of HeteroLLM section 5. A limit of 4 GiB, of which only prepared graphs take any.
    fn default() -> GraphSettings {
        GraphSettings { sizes: BUCKETS.to_vec(), budget: 4 << 30 }
    }
}

/// Powers of two from `from` to `to`.
fn powers_of_two(from: usize, to: usize) -> Vec<usize> {
    (0..usize::BITS).map(|bit| 1 << bit).filter(|size| (from..=to).contains(size)).collect()
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl DeviceSpec {
    /// The CPU with all its threads, not throttled: the default device of an engine.
    pub fn cpu() -> DeviceSpec {
        DeviceSpec::new("cpu", DeviceKind::Cpu, Backend::Cpu, Pace::Native)
    }

    /// A throttled device with the default rates of its kind.
    pub fn throttled(name: &str, kind: DeviceKind) -> DeviceSpec {
        let rates = match kind {
            DeviceKind::Cpu => Rates::CPU,
            // An engine refuses such a device, but it has a text and rates as all others.
            DeviceKind::Gpu | DeviceKind::Own(_) => Rates::GPU,
            DeviceKind::Npu => Rates::NPU,
        };
        DeviceSpec::new(name, kind, Backend::Cpu, Pace::Throttled(rates))
    }

    /// The same device with another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> DeviceSpec {
        self.name = name.into();
        self
    }

    /// The same device with that many compute threads.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> DeviceSpec {
        self.threads = Some(threads);
        self
    }

    fn new(name: &str, kind: DeviceKind, backend: Backend, pace: Pace) -> DeviceSpec {
        let graphs = GraphSettings::default();
        let name = name.to_owned();
        DeviceSpec { name, kind, threads: None, backend, pace, graphs, memory: None }
    }

    /// Parses devices joined by `+`; `phone` stands for a CPU, a GPU and an NPU, all throttled, in a
    /// phone's proportions, and `laptop` for a CPU and a GPU with memory of its own. The presets `gpu` and `npu` are emulated, whatever the machine has;
    /// [`list_present`](DeviceSpec::list_present) looks for its own.
    ///
    /// # Errors
    /// [`DeviceSpecError`], also when two devices have the same name.
    pub fn list(text: &str) -> Result<Vec<DeviceSpec>, DeviceSpecError> {
        let mut devices: Vec<DeviceSpec> = Vec::new();
        for part in text.split('+') {
            match part.trim() {
                "phone" => {
                    devices.push(DeviceSpec::throttled("cpu", DeviceKind::Cpu));
                    devices.push(DeviceSpec::throttled("gpu", DeviceKind::Gpu));
                    devices.push(DeviceSpec::systolic("npu"));
                }
                "laptop" => devices.extend(memory::laptop()),
                part => devices.push(part.parse()?),
            }
        }
        DeviceSpec::check_names(&devices)?;
        Ok(devices)
    }

    /// Checks that no name occurs twice.
    pub fn check_names(devices: &[DeviceSpec]) -> Result<(), DeviceSpecError> {
        let twice = |(at, device): (usize, &DeviceSpec)| {
            devices[..at].iter().any(|other| other.name == device.name)
        };
        match devices.iter().enumerate().find(|found| twice(*found)) {
            None => Ok(()),
            Some((_, device)) => Err(DeviceSpecError::NameTwice { name: device.name.clone() }),
        }
    }

    /// Whether it is throttled to the times of a model.
    pub fn is_throttled(&self) -> bool {
        self.rates().is_some()
    }
}

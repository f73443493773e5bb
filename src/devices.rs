//! Devices of an engine: processors of this machine, and modelled ones that compute true values on
//! its threads but take the time of what they stand for.
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

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lapwing_kernels::device::DeviceKind;

pub(crate) mod build;
mod calibrate;
mod error;
mod keys;
mod text;

pub use error::DeviceSpecError;
pub use lapwing_plan::rate::Rates;

/// A device of an engine: its name, and what it is.
///
/// As text: `NAME`, one of the presets, or `NAME=FORM:KEY=VALUE,…`. Forms are `cores`, `throttled`
/// and `systolic`; every key may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Its name, unique in the engine: letters, digits, `-` and `_`.
    pub name: String,
    /// What kind of processor strategies take it for.
    pub kind: DeviceKind,
    /// Threads that compute; by default all that other devices leave for a CPU, and one for any
    /// other.
    pub threads: Option<usize>,
    /// What its time is.
    pub speed: Speed,
    /// What graphs it may have prepared, if it is an NPU.
    pub graphs: GraphSettings,
}

/// How long a device takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As long as its threads take.
    Real,
    /// At least as long as a processor of these rates.
    Throttled(Rates),
    /// At least as long as a systolic array of these rates.
    Systolic(Rates, ArraySettings),
}

/// A systolic array beside its rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArraySettings {
    /// Cells along each side; dimensions are padded to multiples of it (S2-15).
    pub array: usize,
    /// Least share of the rate that an unfavourable shape reaches (S2-16), above 0 and at most 1.
    pub floor: f64,
    /// Time to prepare any graph.
    pub prepare: Duration,
    /// Time to prepare a graph per 10⁹ products of a row and a weight, beside that.
    pub prepare_gweight: Duration,
}

/// Graphs of a device that runs prepared ones only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// Rows for which there can be graphs, ascending.
    pub sizes: Vec<usize>,
    /// Bytes that all prepared graphs may keep; the least recently used go first (S0-38).
    pub budget: u64,
}

impl Default for GraphSettings {
    /// Powers of two from 32 to 1024 (S2-47), and 4 GiB, of which only what is prepared is taken.
    fn default() -> GraphSettings {
        GraphSettings { sizes: powers_of_two(32, 1024), budget: 4 << 30 }
    }
}

/// Powers of two between two numbers.
fn powers_of_two(from: usize, to: usize) -> Vec<usize> {
    (0..usize::BITS).map(|bit| 1 << bit).filter(|size| (from..=to).contains(size)).collect()
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl Default for ArraySettings {
    /// 32 × 32, a floor of 1/6, and preparation in the proportions of S2-49: 2 ms for a graph and
    /// 90 ms for each 10⁹ row-weights.
    fn default() -> ArraySettings {
        ArraySettings {
            array: 32,
            floor: 1.0 / 6.0,
            prepare: micros(2000),
            prepare_gweight: micros(90_000),
        }
    }
}

impl DeviceSpec {
    /// The CPU with all its threads and no model: what an engine has unless it is given others.
    pub fn cpu() -> DeviceSpec {
        DeviceSpec::new("cpu", DeviceKind::Cpu, Speed::Real)
    }

    /// A device of the default rates of its kind.
    pub fn throttled(name: &str, kind: DeviceKind) -> DeviceSpec {
        let rates = match kind {
            DeviceKind::Cpu => Rates::CPU,
            DeviceKind::Gpu => Rates::GPU,
            DeviceKind::Npu => Rates::NPU,
        };
        DeviceSpec::new(name, kind, Speed::Throttled(rates))
    }

    /// A software NPU of the default rates.
    pub fn systolic(name: &str) -> DeviceSpec {
        let speed = Speed::Systolic(Rates::NPU, ArraySettings::default());
        DeviceSpec::new(name, DeviceKind::Npu, speed)
    }

    fn new(name: &str, kind: DeviceKind, speed: Speed) -> DeviceSpec {
        let graphs = GraphSettings::default();
        DeviceSpec { name: name.to_owned(), kind, threads: None, speed, graphs }
    }

    /// Devices as text, with `+` between them; `phone` stands for a CPU, a GPU and an NPU, all
    /// throttled, in a phone's proportions.
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
                part => devices.push(part.parse()?),
            }
        }
        DeviceSpec::check_names(&devices)?;
        Ok(devices)
    }

    /// Whether every name is there once.
    pub(crate) fn check_names(devices: &[DeviceSpec]) -> Result<(), DeviceSpecError> {
        let twice = |(at, device): (usize, &DeviceSpec)| {
            devices[..at].iter().any(|other| other.name == device.name)
        };
        match devices.iter().enumerate().find(|found| twice(*found)) {
            None => Ok(()),
            Some((_, device)) => Err(DeviceSpecError::NameTwice { name: device.name.clone() }),
        }
    }

    /// Whether it is held to the time of a model.
    pub fn is_throttled(&self) -> bool {
        self.speed != Speed::Real
    }
}

impl FromStr for DeviceSpec {
    type Err = DeviceSpecError;

    fn from_str(text: &str) -> Result<DeviceSpec, DeviceSpecError> {
        keys::parse(text)
    }
}

impl fmt::Display for DeviceSpec {
    /// As text that is read as the same device.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        keys::write(self, f)
    }
}

//! A profile: measured times of ops, with the machine and model that they were measured on.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shape::OpShape;

mod check;
mod error;

pub use error::ProfileError;

/// Version of the file format.
pub const VERSION: u32 = 2;

/// Measured times of every device of an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the file format; [`VERSION`] is the one that is read.
    pub version: u32,
    /// Version of the program that measured.
    pub program: String,
    /// Where it was measured.
    pub machine: Machine,
    /// Which model's shapes were measured.
    pub model: String,
    /// Most rows of a chunk: up to as many were measured.
    pub chunk_rows: usize,
    /// Devices, by their number.
    pub devices: Vec<DeviceProfile>,
    /// From the end of one device's work until another starts on the result (S2-38).
    pub sync: Spread,
    /// Bytes read and written per second when parts are put together.
    pub copy_bytes_per_second: f64,
}

/// Identity of a machine. A profile is of no use on another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Threads that run at once.
    pub cores: usize,
    /// Instruction set of the kernels.
    pub isa: String,
    /// Operating system.
    pub os: String,
}

/// One device's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Name in the engine.
    pub name: String,
    /// Kind, as `DeviceKind::name`.
    pub kind: String,
    /// What the device is, beyond its name: threads, rates.
    pub description: String,
    /// Submission to an idle device.
    pub submit_idle_ns: u64,
    /// Submission behind running work.
    pub submit_queued_ns: u64,
    /// What is added when inputs come from another device.
    pub crossing_ns: u64,
    /// Nanoseconds to load values into static graphs and to read them from there, per byte read
    /// and written; 0 for a device without graphs.
    pub convert_ns_per_byte: f64,
    /// Times of preparations; none for a device without graphs.
    pub prepares: Vec<PrepareSample>,
    /// Times that were to be measured; those that are not among the samples were left out for
    /// want of time, the least important.
    pub asked: usize,
    /// Times of ops, without submission and without conversion.
    pub samples: Vec<Sample>,
}

/// Measured time of the preparation of a static graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareSample {
    /// Rows of the graph.
    pub rows: u64,
    /// Weights of its matrices.
    pub weights: u64,
    /// How long it took.
    pub ns: u64,
}

/// Measured time of an op.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The op.
    pub shape: OpShape,
    /// Rows.
    pub m: usize,
    /// Rows before them in the cache.
    pub context: usize,
    /// How long it took.
    pub time: Spread,
}

/// Median and extent of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Middle one.
    pub median_ns: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Number of runs.
    pub runs: usize,
}

impl Spread {
    /// Of at least one time; `None` without.
    pub fn of(times: &[Duration]) -> Option<Spread> {
        let mut sorted: Vec<u64> = times.iter().map(|t| nanos(*t)).collect();
        sorted.sort_unstable();
        let (min_ns, max_ns) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { median_ns: sorted[sorted.len() / 2], min_ns, max_ns, runs: sorted.len() })
    }

    /// Middle one.
    pub fn median(&self) -> Duration {
        Duration::from_nanos(self.median_ns)
    }

    /// (max − min) / median.
    pub fn relative(&self) -> f64 {
        (self.max_ns - self.min_ns) as f64 / self.median_ns.max(1) as f64
    }
}

/// Whole nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Profile {
    /// Reads a profile and checks its values.
    ///
    /// # Errors
    /// [`ProfileError`] that names the field at fault.
    pub fn load(path: &Path) -> Result<Profile, ProfileError> {
        let file = |source| ProfileError::File { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(file)?;
        let format =
            |field: String, source| ProfileError::Format { path: path.to_owned(), field, source };
        // Another version may have other fields: it is looked at before them.
        let any: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| format(".".to_owned(), e))?;
        match any.get("version").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(VERSION) => {
                return Err(ProfileError::Version { path: path.to_owned(), found });
            }
            _ => {}
        }
        let mut reader = serde_json::Deserializer::from_str(&text);
        let profile: Profile = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| format(error.path().to_string(), error.into_inner()))?;
        profile.check().map_err(|error| error.in_file(path))?;
        Ok(profile)
    }

    /// The profile as JSON, in the form that [`load`](Profile::load) reads.
    ///
    /// # Errors
    /// A measurement that JSON cannot express, such as an infinite time.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Checks that the profile is of this machine, model and these devices.
    ///
    /// # Errors
    /// [`ProfileError::Other`] with the first that differs.
    pub fn check_identity(&self, here: &Identity) -> Result<(), ProfileError> {
        let devices = self.devices.iter().map(|d| (d.name.clone(), d.description.clone()));
        let devices: Vec<(String, String)> = devices.collect();
        let list = |devices: &[(String, String)]| {
            let each = devices.iter().map(|(name, what)| format!("{name}: {what}"));
            each.collect::<Vec<_>>().join("; ")
        };
        let (a, b) = (&self.machine, &here.machine);
        let pairs = [
            ("program", self.program.clone(), here.program.clone()),
            ("machine.cpu", a.cpu.clone(), b.cpu.clone()),
            ("machine.cores", a.cores.to_string(), b.cores.to_string()),
            ("machine.isa", a.isa.clone(), b.isa.clone()),
            ("machine.os", a.os.clone(), b.os.clone()),
            ("model", self.model.clone(), here.model.clone()),
            ("chunk_rows", self.chunk_rows.to_string(), here.chunk_rows.to_string()),
            ("devices", list(&devices), list(&here.devices)),
        ];
        match pairs.into_iter().find(|(_, found, here)| found != here) {
            None => Ok(()),
            Some((field, found, here)) => {
                Err(ProfileError::Other { field: field.to_owned(), found, here })
            }
        }
    }
}

/// What a profile is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Version of the program: another has other kernels.
    pub program: String,
    /// The machine.
    pub machine: Machine,
    /// The model.
    pub model: String,
    /// Most rows of a chunk.
    pub chunk_rows: usize,
    /// Name and description of each device.
    pub devices: Vec<(String, String)>,
}

impl Identity {
    /// A file name for the profile, of letters, digits, `.`, `-` and `_`: the model's name, and a
    /// number that other devices, machines and chunk sizes are not likely to have (FNV-1a). That of
    /// another version of the program has the same: it is found, refused, and measured again.
    pub fn file_name(&self) -> String {
        let text = format!("{:?}", (&self.machine, &self.model, self.chunk_rows, &self.devices));
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let model: String = self.model.chars().map(plain).take(80).collect();
        format!("{model}-{hash:016x}.json")
    }
}

#[cfg(test)]
mod tests;

//! A profile: measured times of ops, with the machine and model that they were measured on.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing_kernels::device::DeviceKind;
use serde::{Deserialize, Serialize};

use super::shape::OpShape;

/// Version of the file format.
pub const VERSION: u32 = 1;

/// Measured times of every device of an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the file format; [`VERSION`] is the one that is read.
    pub version: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// Which model's shapes were measured.
    pub model: String,
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
    /// Kind, as [`DeviceKind::name`].
    pub kind: String,
    /// What the device is, beyond its name: threads, rates.
    pub description: String,
    /// Submission to an idle device.
    pub submit_idle_ns: u64,
    /// Submission behind running work.
    pub submit_queued_ns: u64,
    /// What is added when inputs come from another device.
    pub crossing_ns: u64,
    /// Nanoseconds to prepare a graph, per byte of its weights; 0 for a device without graphs.
    pub prepare_ns_per_byte: f64,
    /// Times of ops.
    pub samples: Vec<Sample>,
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
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read or written.
    #[error("profile {}: {source}; measure one with `lapwing profile`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The text is no profile.
    #[error(
        "profile {}: field '{field}': {source}; measure it again with `lapwing profile`", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Path of the field, `.` for the whole.
        field: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The file was written by another version of this program.
    #[error(
        "profile {}: version is {found}, but this program reads {VERSION}; measure it again with `lapwing profile`", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
    },
    /// A value makes no sense.
    #[error("profile field '{field}' is {found}, but {expected}; measure it again")]
    Value {
        /// Path of the field.
        field: String,
        /// Value found.
        found: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// It is of another machine, model or set of devices.
    #[error(
        "the profile's {field} is '{found}', but here it is '{here}'; measure this one with `lapwing profile`"
    )]
    Other {
        /// What differs.
        field: String,
        /// Value in the profile.
        found: String,
        /// Value here.
        here: String,
    },
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
        profile.check()?;
        Ok(profile)
    }

    /// Writes the profile, with the folders that it needs.
    ///
    /// # Errors
    /// [`ProfileError::File`] when it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ProfileError> {
        let file = |source| ProfileError::File { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(file)?;
        }
        let text = serde_json::to_string_pretty(self).map_err(|source| ProfileError::Format {
            path: path.to_owned(),
            field: ".".to_owned(),
            source,
        })?;
        lapwing_traces::whole_file::write(path, text.as_bytes()).map_err(file)
    }

    /// Checks every value that a prediction divides by or starts from.
    ///
    /// # Errors
    /// [`ProfileError::Value`] that names the field.
    pub fn check(&self) -> Result<(), ProfileError> {
        let fail = |field: String, found: String, expected| {
            Err(ProfileError::Value { field, found, expected })
        };
        let rate = self.copy_bytes_per_second;
        if !(rate.is_finite() && rate > 0.0) {
            let expected = "a copy has a positive rate";
            return fail("copy_bytes_per_second".to_owned(), rate.to_string(), expected);
        }
        for (d, device) in self.devices.iter().enumerate() {
            let field = |name: &str| format!("devices[{d}].{name}");
            let known = [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Npu].map(DeviceKind::name);
            if !known.contains(&device.kind.as_str()) {
                let expected = "a device is a cpu, gpu or npu";
                return fail(field("kind"), device.kind.clone(), expected);
            }
            let prepare = device.prepare_ns_per_byte;
            if !(prepare.is_finite() && prepare >= 0.0) {
                let expected = "a preparation takes a time of at least 0";
                return fail(field("prepare_ns_per_byte"), prepare.to_string(), expected);
            }
            if device.samples.is_empty() {
                let expected = "at least one op must have been measured";
                return fail(field("samples"), "empty".to_owned(), expected);
            }
            for (s, sample) in device.samples.iter().enumerate() {
                let field = |name: &str| format!("devices[{d}].samples[{s}].{name}");
                let Sample { m, time, .. } = sample;
                if *m == 0 || sample.shape.n == 0 {
                    return fail(field("m"), m.to_string(), "an op has rows and features");
                }
                if !(time.min_ns..=time.max_ns).contains(&time.median_ns) || time.runs == 0 {
                    let found = format!("{time:?}");
                    return fail(field("time"), found, "a median lies between two extremes");
                }
            }
        }
        Ok(())
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
            ("machine.cpu", a.cpu.clone(), b.cpu.clone()),
            ("machine.cores", a.cores.to_string(), b.cores.to_string()),
            ("machine.isa", a.isa.clone(), b.isa.clone()),
            ("machine.os", a.os.clone(), b.os.clone()),
            ("model", self.model.clone(), here.model.clone()),
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
    /// The machine.
    pub machine: Machine,
    /// The model.
    pub model: String,
    /// Name and description of each device.
    pub devices: Vec<(String, String)>,
}

impl Identity {
    /// A file name for the profile, of letters, digits, `.`, `-` and `_`: the model's name, and a
    /// number that other devices and machines are not likely to have (FNV-1a).
    pub fn file_name(&self) -> String {
        let text = format!("{:?}", (&self.machine, &self.model, &self.devices));
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let model: String = self.model.chars().map(plain).take(80).collect();
        format!("{model}-{hash:016x}.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let time = Spread { median_ns: 5, min_ns: 4, max_ns: 9, runs: 3 };
        let shape =
            OpShape { op: "add".into(), n: 4, k: 0, dtype: None, window: None, swapped: false };
        let device = DeviceProfile {
            name: "cpu".into(),
            kind: "cpu".into(),
            description: "2 threads".into(),
            submit_idle_ns: 1,
            submit_queued_ns: 1,
            crossing_ns: 0,
            prepare_ns_per_byte: 0.0,
            samples: vec![Sample { shape, m: 1, context: 0, time }],
        };
        let machine = Machine { cpu: "a".into(), cores: 2, isa: "avx2".into(), os: "linux".into() };
        Profile {
            version: VERSION,
            machine,
            model: "m".into(),
            devices: vec![device],
            sync: time,
            copy_bytes_per_second: 1e9,
        }
    }

    fn load(text: &str) -> Result<Profile, ProfileError> {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("lapwing-profile-{}-{number}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file");
        let loaded = Profile::load(&path);
        std::fs::remove_file(&path).expect("is there");
        loaded
    }

    #[test]
    fn what_is_saved_is_loaded_again() {
        let text = serde_json::to_string(&profile()).expect("text");
        assert_eq!(load(&text).expect("a profile"), profile());
    }

    #[test]
    fn a_broken_file_is_refused_with_the_field_at_fault() {
        let text = serde_json::to_string(&profile()).expect("text");
        let cases = [
            ("\"cores\":2", "\"cores\":\"two\"", "machine.cores"),
            ("\"m\":1", "\"m\":-1", "devices[0].samples[0].m"),
            ("\"m\":1", "\"m\":0", "devices[0].samples[0].m"),
            ("\"min_ns\":4", "\"min_ns\":7", "time"),
            ("\"kind\":\"cpu\"", "\"kind\":\"tpu\"", "devices[0].kind"),
            ("1000000000.0", "0.0", "copy_bytes_per_second"),
            ("\"version\":1", "\"version\":99", "version is 99"),
            ("\"model\":\"m\",", "", "model"),
        ];
        for (old, new, field) in cases {
            assert!(text.contains(old), "{old} in {text}");
            let error = load(&text.replacen(old, new, 1)).expect_err(new).to_string();
            assert!(error.contains(field), "{new}: {error}");
        }
        assert!(load("").is_err() && load("[]").is_err());
    }

    #[test]
    fn a_profile_of_another_machine_or_device_is_told_apart() {
        let here = |cpu: &str, what: &str| Identity {
            machine: Machine { cpu: cpu.into(), ..profile().machine },
            model: "m".into(),
            devices: vec![("cpu".into(), what.into())],
        };
        let same = here("a", "2 threads");
        profile().check_identity(&same).expect("is the same");
        for (other, field) in [(here("b", "2 threads"), "cpu"), (here("a", "4 threads"), "devices")]
        {
            let error = profile().check_identity(&other).expect_err(field).to_string();
            assert!(error.contains(field), "{error}");
            assert_ne!(other.file_name(), same.file_name());
        }
    }
}

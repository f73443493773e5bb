//! The devices of a live engine as a preset: the numbers that they are held to, or that a profile
//! has measured, and the same run in virtual time.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use lapwing_actors::plan::soc::{Number, NumberKind};
use serde::{Deserialize, Serialize};

use super::SimulateError;
use crate::devices::{DeviceSpec, Speed};
use crate::profile::Profile;

mod measured;
mod numbers;
mod run;

use numbers::NUMBERS;

/// Devices described in numbers, as `lapwing calibrate` writes them.
///
/// ```
/// use lapwing::devices::DeviceSpec;
/// use lapwing::simulate::Machine;
///
/// let machine = Machine::of_devices("phone", DeviceSpec::list("phone")?)?;
/// assert_eq!(Machine::from_toml(&machine.to_toml()?)?, machine);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// From the end of work on one device until another begins with its result, as strategies
    /// predict it, in µs.
    pub hand_over: Number,
    /// Copies that put parts together, in GB/s.
    pub copy: Number,
    /// The devices, by their number.
    pub device: Vec<MachineDevice>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineDevice {
    /// What it is, as `--device` takes it: name, form, kind and what is no number.
    pub spec: String,
    /// Its numbers, by the keys of `--device`.
    pub numbers: std::collections::BTreeMap<String, Number>,
}

impl Machine {
    /// Devices that are held to models: what they are held to.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] when one of them takes the time of its threads, which no number
    /// says: measure a profile of it.
    pub fn of_devices(name: &str, specs: Vec<DeviceSpec>) -> Result<Machine, SimulateError> {
        if let Some(free) = specs.iter().find(|spec| spec.speed == Speed::Real) {
            return Err(SimulateError::Preset {
                reason: format!(
                    "device '{}' is held to no model, so that no number says how long it takes: \
                     measure it with `lapwing profile`, and calibrate from that",
                    free.name
                ),
            });
        }
        let number = |value: f64, unit: &str, source: &str| Number {
            value,
            unit: unit.to_owned(),
            source: source.to_owned(),
            kind: NumberKind::Derived,
        };
        let held = "the model that the live device is held to";
        let device = |spec: &DeviceSpec| MachineDevice {
            spec: spec.to_string(),
            numbers: NUMBERS
                .iter()
                .filter_map(|known| {
                    let value = (known.of)(spec)?;
                    Some((known.key.to_owned(), number(value, known.unit, held)))
                })
                .collect(),
        };
        let plans = "what the live engine plans with";
        Ok(Machine {
            name: name.to_owned(),
            about: format!("{} devices that are held to models", specs.len()),
            hand_over: number(20.0, "us", plans),
            copy: number(5.0, "GB/s", plans),
            device: specs.iter().map(device).collect(),
        })
    }

    /// Measured devices: the rates that explain a profile.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] when a device was not measured well enough.
    pub fn of_profile(name: &str, profile: &Profile) -> Result<Machine, SimulateError> {
        measured::machine(name, profile)
    }

    /// Reads a file that [`to_toml`](Machine::to_toml) wrote.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] names what is wrong.
    pub fn from_toml(text: &str) -> Result<Machine, SimulateError> {
        let machine: Machine = toml::from_str(text)
            .map_err(|error| SimulateError::Preset { reason: error.to_string() })?;
        machine.specs()?;
        for (name, number, unit) in
            [("hand_over", &machine.hand_over, "us"), ("copy", &machine.copy, "GB/s")]
        {
            let sensible = number.value.is_finite() && number.value > 0.0;
            if number.unit != unit || !sensible {
                let reason = format!("{name} must be a positive number of {unit}");
                return Err(SimulateError::Preset { reason });
            }
        }
        Ok(machine)
    }

    /// As a file.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] when it cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, SimulateError> {
        toml::to_string(self).map_err(|error| SimulateError::Preset { reason: error.to_string() })
    }

    /// The devices, as an engine takes them.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] for a device, number or unit that there is not.
    pub fn specs(&self) -> Result<Vec<DeviceSpec>, SimulateError> {
        let wrong = |reason: String| SimulateError::Preset { reason };
        let mut specs = Vec::new();
        for device in &self.device {
            let mut spec: DeviceSpec =
                device.spec.parse().map_err(|error| wrong(format!("{error}")))?;
            for (key, number) in &device.numbers {
                let known = NUMBERS.iter().find(|known| known.key == key);
                let Some(known) = known.filter(|known| (known.of)(&spec).is_some()) else {
                    return Err(wrong(format!("device '{}' has no number '{key}'", spec.name)));
                };
                if number.unit != known.unit {
                    let unit = known.unit;
                    return Err(wrong(format!("'{key}' of '{}' is in {unit}", spec.name)));
                }
                if !(number.value.is_finite() && number.value >= 0.0) {
                    return Err(wrong(format!("'{key}' of '{}' must be at least 0", spec.name)));
                }
                (known.set)(&mut spec, number.value);
            }
            specs.push(spec);
        }
        DeviceSpec::check_names(&specs).map_err(|error| wrong(error.to_string()))?;
        if specs.is_empty() {
            return Err(wrong("there is no device".to_owned()));
        }
        Ok(specs)
    }

    /// One request in virtual time, by the strategy of that name: how long the prompt takes until
    /// its first token, and each later token. Settings that are not given are those of an engine.
    ///
    /// # Errors
    /// [`SimulateError::Model`], and [`SimulateError::Run`] when the strategy does not fit.
    pub fn run(&self, request: &MachineRequest<'_>) -> Result<MachineRun, SimulateError> {
        run::run(self, request)
    }
}

/// A request to a machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineRequest<'a> {
    /// A GGUF file, of which only the header is read.
    pub model: &'a Path,
    /// Strategy, by its name.
    pub strategy: &'a str,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Steps of generation after the first token.
    pub decode: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineRun {
    /// Until the first token.
    pub prefill: Duration,
    /// Until the last.
    pub makespan: Duration,
}

impl fmt::Display for MachineRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1?} to the first token, {:.1?} in all", self.prefill, self.makespan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phone() -> Machine {
        let specs = DeviceSpec::list("phone").expect("devices");
        Machine::of_devices("phone", specs).expect("a machine")
    }

    #[test]
    fn a_number_is_lost_between_devices_and_file() {
        let specs = DeviceSpec::list(
            "cpu=throttled:gflops=8,gbps=6+gpu=throttled:gflops=24,gbps=8,sync=31us+\
             npu=systolic:gflops=72,gbps=6,floor=0.25,sizes=32-256",
        )
        .expect("devices");
        let machine = Machine::of_devices("a", specs.clone()).expect("a machine");
        let read = Machine::from_toml(&machine.to_toml().expect("text")).expect("its own text");
        assert_eq!(read.specs().expect("devices"), specs);
    }

    #[test]
    fn a_wrong_number_is_accepted() {
        let text = phone().to_toml().expect("text");
        let wrong = |from: &str, to: &str| {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            Machine::from_toml(&changed).expect_err(to).to_string()
        };
        assert!(wrong("GFLOP/s", "TFLOP/s").contains("GFLOP/s"));
        assert!(wrong("numbers.gflops", "numbers.speed").contains("speed"));
        assert!(wrong("throttled", "steamed").contains("steamed"));
        assert!(Machine::of_devices("cpu", vec![DeviceSpec::cpu()]).is_err());
    }
}

//! The devices of a live engine as a preset: the rates they are throttled to, or the rates that a
//! profile measured, for runs in virtual time.

use lapwing_kernels::device::DeviceKind;
use lapwing_plan::soc::{MACHINES, Number, NumberKind};
use serde::{Deserialize, Serialize};

use super::error::SimulateError;
use lapwing_engine::config::{COPY_RATE, SYNC_TIME};
use lapwing_engine::devices::{DeviceSpec, OwnMemory};
use lapwing_engine::profile::Profile;

pub(super) mod calibration;
mod measured;
mod numbers;
mod on;
pub(super) mod planned;
pub(super) mod run;

use numbers::NUMBERS;

/// Devices described by numbers, in the format that `lapwing calibrate` writes.
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
    /// Name of the machine.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// Time from the end of work on one device until another starts on its result, in µs. Strategies
    /// predict with it, and the simulator spends it.
    pub hand_over: Number,
    /// Rate of copies that merge parts, in GB/s.
    pub copy: Number,
    /// Bandwidth of the memory that all devices share, in GB/s. Devices that ask for more at the same time slow down; `None` where each
    /// always has its own bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<Number>,
    /// The devices, in order.
    pub device: Vec<MachineDevice>,
}

/// A device of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineDevice {
    /// The device as in `--device`: name, form, kind and everything that is not a number.
    pub spec: String,
    /// All numbers of its form, by the keys of `--device`.
    pub numbers: std::collections::BTreeMap<String, Number>,
}

impl Machine {
    /// The preset of that name; `None` if there is none.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] if its text is wrong, as that of no preset is.
    pub fn preset(name: &str) -> Result<Option<Machine>, SimulateError> {
        let found = MACHINES.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| Machine::from_toml(text)).transpose()
    }

    /// The description of throttled devices: the rates they are throttled to.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] if a device is not throttled, so that no number describes its time:
    /// measure a profile of it. Also if its kind and back end do not fit each other.
    pub fn of_devices(name: &str, specs: Vec<DeviceSpec>) -> Result<Machine, SimulateError> {
        if let Some(free) = specs.iter().find(|spec| !spec.is_throttled()) {
            return Err(SimulateError::Preset {
                reason: format!(
                    "device '{}' is not throttled, so its times are unknown: measure it with \
                     `lapwing profile`, and calibrate from that profile",
                    free.name
                ),
            });
        }
        for spec in &specs {
            spec.check().map_err(|error| wrong(error.to_string()))?;
        }
        let number = |value: f64, unit: &str, source: &str| Number {
            value,
            unit: unit.to_owned(),
            source: source.to_owned(),
            kind: NumberKind::Derived,
        };
        let held = "the rate that the live device is throttled to";
        let device = |spec: &DeviceSpec| MachineDevice {
            spec: numbers::without(spec),
            numbers: NUMBERS
                .iter()
                .filter_map(|known| {
                    let value = (known.of)(spec)?;
                    Some((known.key.to_owned(), number(value, known.unit, held)))
                })
                .collect(),
        };
        let plans = "what the live engine plans with";
        let assumed = |value, unit, source| Number {
            kind: NumberKind::Assumed,
            ..number(value, unit, source)
        };
        Ok(Machine {
            name: name.to_owned(),
            about: format!("{} throttled devices", specs.len()),
            hand_over: assumed(SYNC_TIME.as_nanos() as f64 / 1e3, "us", plans),
            copy: assumed(COPY_RATE / 1e9, "GB/s", plans),
            shared_memory: None,
            device: specs.iter().map(device).collect(),
        })
    }

    /// The description of measured devices: the rates that best explain a profile.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] if a device was not measured sufficiently.
    pub fn of_profile(name: &str, profile: &Profile) -> Result<Machine, SimulateError> {
        measured::machine(name, profile)
    }

    /// Reads a file written by [`to_toml`](Machine::to_toml).
    ///
    /// # Errors
    /// [`SimulateError::Preset`] names what is wrong.
    pub fn from_toml(text: &str) -> Result<Machine, SimulateError> {
        let machine: Machine = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        machine.check()?;
        Ok(machine)
    }

    fn check(&self) -> Result<(), SimulateError> {
        self.specs()?;
        for (name, number) in self.shared() {
            let unit = if name == "hand_over" { "us" } else { "GB/s" };
            let sensible = number.value.is_finite() && number.value > 0.0;
            if number.unit != unit || !sensible {
                return Err(wrong(format!("{name} must be a positive number of {unit}")));
            }
        }
        Ok(())
    }

    /// Numbers of no one device.
    fn shared(&self) -> impl Iterator<Item = (&'static str, &Number)> {
        let memory = self.shared_memory.as_ref().map(|number| ("shared_memory", number));
        [("hand_over", &self.hand_over), ("copy", &self.copy)].into_iter().chain(memory)
    }

    /// All numbers: `hand_over`, `copy`, `shared_memory` if the devices share one, and those of each device, such as `gpu.gflops`.
    pub fn numbers(&self) -> Vec<(String, &Number)> {
        let mut numbers: Vec<(String, &Number)> =
            self.shared().map(|(key, number)| (key.to_owned(), number)).collect();
        for device in &self.device {
            let of = |(key, number)| (format!("{}.{key}", device.name()), number);
            numbers.extend(device.numbers.iter().map(of));
        }
        numbers
    }

    /// A number's value.
    ///
    /// # Errors
    /// [`SimulateError::UnknownKey`].
    pub fn value(&self, key: &str) -> Result<f64, SimulateError> {
        let numbers = self.numbers();
        match numbers.iter().find(|(known, _)| known == key) {
            Some((_, number)) => Ok(number.value),
            None => {
                let common = |known: &str| {
                    known.chars().zip(key.chars()).take_while(|(a, b)| a == b).count()
                };
                let nearest = numbers.iter().rev().max_by_key(|(known, _)| common(known));
                let nearest = nearest.map_or_else(String::new, |(known, _)| known.clone());
                Err(SimulateError::UnknownKey { key: key.to_owned(), nearest })
            }
        }
    }

    /// Changes a number; its kind becomes "assumed".
    ///
    /// # Errors
    /// When there is no such number, or it cannot have that value.
    pub fn set(&mut self, key: &str, value: f64) -> Result<(), SimulateError> {
        self.value(key)?;
        let mut changed = self.clone();
        let of = |device: &MachineDevice, key: &str| {
            key.strip_prefix(device.name())
                .and_then(|rest| rest.strip_prefix('.'))
                .map(str::to_owned)
        };
        let number = match key {
            "hand_over" => Some(&mut changed.hand_over),
            "copy" => Some(&mut changed.copy),
            "shared_memory" => changed.shared_memory.as_mut(),
            _ => changed.device.iter_mut().find_map(|device| {
                let key = of(device, key)?;
                device.numbers.get_mut(&key)
            }),
        };
        if let Some(number) = number {
            number.value = value;
            number.kind = NumberKind::Assumed;
            "set by the user".clone_into(&mut number.source);
        }
        changed.check().map_err(|error| SimulateError::BadValue {
            key: key.to_owned(),
            value: value.to_string(),
            expected: error.to_string(),
        })?;
        *self = changed;
        Ok(())
    }

    /// The text of a file.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] when it cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, SimulateError> {
        toml::to_string(self).map_err(|error| SimulateError::Preset { reason: error.to_string() })
    }

    /// The devices, as an engine takes them.
    ///
    /// # Errors
    /// [`SimulateError::Preset`] for an unknown device, number or unit, or a missing number.
    pub fn specs(&self) -> Result<Vec<DeviceSpec>, SimulateError> {
        let specs: Vec<DeviceSpec> =
            self.device.iter().map(MachineDevice::to_spec).collect::<Result<_, _>>()?;
        DeviceSpec::check_names(&specs).map_err(|error| wrong(error.to_string()))?;
        if specs.is_empty() {
            return Err(wrong("the file has no device".to_owned()));
        }
        Ok(specs)
    }
}

impl MachineDevice {
    /// Name of the device.
    pub(super) fn name(&self) -> &str {
        self.spec.split('=').next().unwrap_or_default().trim()
    }

    fn to_spec(&self) -> Result<DeviceSpec, SimulateError> {
        let mut spec: DeviceSpec = self.spec.parse().map_err(|error| wrong(format!("{error}")))?;
        let name = spec.name.clone();
        if !spec.is_throttled() {
            return Err(wrong(format!(
                "'{name}' has no numbers: its form must be throttled or systolic"
            )));
        }
        if self.numbers.contains_key(numbers::MEMORY) && spec.kind == DeviceKind::Gpu {
            spec.memory = Some(OwnMemory::default());
        }
        let knows = |key: &String| {
            NUMBERS.iter().any(|known| known.key == key && (known.of)(&spec).is_some())
        };
        if let Some(key) = self.numbers.keys().find(|key| !knows(key)) {
            return Err(wrong(format!("device '{name}' has no number '{key}'")));
        }
        for known in &NUMBERS {
            let (key, unit) = (known.key, known.unit);
            if (known.of)(&spec).is_none() {
                continue;
            }
            let Some(number) = self.numbers.get(key) else {
                return Err(wrong(format!("number '{key}' ({unit}) of '{name}' is missing")));
            };
            if number.unit != unit {
                return Err(wrong(format!("'{key}' of '{name}' is in {unit}")));
            }
            if !(number.value.is_finite() && number.value >= 0.0) {
                return Err(wrong(format!("'{key}' of '{name}' must be at least 0")));
            }
            if unit == "cells" && number.value.fract() != 0.0 {
                return Err(wrong(format!("'{key}' of '{name}' must be a whole number")));
            }
            (known.set)(&mut spec, number.value);
        }
        // Limits of the text form apply to the numbers, too.
        spec.to_string().parse().map_err(|error| wrong(format!("{error}")))
    }
}

fn wrong(reason: String) -> SimulateError {
    SimulateError::Preset { reason }
}

#[cfg(test)]
mod tests;

//! The processors of a scenario: a SoC or a machine.

use lapwing_plan::soc::{Number, Soc, SocError};

use super::error::SimulateError;
use super::machine::Machine;

/// The processors of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Processors {
    /// The processors of a SoC.
    Soc(Soc),
    /// The devices of a live engine.
    Machine(Machine),
}

impl From<Soc> for Processors {
    fn from(soc: Soc) -> Processors {
        Processors::Soc(soc)
    }
}

impl From<Machine> for Processors {
    fn from(machine: Machine) -> Processors {
        Processors::Machine(machine)
    }
}

impl Processors {
    /// The preset of that name.
    ///
    /// # Errors
    /// [`SimulateError::Soc`] if there is none.
    pub fn preset(name: &str) -> Result<Processors, SimulateError> {
        match Machine::preset(name)? {
            Some(machine) => Ok(Processors::Machine(machine)),
            None => Ok(Processors::Soc(Soc::preset(name)?)),
        }
    }

    /// Reads a file that describes a SoC, or devices (`[[device]]`) in the format that
    /// `lapwing calibrate` writes.
    ///
    /// # Errors
    /// [`SimulateError::Soc`] or [`SimulateError::Preset`] names what is missing, unknown or impossible.
    pub fn from_toml(text: &str) -> Result<Processors, SimulateError> {
        let table: toml::Table = toml::from_str(text).map_err(|error| SimulateError::Preset {
            reason: error.to_string().trim_end().to_owned(),
        })?;
        match table.contains_key("device") {
            true => Ok(Processors::Machine(Machine::from_toml(text)?)),
            false => Ok(Processors::Soc(Soc::from_toml(text)?)),
        }
    }

    /// The text of a file.
    ///
    /// # Errors
    /// [`SimulateError::Soc`] or [`SimulateError::Preset`] when it cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, SimulateError> {
        match self {
            Processors::Soc(soc) => Ok(soc.to_toml()?),
            Processors::Machine(machine) => machine.to_toml(),
        }
    }

    /// Name of the preset.
    pub fn name(&self) -> &str {
        match self {
            Processors::Soc(soc) => &soc.name,
            Processors::Machine(machine) => &machine.name,
        }
    }

    /// All numbers with their keys, such as `gpu.rate` of a SoC or `gpu.gflops` of a machine.
    pub fn numbers(&self) -> Vec<(String, &Number)> {
        match self {
            Processors::Soc(soc) => {
                soc.numbers().map(|(key, number)| (key.to_owned(), number)).collect()
            }
            Processors::Machine(machine) => machine.numbers(),
        }
    }

    /// A number's value.
    ///
    /// # Errors
    /// [`SimulateError::UnknownKey`].
    pub fn value(&self, key: &str) -> Result<f64, SimulateError> {
        match self {
            Processors::Soc(soc) => soc.value(key).map_err(|error| unknown(key, error)),
            Processors::Machine(machine) => machine.value(key),
        }
    }

    /// Changes a number; its kind becomes "assumed".
    ///
    /// # Errors
    /// When there is no such number, or it cannot have that value.
    pub fn set(&mut self, key: &str, value: f64) -> Result<(), SimulateError> {
        match self {
            Processors::Soc(soc) => soc.set(key, value).map_err(|error| unknown(key, error)),
            Processors::Machine(machine) => machine.set(key, value),
        }
    }
}

fn unknown(key: &str, error: SocError) -> SimulateError {
    match error {
        SocError::UnknownNumber { nearest, .. } => {
            SimulateError::UnknownKey { key: key.to_owned(), nearest: nearest.to_owned() }
        }
        SocError::Value { value, .. } => SimulateError::BadValue {
            key: key.to_owned(),
            value: value.to_string(),
            expected: error.to_string(),
        },
        error => SimulateError::Soc { source: error },
    }
}

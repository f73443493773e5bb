//! Errors of the simulator.

use lapwing_plan::registry::ChoiceError;
use lapwing_plan::soc::SocError;

/// Why something cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// No setting and no parameter of the processors has that name.
    #[error(
        "unknown setting or parameter '{key}' (settings: {}; the nearest parameter is '{nearest}', and \
         `lapwing simulate --show-soc` prints all of them)",
        super::names::SETTINGS.join(", ")
    )]
    UnknownKey {
        /// The name.
        key: String,
        /// The nearest parameter of the processors.
        nearest: String,
    },
    /// A setting cannot have this value.
    #[error("invalid value '{value}' of '{key}': {expected}")]
    BadValue {
        /// Setting or parameter.
        key: String,
        /// The value.
        value: String,
        /// What is accepted.
        expected: String,
    },
    /// A change is not written KEY=VALUE.
    #[error("invalid change '{text}': write KEY=VALUE, as in sync.copy=2x or strategy=pipe")]
    NoChange {
        /// The text.
        text: String,
    },
    /// A key is given twice.
    #[error("'{key}' is given twice; give it once")]
    Twice {
        /// The key.
        key: String,
    },
    /// There is no such group of published numbers.
    #[error("unknown group of published numbers '{name}' (known: {known})")]
    UnknownGroup {
        /// The name.
        name: String,
        /// The groups.
        known: String,
    },
    /// The file of published numbers is invalid.
    #[error("cannot read the published numbers: {reason}")]
    Published {
        /// What is wrong.
        reason: String,
    },
    /// There is no such device.
    #[error("{source}")]
    UnknownDevice {
        /// The known devices, and the nearest one.
        source: ChoiceError,
    },
    /// Two devices have the same name.
    #[error("device '{device}' is given twice; give it once")]
    DeviceTwice {
        /// The name.
        device: String,
    },
    /// There is no such preset.
    #[error("{source}; or give a .toml file")]
    UnknownPreset {
        /// The known presets.
        source: SocError,
    },
    /// The description of devices is invalid.
    #[error("{reason}")]
    Preset {
        /// What is wrong.
        reason: String,
    },
    /// The description of a SoC is invalid.
    #[error("{source}")]
    Soc {
        /// What is wrong.
        source: SocError,
    },
    /// A machine is given where only a SoC is possible.
    #[error(
        "'{machine}' describes the devices of a machine, for which no numbers were published: give a \
         preset such as sd8gen3, or a file that describes a SoC"
    )]
    NoSoc {
        /// The machine's name.
        machine: String,
    },
    /// The model is unknown, or its file cannot be used.
    #[error("{reason}")]
    Model {
        /// What is wrong.
        reason: String,
    },
    /// The run ended early.
    #[error("the simulated run failed: {reason}")]
    Run {
        /// Cause of the failure.
        reason: String,
    },
    /// There is nothing to fit.
    #[error("{reason}")]
    Fit {
        /// What is missing.
        reason: String,
    },
}

impl From<SocError> for SimulateError {
    fn from(source: SocError) -> SimulateError {
        match source {
            SocError::UnknownPreset { .. } => SimulateError::UnknownPreset { source },
            source => SimulateError::Soc { source },
        }
    }
}

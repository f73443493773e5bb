//! Why something cannot be simulated.

use lapwing_plan::soc::SocError;

/// Why something cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// No setting and no parameter of the preset has that name.
    #[error(
        "there is nothing called '{key}' to set: settings are {}; of the numbers of the processors \
         '{nearest}' is the nearest, and `lapwing simulate --show-soc` prints all",
        super::names::SETTINGS.join(", ")
    )]
    UnknownKey {
        /// The name.
        key: String,
        /// The nearest number of the processors.
        nearest: String,
    },
    /// A value that a setting cannot have.
    #[error("'{value}' cannot be the value of '{key}': {expected}")]
    BadValue {
        /// Setting or parameter.
        key: String,
        /// Value given.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// A change that is not written KEY=VALUE.
    #[error("'{text}' is no change; it is written KEY=VALUE, as in sync.slow=2x or strategy=pipe")]
    NoChange {
        /// The text.
        text: String,
    },
    /// A key that is given twice.
    #[error("'{key}' is given twice; give it once")]
    Twice {
        /// The key.
        key: String,
    },
    /// Nothing was published under that name.
    #[error("nothing published is called '{name}'; there are {known}")]
    UnknownGroup {
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// The published numbers cannot be read.
    #[error("the published numbers cannot be read: {reason}")]
    Published {
        /// What is wrong.
        reason: String,
    },
    /// There is no such preset.
    #[error("{source}, or name a .toml file")]
    UnknownPreset {
        /// What there is.
        source: SocError,
    },
    /// Devices that cannot be described in numbers, or numbers that describe none.
    #[error("{reason}")]
    Preset {
        /// What is wrong.
        reason: String,
    },
    /// A SoC that cannot be.
    #[error("{source}")]
    Soc {
        /// What is wrong.
        source: SocError,
    },
    /// What is only known of SoCs is asked of a machine.
    #[error(
        "'{machine}' is the devices of a machine, of which nothing was published: name a preset such \
         as sd8gen3, or a file with the numbers of a SoC"
    )]
    NoSoc {
        /// The machine's name.
        machine: String,
    },
    /// The model is not known, or its file cannot be used.
    #[error("{reason}")]
    Model {
        /// What is wrong.
        reason: String,
    },
    /// The run did not reach its end.
    #[error("the simulated run failed: {reason}")]
    Run {
        /// What happened.
        reason: String,
    },
    /// A fit without anything to fit.
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

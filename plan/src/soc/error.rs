//! Errors of descriptions.

use super::presets::{MACHINES, PRESETS};
use super::range::Range;

/// Why a description of a system is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SocError {
    /// Unknown preset.
    #[error("unknown preset '{name}'; presets: {}", [&PRESETS[..], &MACHINES].concat().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))]
    UnknownPreset {
        /// Name of the preset.
        name: String,
    },
    /// The text is not TOML of the expected form.
    #[error("{reason}")]
    Form {
        /// Cause and position.
        reason: String,
    },
    /// Unknown parameter.
    #[error("unknown number '{path}'; the nearest is '{nearest}'")]
    UnknownNumber {
        /// Section and name, such as `gpu.rate`.
        path: String,
        /// A known parameter with a similar path.
        nearest: &'static str,
    },
    /// A parameter is missing.
    #[error("number '{path}' ({unit}: {about}) is missing; give it, or name a base that has it")]
    Missing {
        /// Section and name, such as `gpu.rate`.
        path: &'static str,
        /// Unit of the parameter.
        unit: &'static str,
        /// Description of the parameter.
        about: &'static str,
    },
    /// A parameter has the wrong unit.
    #[error("number '{path}' has unit '{found}', but must have unit '{unit}'")]
    Unit {
        /// Section and name, such as `gpu.rate`.
        path: &'static str,
        /// Unit found.
        found: String,
        /// Unit of the parameter.
        unit: &'static str,
    },
    /// A value is out of range.
    #[error("number '{path}' is {value} {unit}, but must be {expected}")]
    Value {
        /// Section and name, such as `gpu.rate`.
        path: &'static str,
        /// The value.
        value: f64,
        /// Unit of the parameter.
        unit: &'static str,
        /// Valid values.
        expected: Range,
    },
    /// The renderer uses the whole GPU: the time of a frame is not below the frame period.
    #[error(
        "renderer.time = {time} ms must be below renderer.period = {period} ms; otherwise the \
         renderer uses the whole GPU"
    )]
    Renderer {
        /// GPU time of a frame, in ms.
        time: f64,
        /// Frame period, in ms.
        period: f64,
    },
    /// A preset is its own base, directly or through others.
    #[error("preset '{name}' is its own base")]
    Circle {
        /// Name of the preset.
        name: String,
    },
}

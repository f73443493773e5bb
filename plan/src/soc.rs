//! Systems on a chip, described in numbers: processors, memory, synchronisation, graph
//! preparation, power and a competing renderer (device model, 3). Every number has a unit, a source
//! and a kind; a file names them all, or only those in which it differs from another preset.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

mod cpu;
mod gpu;
mod groups;
mod npu;
mod parameters;
mod presets;
mod rates;
mod times;

pub use cpu::CpuTimes;
pub use gpu::GpuTimes;
pub use npu::NpuTimes;
pub use parameters::{PARAMETERS, Parameter, Range};
pub use presets::PRESETS;
pub use rates::{SyncMode, WeightBits, Workload};

/// A system on a chip.
#[derive(Clone, Debug, PartialEq)]
pub struct Soc {
    /// Name, such as `sd8gen3`.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    numbers: BTreeMap<String, Number>,
}

/// A number with its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// The value, in `unit`.
    pub value: f64,
    /// Unit, that of [`PARAMETERS`].
    pub unit: String,
    /// Where the value comes from.
    pub source: String,
    /// How sure it is.
    pub kind: NumberKind,
}

/// How a number came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKind {
    /// Fitted to published figures, which then say nothing about the model.
    Pinned,
    /// Follows from other numbers or from published statements.
    Derived,
    /// Taken for granted.
    Assumed,
}

impl fmt::Display for NumberKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NumberKind::Pinned => "pinned",
            NumberKind::Derived => "derived",
            NumberKind::Assumed => "assumed",
        })
    }
}

/// What is wrong with a description of a system.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SocError {
    /// There is no preset of that name.
    #[error("there is no preset '{name}'; there are: {}", PRESETS.map(|(name, _)| name).join(", "))]
    UnknownPreset {
        /// The name.
        name: String,
    },
    /// The text is no TOML of the right form.
    #[error("{reason}")]
    Form {
        /// What is wrong, and where.
        reason: String,
    },
    /// A number that no model has.
    #[error("there is no number '{path}'; the nearest is '{nearest}'")]
    UnknownNumber {
        /// Section and name.
        path: String,
        /// A number that there is.
        nearest: &'static str,
    },
    /// A number is not given.
    #[error("number '{path}' ({unit}: {about}) is missing; give it, or a base that has it")]
    Missing {
        /// Section and name.
        path: &'static str,
        /// Its unit.
        unit: &'static str,
        /// What it is.
        about: &'static str,
    },
    /// A number is given in another unit.
    #[error("number '{path}' is given in '{found}', but its unit is '{unit}'")]
    Unit {
        /// Section and name.
        path: &'static str,
        /// Unit found.
        found: String,
        /// Unit that it has.
        unit: &'static str,
    },
    /// A value that no system has.
    #[error("number '{path}' is {value} {unit}, but must be {expected}")]
    Value {
        /// Section and name.
        path: &'static str,
        /// The value.
        value: f64,
        /// Its unit.
        unit: &'static str,
        /// What it must be.
        expected: Range,
    },
    /// A frame that takes as long as the time from frame to frame leaves nothing of the GPU.
    #[error(
        "a frame takes renderer.time = {time} ms of renderer.period = {period} ms, which leaves \
         nothing of the GPU; change one of them so that the time is shorter"
    )]
    Renderer {
        /// Time of a frame, in ms.
        time: f64,
        /// Time from frame to frame, in ms.
        period: f64,
    },
    /// Presets that name each other as their base.
    #[error("preset '{name}' is its own base")]
    Circle {
        /// Name of the preset.
        name: String,
    },
}

/// The form of a file.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    name: String,
    about: String,
    /// Preset whose numbers hold where this one gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(flatten)]
    sections: BTreeMap<String, BTreeMap<String, Number>>,
}

impl Soc {
    /// The preset of that name.
    ///
    /// # Errors
    /// [`SocError::UnknownPreset`].
    pub fn preset(name: &str) -> Result<Soc, SocError> {
        Soc::preset_at(name, PRESETS.len())
    }

    fn preset_at(name: &str, depth: usize) -> Result<Soc, SocError> {
        let found = PRESETS.iter().find(|(known, _)| *known == name);
        let Some((_, text)) = found else {
            return Err(SocError::UnknownPreset { name: name.to_owned() });
        };
        if depth == 0 {
            return Err(SocError::Circle { name: name.to_owned() });
        }
        Soc::read(text, depth)
    }

    /// Reads a description.
    ///
    /// # Errors
    /// [`SocError`] names what is missing, unknown, or impossible.
    pub fn from_toml(text: &str) -> Result<Soc, SocError> {
        Soc::read(text, PRESETS.len())
    }

    fn read(text: &str, depth: usize) -> Result<Soc, SocError> {
        let file: File = toml::from_str(text)
            .map_err(|error| SocError::Form { reason: error.to_string().trim_end().to_owned() })?;
        let mut numbers = match &file.base {
            Some(base) => Soc::preset_at(base, depth - 1)?.numbers,
            None => BTreeMap::new(),
        };
        for (section, entries) in file.sections {
            for (name, number) in entries {
                let path = format!("{section}.{name}");
                let parameter = Parameter::find(&path)?;
                if number.unit != parameter.unit {
                    let (path, unit, found) = (parameter.path, parameter.unit, number.unit);
                    return Err(SocError::Unit { path, found, unit });
                }
                parameter.check(number.value)?;
                numbers.insert(path, number);
            }
        }
        for Parameter { path, unit, about, .. } in PARAMETERS {
            if !numbers.contains_key(*path) {
                return Err(SocError::Missing { path, unit, about });
            }
        }
        let soc = Soc { name: file.name, about: file.about, numbers };
        soc.check_renderer()?;
        Ok(soc)
    }

    /// Whether a frame is shorter than the time from frame to frame.
    fn check_renderer(&self) -> Result<(), SocError> {
        let (time, period) = (self.of("renderer.time"), self.of("renderer.period"));
        if time < period { Ok(()) } else { Err(SocError::Renderer { time, period }) }
    }

    /// All numbers as a file.
    ///
    /// # Errors
    /// [`SocError::Form`] when they cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, SocError> {
        let mut sections: BTreeMap<String, BTreeMap<String, Number>> = BTreeMap::new();
        for (path, number) in &self.numbers {
            let (section, name) = path.split_once('.').unwrap_or(("", path));
            let section = sections.entry(section.to_owned()).or_default();
            section.insert(name.to_owned(), number.clone());
        }
        let (name, about) = (self.name.clone(), self.about.clone());
        let file = File { name, about, base: None, sections };
        toml::to_string(&file).map_err(|error| SocError::Form { reason: error.to_string() })
    }

    /// All numbers with their paths (section and name), such as `gpu.rate`.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, &Number)> {
        self.numbers.iter().map(|(path, number)| (path.as_str(), number))
    }

    /// A number.
    pub fn number(&self, path: &str) -> Option<&Number> {
        self.numbers.get(path)
    }

    /// A number's value.
    ///
    /// # Errors
    /// [`SocError::UnknownNumber`].
    pub fn value(&self, path: &str) -> Result<f64, SocError> {
        Parameter::find(path)?;
        Ok(self.of(path))
    }

    /// The value nearest to that one which a number can have.
    ///
    /// # Errors
    /// [`SocError::UnknownNumber`].
    pub fn nearest_value(path: &str, value: f64) -> Result<f64, SocError> {
        Ok(Parameter::find(path)?.nearest_value(value))
    }

    /// Changes a number's value; it then counts as assumed.
    ///
    /// # Errors
    /// [`SocError::UnknownNumber`], [`SocError::Value`] for a value that no system has, or
    /// [`SocError::Renderer`]; nothing is changed then.
    pub fn set(&mut self, path: &str, value: f64) -> Result<(), SocError> {
        let parameter = Parameter::find(path)?;
        parameter.check(value)?;
        let number = Number {
            value,
            unit: parameter.unit.to_owned(),
            source: "set by the user".to_owned(),
            kind: NumberKind::Assumed,
        };
        let before = self.numbers.insert(path.to_owned(), number);
        self.check_renderer().inspect_err(|_| {
            self.numbers.extend(before.map(|before| (path.to_owned(), before)));
        })
    }

    /// Value of a number that is known to be there: every [`Parameter`] is checked when a
    /// description is read.
    fn of(&self, path: &str) -> f64 {
        self.numbers.get(path).map_or(f64::NAN, |number| number.value)
    }
}

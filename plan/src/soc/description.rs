//! The numbers of a system, read from TOML.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::SocError;
use super::parameters::{PARAMETERS, Parameter};
use super::presets::PRESETS;

/// A system on a chip, described by numbers with units and sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Soc {
    /// Name, such as `sd8gen3`.
    pub name: String,
    /// Description in one line.
    pub about: String,
    numbers: BTreeMap<String, Number>,
}

/// A number with its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// Value, in `unit`.
    pub value: f64,
    /// Unit, which must be that of the [`Parameter`].
    pub unit: String,
    /// Source of the value, such as a paper and table.
    pub source: String,
    /// How the value was obtained.
    pub kind: NumberKind,
}

/// How a number was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKind {
    /// Fitted to published figures, which therefore cannot validate the model.
    Pinned,
    /// Derived from other numbers or from published statements.
    Derived,
    /// Assumed without a measurement.
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

/// The form of a TOML file.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    /// Required without a base, as is `about`.
    name: Option<String>,
    about: Option<String>,
    /// Preset from which missing numbers are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    /// It is another chip than the base, whose numbers are therefore assumptions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_other_chip: bool,
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

    /// Parses a description.
    ///
    /// # Errors
    /// [`SocError`] names the missing, unknown or invalid number.
    pub fn from_toml(text: &str) -> Result<Soc, SocError> {
        Soc::read(text, PRESETS.len())
    }

    fn read(text: &str, depth: usize) -> Result<Soc, SocError> {
        let file: File = toml::from_str(text)
            .map_err(|error| SocError::Form { reason: error.to_string().trim_end().to_owned() })?;
        let (name, about, mut numbers) = match (&file.base, file.name, file.about) {
            (Some(base), name, about) => (
                name.unwrap_or_else(|| format!("{base}, changed")),
                about.unwrap_or_else(|| format!("{base} with other numbers")),
                Soc::preset_at(base, depth - 1)?.numbers,
            ),
            (None, Some(name), Some(about)) => (name, about, BTreeMap::new()),
            (None, ..) => {
                let reason = "without a base, give `name` and `about` as texts".to_owned();
                return Err(SocError::Form { reason });
            }
        };
        if let (true, Some(base)) = (file.is_other_chip, &file.base) {
            for number in numbers.values_mut() {
                number.kind = NumberKind::Assumed;
                number.source = format!("as that of {base}: {}", number.source);
            }
        }
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
        let soc = Soc { name, about, numbers };
        soc.check_renderer()?;
        Ok(soc)
    }

    /// Checks that the renderer leaves part of the GPU idle.
    fn check_renderer(&self) -> Result<(), SocError> {
        let (time, period) = (self.of("renderer.time"), self.of("renderer.period"));
        if time < period { Ok(()) } else { Err(SocError::Renderer { time, period }) }
    }

    /// The description as TOML, with all numbers.
    ///
    /// # Errors
    /// [`SocError::Form`] if TOML cannot express it.
    pub fn to_toml(&self) -> Result<String, SocError> {
        let mut sections: BTreeMap<String, BTreeMap<String, Number>> = BTreeMap::new();
        for (path, number) in &self.numbers {
            let (section, name) = path.split_once('.').unwrap_or(("", path));
            let section = sections.entry(section.to_owned()).or_default();
            section.insert(name.to_owned(), number.clone());
        }
        let (name, about) = (Some(self.name.clone()), Some(self.about.clone()));
        let file = File { name, about, base: None, is_other_chip: false, sections };
        toml::to_string(&file).map_err(|error| SocError::Form { reason: error.to_string() })
    }

    /// All numbers with their paths (section and name, such as `gpu.rate`).
    pub fn numbers(&self) -> impl Iterator<Item = (&str, &Number)> {
        self.numbers.iter().map(|(path, number)| (path.as_str(), number))
    }

    /// The number with that path.
    pub fn number(&self, path: &str) -> Option<&Number> {
        self.numbers.get(path)
    }

    /// The value of the number with that path.
    ///
    /// # Errors
    /// [`SocError::UnknownNumber`].
    pub fn value(&self, path: &str) -> Result<f64, SocError> {
        Parameter::find(path)?;
        Ok(self.of(path))
    }

    /// The valid value of a number that is nearest to `value`.
    ///
    /// # Errors
    /// [`SocError::UnknownNumber`].
    pub fn nearest_value(path: &str, value: f64) -> Result<f64, SocError> {
        Ok(Parameter::find(path)?.nearest_value(value))
    }

    /// Changes the value of a number, which then counts as assumed.
    ///
    /// # Errors
    /// [`SocError::UnknownNumber`], [`SocError::Value`] or [`SocError::Renderer`]; the description is
    /// then unchanged.
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

    /// Value of a parameter. Reading a description checks that every [`Parameter`] has a number.
    fn of(&self, path: &str) -> f64 {
        self.numbers.get(path).map_or(f64::NAN, |number| number.value)
    }

    /// Copy rate in bytes per second as the runtime counts bytes: 4 per value, while the system
    /// moves 2.
    pub fn copy_rate(&self) -> f64 {
        2.0 * self.of("memory.copy") * 1e9
    }

    /// The value of a parameter in µs, as a duration.
    pub fn micros(&self, path: &str) -> Duration {
        micros(self.of(path))
    }

    /// The value of a parameter in ms, as a duration.
    pub fn millis(&self, path: &str) -> Duration {
        micros(self.of(path) * 1e3)
    }

    /// The value of a known parameter; NaN for an unknown path.
    pub fn at(&self, path: &str) -> f64 {
        self.of(path)
    }
}

/// A duration from microseconds, rounded to whole nanoseconds.
pub(super) fn micros(value: f64) -> Duration {
    Duration::from_nanos((value * 1e3).round() as u64)
}

//! Parameters in text form, and their values.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ChoiceError;

/// A number that changes what is chosen.
///
/// A name with a dot declares a parameter for each of many: `weight.CLIENT` is `weight.alice` for the client alice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name in `NAME:KEY=VALUE`.
    pub name: &'static str,
    /// Its meaning and unit.
    pub about: &'static str,
    /// Its value if none is given.
    pub default: f64,
    /// Least value.
    pub from: f64,
    /// Greatest value.
    pub to: f64,
}

impl Parameter {
    /// A parameter with this name, meaning, default and range.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Parameter {
        Parameter { name, about, default, from: *range.start(), to: *range.end() }
    }

    /// Whether a key sets it.
    fn is_set_by(&self, key: &str) -> bool {
        match self.name.split_once('.') {
            None => self.name == key,
            Some((each, _)) => member(key, each).is_some(),
        }
    }
}

/// The one that a key is for: alice of `weight.alice`.
fn member<'a>(key: &'a str, each: &str) -> Option<&'a str> {
    key.strip_prefix(each)?.strip_prefix('.').filter(|member| !member.is_empty())
}

/// Values of parameters.
#[derive(Clone, Debug)]
pub struct Parameters {
    declared: Vec<Parameter>,
    given: Vec<(String, f64)>,
}

impl Parameters {
    pub(super) fn new(declared: Vec<Parameter>) -> Parameters {
        Parameters { declared, given: Vec::new() }
    }

    /// Reads `KEY=VALUE,…`. `of` is what has the parameters, in messages.
    pub(super) fn read(&mut self, text: &str, of: &str) -> Result<(), ChoiceError> {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let declared = self.declared.iter().find(|declared| declared.is_set_by(key));
            let Parameter { from, to, .. } = *declared.ok_or_else(|| self.unknown(key, of))?;
            let number = value.parse().ok().filter(|number| (from..=to).contains(number));
            let Some(number) = number else {
                let (parameter, found) = (key.to_owned(), value.to_owned());
                return Err(ChoiceError::Value { of: of.to_owned(), parameter, found, from, to });
            };
            self.given.push((key.to_owned(), number));
        }
        Ok(())
    }

    fn unknown(&self, key: &str, of: &str) -> ChoiceError {
        let names: Vec<&str> = self.declared.iter().map(|declared| declared.name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ChoiceError::Parameter { of: of.to_owned(), found: key.to_owned(), known }
    }

    /// Whether no value is given.
    pub fn are_defaults(&self) -> bool {
        self.given.is_empty()
    }

    /// The value that is given for a key; the last one of several.
    pub fn given(&self, key: &str) -> Option<f64> {
        self.given.iter().rev().find(|(given, _)| given == key).map(|(_, value)| *value)
    }

    /// The value of a declared parameter, given or by default.
    pub fn value(&self, name: &str) -> f64 {
        let declared = || self.declared.iter().find(|declared| declared.name == name);
        self.given(name).or_else(|| declared().map(|of| of.default)).unwrap_or_default()
    }

    /// The value of a declared parameter as a count, rounded down.
    pub fn count(&self, name: &str) -> usize {
        self.value(name) as usize
    }

    /// As [`count`](Parameters::count), where an option comes before the default, if there is one.
    pub fn count_or(&self, name: &str, option: Option<usize>) -> usize {
        option.filter(|_| self.given(name).is_none()).unwrap_or_else(|| self.count(name))
    }

    /// The value of a declared parameter as a time in seconds.
    pub fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs_f64(self.value(name))
    }

    /// The values that are given for each: alice and 2 of `weight.alice=2`, for `weight`.
    pub fn each<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.given.iter().filter_map(move |(key, value)| Some((member(key, name)?, *value)))
    }
}

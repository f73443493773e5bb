//! Settings of a scenario and numbers of its processors, by name.

use std::path::Path;

use lapwing_plan::soc::{Number, NumberKind};

use super::{Choice, ParameterValue, Scenario};
use crate::simulate::change::{self, Change};
use crate::simulate::error::SimulateError;
use crate::simulate::interference::Interference;
use crate::simulate::processors::Processors;

/// Maximum number of tokens.
const COUNT_MAX: usize = 1 << 20;
/// Maximum number of chunks in flight.
const PERMITS_MAX: usize = 64;
/// Maximum rows of a decode step.
const VERIFY_MAX: usize = 64;

/// A value that a setting cannot have.
struct Wrong<'a> {
    key: &'a str,
    value: &'a str,
}

impl Wrong<'_> {
    fn error(&self, expected: impl Into<String>) -> SimulateError {
        SimulateError::BadValue {
            key: self.key.to_owned(),
            value: self.value.to_owned(),
            expected: expected.into(),
        }
    }

    fn count(&self, least: usize, most: usize) -> Result<usize, SimulateError> {
        let count = self.value.parse().ok().filter(|count| (least..=most).contains(count));
        count.ok_or_else(|| self.error(format!("it must be a whole number from {least} to {most}")))
    }

    fn switch(&self) -> Result<bool, SimulateError> {
        match self.value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(self.error("it must be on or off")),
        }
    }
}

impl Scenario {
    /// Changes a setting, or a number of the processors. A number may be given as a multiple of its
    /// current value (`2x`) or as a change (`+10%`). Changing the SoC keeps earlier changes of numbers.
    ///
    /// # Errors
    /// When there is no such setting or number, or it cannot have that value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SimulateError> {
        let given = Wrong { key, value };
        match key {
            "soc" => self.set_soc(value)?,
            "device" => self.choose_devices(value)?,
            "model" => value.clone_into(&mut self.model),
            "prompt" => self.prompt = given.count(1, COUNT_MAX)?,
            "decode" => self.decode = given.count(0, COUNT_MAX)?,
            "strategy" => {
                let checked = self.strategies.check(value);
                checked.map_err(|error| given.error(format!("it must be {}", error.expected())))?;
                self.choice = Choice::Named(value.into());
            }
            "fast-sync" => self.fast_sync = given.switch()?,
            "order-swap" => self.order_swap = given.switch()?,
            "moment" => {
                let moment = value.parse();
                self.moment = moment.map_err(|_| given.error("it must be any, class or off"))?;
            }
            "chunk" => self.chunk = Some(given.count(1, COUNT_MAX)?),
            "permits" => self.permits = Some(given.count(1, PERMITS_MAX)?),
            "interference" => {
                self.interference = match value {
                    "none" => Interference::None,
                    "game" => Interference::Game,
                    _ => return Err(given.error("it must be none or game")),
                }
            }
            "verify" => self.verify = given.count(1, VERIFY_MAX)?,
            "stepped-preparation" => self.stepped_preparation = given.switch()?,
            "seed" => {
                let seed = value.parse().map_err(|_| given.error("it must be a whole number"));
                self.seed = seed?;
            }
            _ => {
                let number = change::number(key, value, self.processors.value(key)?)?;
                self.processors.set(key, number)?;
                if value.parse::<f64>().is_ok() {
                    self.forget(key);
                }
                self.changes.push(Change { key: key.to_owned(), value: value.to_owned() });
            }
        }
        Ok(())
    }

    /// Makes several changes, that of the SoC first, so that changes of its numbers apply.
    ///
    /// # Errors
    /// As [`set`](Scenario::set), and [`SimulateError::Twice`] for a key that is given twice.
    pub fn set_all(&mut self, changes: &[Change]) -> Result<(), SimulateError> {
        for (at, change) in changes.iter().enumerate() {
            if changes[..at].iter().any(|other| other.key == change.key) {
                return Err(SimulateError::Twice { key: change.key.clone() });
            }
        }
        let (socs, others): (Vec<&Change>, Vec<&Change>) =
            changes.iter().partition(|change| change.key == "soc");
        socs.into_iter().chain(others).try_for_each(|change| self.set(&change.key, &change.value))
    }

    fn set_soc(&mut self, name: &str) -> Result<(), SimulateError> {
        let processors = if name.ends_with(".toml") {
            let text = std::fs::read_to_string(Path::new(name)).map_err(|error| {
                SimulateError::Preset { reason: format!("cannot read {name}: {error}") }
            })?;
            Processors::from_toml(&text)?
        } else {
            Processors::preset(name)?
        };
        let changes = std::mem::take(&mut self.changes);
        self.processors = processors;
        changes.iter().try_for_each(|change| self.set(&change.key, &change.value))
    }

    /// Changes a number of the processors.
    ///
    /// # Errors
    /// When there is no such number, or it cannot have that value.
    pub fn set_parameter(&mut self, key: &str, value: f64) -> Result<(), SimulateError> {
        self.processors.set(key, value)?;
        self.forget(key);
        self.changes.push(Change { key: key.to_owned(), value: value.to_string() });
        Ok(())
    }

    /// Drops earlier changes of a number.
    fn forget(&mut self, key: &str) {
        self.changes.retain(|change| change.key != key);
    }

    /// Changes of the processors' numbers, in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Numbers of the SoC.
    pub fn parameters(&self) -> Vec<ParameterValue> {
        let value = |(key, number): (String, &Number)| ParameterValue {
            key,
            value: number.value,
            unit: number.unit.clone(),
            status: number.kind.to_string(),
            is_pinned: number.kind == NumberKind::Pinned,
        };
        self.processors.numbers().into_iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_invalid_setting() {
        let mut scenario = Scenario::new("sd8gen3").expect("a preset");
        let wrong = [
            ("soc", "sd9"),
            ("soc", "nowhere.toml"),
            ("prompt", "0"),
            ("decode", "-1"),
            ("verify", "65"),
            ("permits", "0"),
            ("strategy", "fastest"),
            ("fast-sync", "yes"),
            ("moment", "on"),
            ("interference", "film"),
            ("seed", "x"),
            ("gpu.rate", "0"),
            ("gpu.rate", "fast"),
            ("gpu.rate", "50%"),
            ("gpu.colour", "3"),
            ("", "1"),
        ];
        for (key, value) in wrong {
            let error = scenario.set(key, value).expect_err(key).to_string();
            assert!(error.contains(if key == "soc" { value } else { key }), "{error}");
        }
        assert!(Scenario::new("sd9").is_err());
        scenario.set("model", "llama-9").expect("checked later");
        assert!(scenario.check_model().expect_err("unknown").to_string().contains("llama-3-8b"));
    }

    #[test]
    fn changes_of_numbers_survive_another_soc() {
        let list = Change::list("npu.rate=2x,soc=fast-gpu,gpu.rate=3").expect("changes");
        let mut scenario = Scenario::new("sd8gen3").expect("a preset");
        let [rate, bandwidth] = ["npu.rate", "npu.bandwidth"]
            .map(|key| scenario.processors().value(key).expect("a number"));
        scenario.set("npu.bandwidth", "+10%").expect("a number");
        scenario.set_all(&list).expect("changes");
        let value = |key| scenario.processors().value(key).expect("a number");
        assert_eq!((scenario.soc_name(), value("gpu.rate")), ("fast-gpu".to_owned(), 3.0));
        assert!((value("npu.rate") - 2.0 * rate).abs() < 1e-9);
        assert!((value("npu.bandwidth") - 1.1 * bandwidth).abs() < 1e-9);
        let twice = Change::list("prompt=1,prompt=2").expect("changes");
        assert!(scenario.set_all(&twice).expect_err("twice").to_string().contains("prompt"));
    }
}

//! Sampling options changed by name, during a chat.

use std::fmt::Display;
use std::str::FromStr;

use super::SamplingArgs;

/// Why an option was not changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SetError {
    /// There is no such option.
    #[error("unknown setting '{name}'; the settings are {}", NAMES.join(", "))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The value cannot be used.
    #[error("cannot set {name} to '{value}': {reason}")]
    Value {
        /// The option.
        name: String,
        /// The value given.
        value: String,
        /// Why not.
        reason: String,
    },
}

/// Options that can be changed.
const NAMES: [&str; 10] = [
    "temp",
    "top-k",
    "top-p",
    "min-p",
    "repeat-penalty",
    "repeat-last-n",
    "presence-penalty",
    "frequency-penalty",
    "seed",
    "max-tokens",
];

impl SamplingArgs {
    /// Sets the option called `--name`; a seed may be `random`, the others take what the command line
    /// takes. After an error nothing is changed.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        let name = name.trim_start_matches('-').replace('_', "-");
        let mut changed = self.clone();
        let read = match name.as_str() {
            "temp" => parsed(value).map(|value| changed.temp = Some(value)),
            "top-k" => parsed(value).map(|value| changed.top_k = value),
            "top-p" => parsed(value).map(|value| changed.top_p = value),
            "min-p" => parsed(value).map(|value| changed.min_p = value),
            "repeat-penalty" => parsed(value).map(|value| changed.repeat_penalty = value),
            "repeat-last-n" => parsed(value).map(|value| changed.repeat_last_n = value),
            "presence-penalty" => parsed(value).map(|value| changed.presence_penalty = value),
            "frequency-penalty" => parsed(value).map(|value| changed.frequency_penalty = value),
            "seed" if value == "random" => {
                changed.seed = None;
                Ok(())
            }
            "seed" => parsed(value).map(|value| changed.seed = Some(value)),
            "max-tokens" => parsed(value).map(|value| changed.max_tokens = value),
            _ => return Err(SetError::Unknown { name }),
        };
        let checked =
            read.and_then(|()| changed.params().check().map_err(|error| error.to_string()));
        checked.map_err(|reason| SetError::Value { name, value: value.to_owned(), reason })?;
        *self = changed;
        Ok(())
    }

    /// Name and value of every option that can be changed.
    pub(crate) fn settings(&self) -> [(&'static str, String); NAMES.len()] {
        let params = self.params();
        let seed = self.seed.map_or_else(|| "random".to_owned(), |seed| seed.to_string());
        let max = self.max_tokens.tokens();
        let values = [
            params.temperature.to_string(),
            params.top_k.to_string(),
            params.top_p.to_string(),
            params.min_p.to_string(),
            params.repetition_penalty.to_string(),
            params.penalty_window.to_string(),
            params.presence_penalty.to_string(),
            params.frequency_penalty.to_string(),
            seed,
            max.map_or_else(|| "max".to_owned(), |tokens| tokens.to_string()),
        ];
        let mut values = values.into_iter();
        NAMES.map(|name| (name, values.next().unwrap_or_default()))
    }
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        sampling: SamplingArgs,
    }

    fn defaults() -> SamplingArgs {
        Line::parse_from(["chat"]).sampling
    }

    #[test]
    fn every_setting_is_changed_by_its_name_alone() {
        let values = ["0.25", "7", "0.5", "0.125", "1.5", "9", "0.75", "0.375", "42", "max"];
        for (name, value) in NAMES.into_iter().zip(values) {
            for spelling in [name.to_owned(), name.replace('-', "_"), format!("--{name}")] {
                let mut sampling = defaults();
                sampling.set(&spelling, value).expect(&spelling);
                let before = defaults().settings();
                for ((shown, now), (_, default)) in sampling.settings().into_iter().zip(before) {
                    let expected = if shown == name { value } else { &default };
                    assert_eq!(now, expected, "{shown} after {spelling} {value}");
                }
            }
        }
        let mut sampling = defaults();
        sampling.set("seed", "1").expect("a number");
        sampling.set("seed", "random").expect("random");
        assert_eq!(sampling.settings(), defaults().settings());
    }

    #[test]
    fn wrong_values_change_nothing() {
        let rows = [
            ("temp", "warm", "cannot set temp to 'warm': invalid float literal"),
            ("temp", "-1", "cannot set temp to '-1'"),
            ("temp", "NaN", "cannot set temp to 'NaN'"),
            ("top_k", "1.5", "cannot set top-k to '1.5'"),
            ("top-p", "2", "cannot set top-p to '2'"),
            ("seed", "-1", "cannot set seed to '-1'"),
            ("max-tokens", "0", "cannot set max-tokens to '0'"),
            ("ctx", "512", "unknown setting 'ctx'; the settings are temp, top-k"),
            ("", "1", "unknown setting ''"),
        ];
        for (name, value, reason) in rows {
            let mut sampling = defaults();
            let error = sampling.set(name, value).expect_err(name).to_string();
            assert!(error.starts_with(reason), "{name} {value}: {error}");
            assert_eq!(sampling.settings(), defaults().settings());
        }
    }
}

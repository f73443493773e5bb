//! Changes to a scenario, written as text.

use std::str::FromStr;

use super::error::SimulateError;

/// A setting or parameter and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Setting (`prompt`, `strategy`, …) or parameter of the preset.
    pub key: String,
    /// New value; for a parameter a number, a multiple of the current value (`2x`) or a change (`+10%`).
    pub value: String,
}

impl Change {
    /// Parses changes separated by commas.
    ///
    /// # Errors
    /// [`SimulateError::NoChange`].
    pub fn list(text: &str) -> Result<Vec<Change>, SimulateError> {
        text.split(',').map(str::parse).collect()
    }
}

impl FromStr for Change {
    type Err = SimulateError;

    fn from_str(text: &str) -> Result<Change, SimulateError> {
        let fail = || SimulateError::NoChange { text: text.to_owned() };
        let (key, value) = text.split_once('=').ok_or_else(fail)?;
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        if key.is_empty() || value.is_empty() { Err(fail()) } else { Ok(Change { key, value }) }
    }
}

/// The factor of a multiple (`2x`) or of a change in percent (`+10%`); `None` for another text.
pub(super) fn multiple(text: &str) -> Option<f64> {
    let factor = |text: &str| text.trim().parse::<f64>().ok();
    if let Some(times) = text.strip_suffix('x') {
        return factor(times);
    }
    let percent = text.strip_suffix('%').filter(|percent| percent.starts_with(['+', '-']))?;
    factor(percent).map(|percent| 1.0 + percent / 100.0)
}

/// The new value of a number: the value itself, a multiple (`2x`) or a change in percent (`+10%`).
pub(super) fn number(key: &str, text: &str, present: f64) -> Result<f64, SimulateError> {
    let new = multiple(text).map(|times| present * times).or_else(|| text.trim().parse().ok());
    match new.filter(|new| new.is_finite() && *new >= 0.0) {
        Some(new) => Ok(new),
        None => Err(SimulateError::BadValue {
            key: key.to_owned(),
            value: text.to_owned(),
            expected:
                "it must be a number of at least 0, a multiple such as 2x, or a signed change \
                 such as +10%"
                    .to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_relative_to_the_current_one() {
        let rows =
            [("3", 3.0), ("2x", 8.0), ("0.5x", 2.0), ("+10%", 4.4), ("-50%", 2.0), ("0", 0.0)];
        for (text, value) in rows {
            assert!((number("k", text, 4.0).expect(text) - value).abs() < 1e-12, "{text}");
        }
        for text in ["", "x", "%", "-1", "inf", "NaN", "-150%", "two", "50%"] {
            assert!(number("k", text, 4.0).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_of_changes_is_parsed_in_order() {
        let changes = Change::list("a.b=2x, strategy=pipe").expect("changes");
        assert_eq!((&*changes[1].key, &*changes[0].value), ("strategy", "2x"));
        for wrong in ["", "a", "a=", "=1", "a=1,"] {
            assert!(Change::list(wrong).is_err(), "{wrong}");
        }
    }
}

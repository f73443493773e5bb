//! Parsers of option values.

use std::str::FromStr;
use std::time::Duration;

use lapwing_engine::draft::DRAFT_MAX;
use lapwing_engine::plan::OrderSwap;
use lapwing_engine::policy::by_name;
use lapwing_engine::{WaitLink, WaitMode};

/// Parses a count of at least one.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the tokens of a draft.
pub(crate) fn draft_length(text: &str) -> Result<usize, String> {
    match at_least_one(text)? {
        length @ ..=DRAFT_MAX => Ok(length),
        _ => Err(format!("a draft has at most {DRAFT_MAX} tokens")),
    }
}

/// A positive time with its unit: `250ms`, `0.25s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => return Err("a time needs its unit, ms or s, as in 250ms".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("'{number}' is not a number of ms or s, as in 250ms"))?;
    match Duration::try_from_secs_f64(number * unit) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("it must be more than 0 and finite, as in 250ms".to_owned()),
    }
}

/// A queue policy: its name, and parameters.
pub(crate) fn policy(text: &str) -> Result<String, String> {
    by_name(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Maximum number of tokens to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenLimit {
    /// This number.
    Tokens(usize),
    /// As many as the context holds.
    Context,
}

impl TokenLimit {
    /// The number, if there is one.
    pub(crate) fn tokens(self) -> Option<usize> {
        match self {
            TokenLimit::Tokens(tokens) => Some(tokens),
            TokenLimit::Context => None,
        }
    }
}

impl FromStr for TokenLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<TokenLimit, String> {
        match text {
            "max" => Ok(TokenLimit::Context),
            _ => at_least_one(text)
                .map(TokenLimit::Tokens)
                .map_err(|error| format!("{error} (a number, or 'max' for the whole context)")),
        }
    }
}

/// Parses `ID=BIAS`.
pub(crate) fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let (id, bias) = text.split_once('=').ok_or("expected ID=BIAS, as in 42=-1.5")?;
    let id = id.parse().map_err(|_| format!("'{id}' is not a token id"))?;
    let bias = bias.parse().map_err(|_| format!("'{bias}' is not a number"))?;
    Ok((id, bias))
}

/// Parses `LINK=MODE`.
pub(crate) fn wait(text: &str) -> Result<(WaitLink, WaitMode), String> {
    let names = |names: Vec<&str>| names.join(", ");
    let links = || names(WaitLink::ALL.map(WaitLink::name).to_vec());
    let modes = || names(WaitMode::ALL.iter().map(|mode| mode.name()).collect());
    let (link, mode) = text
        .split_once('=')
        .ok_or_else(|| format!("expected LINK=MODE with a link of {}", links()))?;
    let found = WaitLink::ALL.into_iter().find(|known| known.name() == link);
    let link = found.ok_or_else(|| format!("unknown link '{link}' (expected {})", links()))?;
    let found = WaitMode::ALL.iter().copied().find(|known| known.name() == mode);
    let mode = found.ok_or_else(|| format!("unknown wait mode '{mode}' (expected {})", modes()))?;
    Ok((link, mode))
}

/// Parses `on` or `off`.
pub(crate) fn order_swap(text: &str) -> Result<OrderSwap, String> {
    match text {
        "on" => Ok(OrderSwap::On),
        "off" => Ok(OrderSwap::Off),
        _ => Err(format!("'{text}' is not on or off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_invalid_counts_are_rejected() {
        assert_eq!(at_least_one("3"), Ok(3));
        for text in ["0", "-1", "many", "", "1.5"] {
            assert!(at_least_one(text).is_err(), "{text}");
        }
        assert_eq!("max".parse(), Ok(TokenLimit::Context));
        assert_eq!("7".parse(), Ok(TokenLimit::Tokens(7)));
        assert!("0".parse::<TokenLimit>().is_err());
    }

    #[test]
    fn a_bias_may_be_negative_or_minus_infinity() {
        assert_eq!(logit_bias("42=-1.5"), Ok((42, -1.5)));
        assert_eq!(logit_bias("0=-inf"), Ok((0, f32::NEG_INFINITY)));
        for text in ["42", "=1", "x=1", "-1=1", "1="] {
            assert!(logit_bias(text).is_err(), "{text}");
        }
    }
}

//! Changes for a what-if analysis, and their text form.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::timeline::{Span, Timeline};

/// Changes to a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// The changes, applied one after another.
    pub changes: Vec<Change>,
}

/// One change. [`WhatIf`] parses it from text.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `op:NAME*F`: every span of that name takes F times as long; inner spans keep their time. The
    /// name of an op selects also the fused groups that it is part of, as a whole.
    Op(String, f64),
    /// `activity:NAME*F`: every span of that activity takes F times as long.
    Activity(String, f64),
    /// `on:LANE*F`: all work on that lane takes F times as long.
    On(String, f64),
    /// `sync*F`: messages take F times as long from sending until they can be acted on.
    Sync(f64),
    /// `restart*F`: the time between work being ready on a free lane and its start is F times as
    /// long.
    Restart(f64),
    /// `slots:LANE*N`: the lane has N times as many slots, like N such devices.
    Slots(String, usize),
}

/// A change that cannot be parsed or does not apply to the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// The text is not a change.
    #[error(
        "'{text}' is not a change; write op:NAME*F, activity:NAME*F, on:LANE*F, sync*F, restart*F or slots:LANE*N"
    )]
    Form {
        /// The text.
        text: String,
    },
    /// The factor is not a number in range.
    #[error(
        "'{factor}' in '{text}' is not a valid factor; it must be a number from 0 to 1000000 (slots: an integer from 1 to 1024)"
    )]
    Factor {
        /// Factor as given.
        factor: String,
        /// Change as given.
        text: String,
    },
    /// The run has nothing of that name.
    #[error("this run has no {what} '{name}'; it has {known}")]
    Unknown {
        /// `op`, `activity` or `lane`.
        what: &'static str,
        /// Name as given.
        name: String,
        /// Names that exist.
        known: String,
    },
}

impl FromStr for WhatIf {
    type Err = WhatIfError;

    /// Parses comma-separated changes.
    fn from_str(text: &str) -> Result<WhatIf, WhatIfError> {
        let changes = text.split(',').map(|change| change.trim().parse());
        Ok(WhatIf { changes: changes.collect::<Result<_, _>>()? })
    }
}

impl FromStr for Change {
    type Err = WhatIfError;

    fn from_str(text: &str) -> Result<Change, WhatIfError> {
        let form = || WhatIfError::Form { text: text.to_owned() };
        let (what, factor) = text.rsplit_once('*').ok_or_else(form)?;
        let wrong = || WhatIfError::Factor { factor: factor.to_owned(), text: text.to_owned() };
        let number = || {
            let number = factor.trim().parse::<f64>().ok();
            number.filter(|n| (0.0..=1e6).contains(n)).ok_or_else(wrong)
        };
        let (kind, name) = what.split_once(':').unwrap_or((what, ""));
        let (kind, name) = (kind.trim(), name.trim().to_owned());
        match (kind, name.is_empty()) {
            ("sync", true) => Ok(Change::Sync(number()?)),
            ("restart", true) => Ok(Change::Restart(number()?)),
            ("op", false) => Ok(Change::Op(name, number()?)),
            ("activity", false) => Ok(Change::Activity(name, number()?)),
            ("on", false) => Ok(Change::On(name, number()?)),
            ("slots", false) => {
                let count = factor.trim().parse().ok().filter(|n| (1..=1024).contains(n));
                Ok(Change::Slots(name, count.ok_or_else(wrong)?))
            }
            _ => Err(form()),
        }
    }
}

impl Change {
    /// Whether an `op:NAME` change applies to a span.
    pub(super) fn selects(name: &str, span: &Span) -> bool {
        span.name == name || span.ops().any(|op| op == name)
    }

    /// Names of the fused groups to which an `op:NAME` change applies because the op is a part of
    /// them.
    pub fn groups<'a>(&self, timeline: &'a Timeline) -> BTreeSet<&'a str> {
        let Change::Op(name, _) = self else { return BTreeSet::new() };
        let spans = timeline.spans.iter();
        let groups = spans.filter(|span| span.name != *name && Change::selects(name, span));
        groups.map(|span| span.name.as_str()).collect()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Op(name, factor) => write!(f, "op:{name}*{factor}"),
            Change::Activity(name, factor) => write!(f, "activity:{name}*{factor}"),
            Change::On(lane, factor) => write!(f, "on:{lane}*{factor}"),
            Change::Sync(factor) => write!(f, "sync*{factor}"),
            Change::Restart(factor) => write!(f, "restart*{factor}"),
            Change::Slots(lane, count) => write!(f, "slots:{lane}*{count}"),
        }
    }
}

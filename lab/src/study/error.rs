//! Errors of studies.

use std::io;
use std::path::PathBuf;

use lapwing_plan::registry::ChoiceError;

/// Why a study cannot be read, run or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was to be done, such as `read`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A line of the study is wrong.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The study.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong, and what to write instead.
        reason: String,
    },
    /// The folder has something in it already.
    #[error("{} exists; {reason}", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
        /// What it has, and what to do.
        reason: String,
    },
    /// There is nothing to go on with.
    #[error("{} has no interrupted run of this study: {reason}", path.display())]
    NotResumable {
        /// The folder.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
}

/// What is wrong with a line of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) reason: String,
}

impl Wrong {
    pub(super) fn new(line: usize, reason: impl Into<String>) -> Wrong {
        Wrong { line, reason: reason.into() }
    }

    /// That nothing has this key or name, with the nearest right one.
    pub(super) fn unknown(line: usize, what: &str, name: &str, known: &[&str]) -> Wrong {
        let ChoiceError::Unknown { nearest, .. } = ChoiceError::unknown("", name, known) else {
            return Wrong::new(line, format!("unknown {what} '{name}'"));
        };
        let reason = match nearest {
            Some(nearest) => format!("unknown {what} '{name}'; did you mean '{nearest}'?"),
            None => format!("unknown {what} '{name}'; it must be one of {}", known.join(", ")),
        };
        Wrong::new(line, reason)
    }
}

//! Failures of commands: their messages and exit codes.

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use lapwing_engine::models::FetchError;
use lapwing_lab::simulate::SimulateError;

use super::limits;
use super::output::for_stderr;
use super::signals::Signal;
use super::visible::visible;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is invalid.
    Usage {
        /// What is wrong.
        message: String,
    },
    /// The command line is invalid, and the sentence says what to type instead.
    Instead {
        /// The sentence.
        message: String,
    },
    /// The command failed.
    Failed {
        /// What went wrong.
        message: String,
        /// What to do, if the message does not say it.
        hint: Option<String>,
    },
    /// Stdout was closed by its reader.
    ClosedPipe,
    /// A signal asked the program to end.
    Interrupted(Signal),
}

impl Failure {
    /// Wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage { message: message.into() }
    }

    /// Wrong usage, with a sentence that says what to type instead.
    pub(crate) fn instead(message: impl Into<String>) -> Failure {
        Failure::Instead { message: message.into() }
    }

    /// A failure without a hint.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure::Failed { message: message.into(), hint: None }
    }

    /// Adds a hint.
    pub(crate) fn hint(self, text: impl Into<String>) -> Failure {
        match self {
            Failure::Failed { message, .. } => Failure::Failed { message, hint: Some(text.into()) },
            other => other,
        }
    }

    /// A file that could not be read or written.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
        Failure::failed(format!("cannot {doing} {}: {error}", path.display()))
    }

    /// Exit code of the process.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::Failed { .. } => 1,
            Failure::Usage { .. } | Failure::Instead { .. } => 2,
            Failure::Interrupted(signal) => signal.code(),
        }
    }

    /// The failure and its hint, styled; empty if nothing is to be said.
    pub(crate) fn text(&self) -> String {
        let (message, hint) = match self {
            Failure::Failed { message, hint } => {
                (Some(message), limits::hint_in(message).or(hint.as_deref()))
            }
            Failure::Usage { message } => (Some(message), Some("--help shows all options")),
            Failure::Instead { message } => (Some(message), None),
            Failure::ClosedPipe | Failure::Interrupted(_) => (None, None),
        };
        let mut text = String::new();
        if let Some(message) = message {
            let red = AnsiColor::Red.on_default().bold();
            text.push_str(&format!("{red}error:{red:#} {}\n", visible(message)));
        }
        if let Some(hint) = hint {
            let bold = Style::new().bold();
            text.push_str(&format!("{bold}hint:{bold:#} {}\n", visible(hint)));
        }
        text
    }

    /// Prints the failure to stderr and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        // If stderr is closed too, only the exit code remains.
        let text = self.text();
        let _ = anstream::stderr().lock().write_all(for_stderr(&text).as_bytes());
        ExitCode::from(self.code())
    }
}

impl From<lapwing_engine::Error> for Failure {
    fn from(error: lapwing_engine::Error) -> Failure {
        let failure = Failure::failed(error.to_string());
        match error.is_prompt_too_long() {
            true => failure
                .hint("-c TOKENS (--ctx) sets the context, up to the model's training context"),
            false => failure,
        }
    }
}

impl From<SimulateError> for Failure {
    fn from(error: SimulateError) -> Failure {
        match error {
            SimulateError::UnknownKey { .. }
            | SimulateError::BadValue { .. }
            | SimulateError::NoChange { .. }
            | SimulateError::Twice { .. }
            | SimulateError::UnknownGroup { .. }
            | SimulateError::UnknownPreset { .. } => Failure::usage(error.to_string()),
            _ => Failure::failed(error.to_string()),
        }
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Failure {
        Failure::failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_as_documented() {
        let codes = [
            (Failure::failed("x"), 1),
            (Failure::usage("x"), 2),
            (Failure::instead("x"), 2),
            (Failure::Interrupted(Signal::Interrupt), 130),
            (Failure::Interrupted(Signal::Terminate), 143),
            (Failure::Interrupted(Signal::HangUp), 129),
            (Failure::ClosedPipe, 0),
        ];
        for (failure, code) in codes {
            assert_eq!(failure.code(), code, "{failure:?}");
        }
    }
}

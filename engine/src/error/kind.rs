//! Kinds of errors, and the statuses that an HTTP service answers them with.

use super::{Error, RunError};

/// What kind of failure this is, and who can fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model file is missing, damaged or not supported.
    Model,
    /// The model could not be fetched: its name, the network or the disk is at fault.
    Fetch,
    /// A setting of the engine is invalid, or not possible on this machine.
    Config,
    /// The request is invalid, or exceeds a limit of the engine.
    Request,
    /// Too many requests; the same request may succeed later.
    Busy,
    /// The model's answer is cut, or has another form than the program needs; another answer may succeed.
    Answer,
    /// The engine has failed or has been shut down.
    Engine,
}

impl ErrorKind {
    /// The HTTP status of this kind: 400 for an invalid request, 429 if there are too many, and 500 otherwise.
    /// [`Error::http_status`] also tells an engine that is shut down from one that has failed.
    pub fn http_status(self) -> u16 {
        match self {
            ErrorKind::Request => 400,
            ErrorKind::Busy => 429,
            ErrorKind::Model
            | ErrorKind::Fetch
            | ErrorKind::Config
            | ErrorKind::Answer
            | ErrorKind::Engine => 500,
        }
    }
}

impl Error {
    /// The HTTP status that a service answers with: that of the [kind](ErrorKind::http_status), and 503 if the engine is shut
    /// down. `lapwing serve` answers with the same.
    ///
    /// ```
    /// use lapwing::{Error, RunError};
    ///
    /// assert_eq!(Error::from(RunError::EmptyPrompt).http_status(), 400);
    /// assert_eq!(Error::from(RunError::QueueFull { limit: 8 }).http_status(), 429);
    /// assert_eq!(Error::from(RunError::ShuttingDown).http_status(), 503);
    /// ```
    pub fn http_status(&self) -> u16 {
        match self.run_error() {
            Some(RunError::ShuttingDown) => 503,
            _ => self.kind().http_status(),
        }
    }
}

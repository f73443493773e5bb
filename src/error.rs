//! Errors of the facade.

use std::path::PathBuf;

use lapwing_actors::RunError;
use lapwing_actors::drive::measure::MeasureError;
use lapwing_actors::sample::SamplingError;
use lapwing_kernels::cpu::BindError;
use lapwing_kernels::kv::KvTooLarge;
use lapwing_kernels::model::ModelError;
use lapwing_kernels::weights::WeightError;
use lapwing_plan::PlanError;
use lapwing_plan::profile::ProfileError;

use crate::chat::ChatError;
use crate::devices::DeviceSpecError;
use crate::tokenizer::TokenizerError;

/// Why an engine cannot be built, or a request cannot be served. Its text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct Error {
    kind: ErrorKind,
    source: Cause,
}

/// Whose turn it is to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model file is missing, broken or not supported.
    Model,
    /// The engine's settings make no sense on this machine.
    Config,
    /// The request makes no sense, or does not fit the engine's limits.
    Request,
    /// Too many requests; the same one may succeed later.
    Busy,
    /// The engine has failed or is shut down.
    Engine,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Weights(#[from] WeightError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Memory(#[from] KvTooLarge),
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Device(#[from] DeviceSpecError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Measure(#[from] MeasureError),
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{what} is {found}, but must be {expected}")]
    Config { what: &'static str, found: String, expected: String },
    #[error("an NPU alone cannot run a model; use --device cpu+npu")]
    NpuAlone,
    #[error("the model {path} has no chat template; send plain text instead (on the command line: --raw)", path = path.display())]
    NoTemplate { path: PathBuf },
    #[error("work beside the caller's runtime could not be done: {0}")]
    Thread(std::io::Error),
}

impl Error {
    /// Whose turn it is to act.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The runtime's own failure behind this error, if it is one.
    pub fn run_error(&self) -> Option<&RunError> {
        match &self.source {
            Cause::Run(error) => Some(error),
            _ => None,
        }
    }

    /// Why the strategy finds no route on the engine's devices, if that is why.
    pub fn plan_error(&self) -> Option<&PlanError> {
        match &self.source {
            Cause::Plan(error) | Cause::Run(RunError::Plan { source: error }) => Some(error),
            _ => None,
        }
    }

    /// Whether measuring was broken off, if that is what this is.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.source, Cause::Measure(MeasureError::Cancelled))
    }

    pub(crate) fn config(what: &'static str, found: impl ToString, expected: &str) -> Error {
        Cause::Config { what, found: found.to_string(), expected: expected.to_owned() }
            .of(ErrorKind::Config)
    }

    pub(crate) fn npu_alone() -> Error {
        Cause::NpuAlone.of(ErrorKind::Config)
    }

    pub(crate) fn no_template(path: PathBuf) -> Error {
        Cause::NoTemplate { path }.of(ErrorKind::Request)
    }

    pub(crate) fn thread(error: std::io::Error) -> Error {
        Cause::Thread(error).of(ErrorKind::Engine)
    }
}

impl Cause {
    fn of(self, kind: ErrorKind) -> Error {
        Error { kind, source: self }
    }
}

macro_rules! error_from {
    ($($cause:ty => $kind:ident),* $(,)?) => {
        $(impl From<$cause> for Error {
            fn from(cause: $cause) -> Error {
                Cause::from(cause).of(ErrorKind::$kind)
            }
        })*
    };
}

error_from! {
    WeightError => Model,
    ModelError => Model,
    BindError => Model,
    TokenizerError => Model,
    ChatError => Request,
    PlanError => Config,
    DeviceSpecError => Config,
    KvTooLarge => Config,
    ProfileError => Config,
    MeasureError => Engine,
    SamplingError => Request,
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Error {
        let kind = match error {
            RunError::EmptyPrompt
            | RunError::PromptTooLong { .. }
            | RunError::TokenId { .. }
            | RunError::OutOfKvPages { .. } => ErrorKind::Request,
            RunError::QueueFull { .. } => ErrorKind::Busy,
            _ => ErrorKind::Engine,
        };
        Cause::Run(error).of(kind)
    }
}

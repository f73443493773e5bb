//! [`Error`], and the errors that convert into it with `?`.

mod causes;
mod convert;
mod debug;
mod for_clients;
mod kind;

use std::path::PathBuf;

pub use lapwing_actors::RunError;
pub use lapwing_actors::drive::measure::MeasureError;
pub use lapwing_actors::sample::SamplingError;
pub use lapwing_kernels::cpu::{
    BindError, CoresError, LockError, LostWeights, MatrixError, PackError, PackedFault,
};
pub use lapwing_kernels::device::DeviceError;
pub use lapwing_kernels::kv::{KvTooLarge, UnknownKvDtype};
pub use lapwing_kernels::model::ModelError;
#[cfg(feature = "openvino")]
pub use lapwing_kernels::npu::OpenVinoError;
#[cfg(feature = "qnn")]
pub use lapwing_kernels::npu::QnnError;
#[cfg(feature = "opencl")]
pub use lapwing_kernels::opencl::OpenClError;
pub use lapwing_kernels::requant::UnknownRequant;
use lapwing_kernels::weights::WriteError;
pub use lapwing_kernels::weights::{Fault, MetadataError, SplitFault, WeightError};
pub use lapwing_plan::PlanError;
pub use lapwing_plan::plans::PlansError;
pub use lapwing_plan::profile::ProfileError;
pub use lapwing_plan::registry::{ChoiceError, NameError};

pub use crate::chat::{ChatError, ChatFault};
pub use crate::devices::DeviceSpecError;
pub use crate::drivers::fault::DriverFault;
pub use crate::hugging_face::HfError;
#[cfg(feature = "fetch")]
pub use crate::models::FetchError;
use crate::prefix_file::PrefixFileError;
pub use crate::ranges::error::RangesError;
pub use crate::rerank::RerankError;
#[cfg(feature = "structured")]
pub use crate::structured::GrammarError;
pub use crate::tokenizer::{Inexpressible, NotAnId, TokenizerError, VocabularyDifference};
#[cfg(feature = "structured")]
pub use crate::tools::{ArgumentsError, ToolError};
#[cfg(feature = "schemars")]
pub use crate::typed::TypedError;
pub use kind::ErrorKind;

/// Why an engine cannot be built, or a request cannot be served. The message says what to do. The `Debug` form is the message
/// with its causes, which is what a `main` that returns the error prints.
#[derive(thiserror::Error)]
#[error("{source}")]
pub struct Error {
    kind: ErrorKind,
    source: Cause,
}

/// What to do if the system refuses a thread.
const THREADS_HINT: &str = "if the limit on threads or processes is reached, raise it (`ulimit -u`, or the pids limit of \
                            the container)";

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
    HuggingFace(#[from] HfError),
    #[error(transparent)]
    NotAnId(#[from] NotAnId),
    #[error(transparent)]
    Memory(#[from] KvTooLarge),
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Device(#[from] DeviceSpecError),
    #[error(transparent)]
    Driver(#[from] DriverFault),
    #[error(transparent)]
    Cores(#[from] CoresError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(
        "the prefixes cannot be kept in {}: {source}; choose another folder, or keep none",
        path.display()
    )]
    Prefixes { path: PathBuf, source: PrefixFileError },
    #[error("draft model: {0}")]
    Vocabulary(#[from] VocabularyDifference),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Measure(#[from] MeasureError),
    #[error(transparent)]
    Plans(#[from] PlansError),
    #[error("the preparation was cancelled; graphs that were done are kept")]
    PreparationCancelled,
    #[error(
        "cannot write the stand-in with which devices are measured to {}: {source}; TMPDIR names another folder",
        std::env::temp_dir().display()
    )]
    Sample { source: WriteError },
    #[error(transparent)]
    Ranges(#[from] RangesError),
    #[error(transparent)]
    Rerank(#[from] RerankError),
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    #[cfg(feature = "opencl")]
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
    #[cfg(feature = "openvino")]
    #[error(transparent)]
    OpenVino(#[from] OpenVinoError),
    #[cfg(feature = "qnn")]
    #[error(transparent)]
    Qnn(#[from] QnnError),
    #[cfg(feature = "fetch")]
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[cfg(feature = "structured")]
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    #[cfg(feature = "structured")]
    #[error(transparent)]
    Tools(#[from] ToolError),
    #[cfg(feature = "structured")]
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    #[cfg(feature = "schemars")]
    #[error(transparent)]
    Typed(Box<TypedError>),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{what} is {found}, but must be {expected}")]
    Config { what: &'static str, found: String, expected: String },
    #[error("unknown {what} '{found}' (expected one of {known})")]
    Unknown { what: &'static str, found: String, known: String },
    #[error("logit_bias has token id {id}, but ids must be between 0 and {}", vocab - 1)]
    Bias { id: u32, vocab: usize },
    #[error(
        "the model's file asks for pooling type {number}, but known for embeddings are 0 none, 1 mean, 2 cls and 3 last; 4 makes it a reranker (Engine::rerank); for embeddings choose one with EmbedRequest::pooling (on the command line: --pooling)"
    )]
    Pooling { number: u32 },
    #[error("an NPU alone cannot run a model; use --device cpu+npu")]
    NpuAlone,
    #[error("the model {path} has no chat template; send plain text instead (on the command line: --raw)", path = path.display())]
    NoTemplate { path: PathBuf },
    #[error(
        "the model {path} cannot hold conversations: it {fault}; use an instruction-tuned model, or leave out EngineBuilder::require_chat and send plain text",
        path = path.display()
    )]
    NoChat { path: PathBuf, fault: ChatFault },
    #[error(
        "the prompt has {bytes} bytes, which are at least {tokens} tokens, but the context holds {context}; shorten it or set a larger context"
    )]
    PromptTooLong { bytes: usize, tokens: usize, context: usize },
    #[error("cannot start a thread: {0}; {THREADS_HINT}")]
    Thread(#[source] std::io::Error),
    #[error("cannot run a background task: {0}")]
    Background(std::io::Error),
}

impl Error {
    /// What kind of failure this is, and who can fix it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The underlying failure of the runtime, if there is one.
    pub fn run_error(&self) -> Option<&RunError> {
        match &self.source {
            Cause::Run(error) => Some(error),
            _ => None,
        }
    }

    /// Why the strategy finds no route on the engine's devices, if that is the cause.
    pub fn plan_error(&self) -> Option<&PlanError> {
        match &self.source {
            Cause::Plan(error) | Cause::Run(RunError::Plan { source: error }) => Some(error),
            _ => None,
        }
    }

    /// Whether the prompt has more tokens than the context holds.
    pub fn is_prompt_too_long(&self) -> bool {
        let is_of_run = matches!(self.source, Cause::Run(RunError::PromptTooLong { .. }));
        is_of_run || matches!(self.source, Cause::PromptTooLong { .. })
    }

    /// Whether a measurement or a preparation was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self.source,
            Cause::Measure(MeasureError::Cancelled)
                | Cause::PreparationCancelled
                | Cause::Ranges(RangesError::Cancelled)
        )
    }

    /// The answer to a request is that of another kind of request.
    pub(crate) fn unexpected(request: &str) -> Error {
        let reason = format!("{request} got the answer of another kind of request");
        RunError::ActorDied { actor: "scheduler".to_owned(), reason }.into()
    }

    /// A setting has a value that is not `expected`.
    pub fn config(what: &'static str, found: impl ToString, expected: &str) -> Error {
        Cause::Config { what, found: found.to_string(), expected: expected.to_owned() }
            .of(ErrorKind::Config)
    }

    /// A text does not choose what it is to choose.
    pub(crate) fn choice(what: &'static str, text: &str, error: &ChoiceError) -> Error {
        Error::config(what, format!("'{text}'"), &error.expected())
    }

    pub(crate) fn unknown(what: &'static str, found: &str, known: &str) -> Error {
        Cause::Unknown { what, found: found.to_owned(), known: known.to_owned() }
            .of(ErrorKind::Config)
    }

    pub(crate) fn prefixes(path: PathBuf, source: PrefixFileError) -> Error {
        Cause::Prefixes { path, source }.of(ErrorKind::Engine)
    }

    pub(crate) fn bias(id: u32, vocab: usize) -> Error {
        Cause::Bias { id, vocab }.of(ErrorKind::Request)
    }

    pub(crate) fn pooling(number: u32) -> Error {
        Cause::Pooling { number }.of(ErrorKind::Request)
    }

    pub(crate) fn preparation_cancelled() -> Error {
        Cause::PreparationCancelled.of(ErrorKind::Engine)
    }

    pub(crate) fn sample(error: WriteError) -> Error {
        Cause::Sample { source: error }.of(ErrorKind::Engine)
    }

    pub(crate) fn npu_alone() -> Error {
        Cause::NpuAlone.of(ErrorKind::Config)
    }

    pub(crate) fn no_template(path: PathBuf) -> Error {
        Cause::NoTemplate { path }.of(ErrorKind::Request)
    }

    pub(crate) fn no_chat(path: PathBuf, fault: ChatFault) -> Error {
        Cause::NoChat { path, fault }.of(ErrorKind::Model)
    }

    pub(crate) fn prompt_too_long(bytes: usize, tokens: usize, context: usize) -> Error {
        Cause::PromptTooLong { bytes, tokens, context }.of(ErrorKind::Request)
    }

    pub(crate) fn thread(error: std::io::Error) -> Error {
        // An error of the system has a number; a panic of the task has none.
        match error.raw_os_error() {
            Some(_) => Cause::Thread(error).of(ErrorKind::Engine),
            None => Cause::Background(error).of(ErrorKind::Engine),
        }
    }
}

impl Cause {
    fn of(self, kind: ErrorKind) -> Error {
        Error { kind, source: self }
    }
}

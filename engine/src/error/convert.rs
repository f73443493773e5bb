//! Which kind of failure each error is.

use super::*;

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
    HfError => Model,
    NotAnId => Request,
    ChatError => Request,
    PlanError => Config,
    NameError => Config,
    DeviceSpecError => Config,
    DriverFault => Config,
    CoresError => Config,
    LockError => Config,
    VocabularyDifference => Config,
    KvTooLarge => Config,
    ProfileError => Config,
    PlansError => Config,
    MeasureError => Engine,
    RangesError => Config,
    SamplingError => Request,
}

impl From<RerankError> for Error {
    fn from(error: RerankError) -> Error {
        let kind = match error {
            RerankError::NoHead { .. } | RerankError::NoPairs { .. } => ErrorKind::Request,
            RerankError::Template { .. } | RerankError::Metadata(_) | RerankError::Head(_) => {
                ErrorKind::Model
            }
        };
        Cause::Rerank(error).of(kind)
    }
}

#[cfg(feature = "opencl")]
error_from! { OpenClError => Config }

#[cfg(feature = "openvino")]
error_from! { OpenVinoError => Config }

#[cfg(feature = "qnn")]
error_from! { QnnError => Config }

#[cfg(feature = "fetch")]
error_from! { FetchError => Fetch }

#[cfg(feature = "structured")]
error_from! { GrammarError => Request, ToolError => Request, ArgumentsError => Answer }

#[cfg(feature = "schemars")]
impl From<TypedError> for Error {
    fn from(error: TypedError) -> Error {
        let kind = match error {
            TypedError::Engine(error) => return error,
            TypedError::Schema { .. } | TypedError::HasGrammar | TypedError::HasTools => {
                ErrorKind::Request
            }
            TypedError::Cut { .. } | TypedError::NoValue { .. } => ErrorKind::Answer,
        };
        Cause::Typed(Box::new(error)).of(kind)
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Error {
        let kind = match error {
            RunError::EmptyPrompt
            | RunError::PromptTooLong { .. }
            | RunError::TokenId { .. }
            | RunError::Encoder
            | RunError::Drafts
            | RunError::Constraint { .. }
            | RunError::OutOfKvPages { .. } => ErrorKind::Request,
            RunError::QueueFull { .. } | RunError::RateLimited { .. } => ErrorKind::Busy,
            _ => ErrorKind::Engine,
        };
        Cause::Run(error).of(kind)
    }
}

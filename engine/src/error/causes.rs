//! What an error says of its cause, for programs that act on it.

#[cfg(feature = "fetch")]
use super::FetchError;
#[cfg(feature = "schemars")]
use super::TypedError;
#[cfg(feature = "structured")]
use super::{ArgumentsError, GrammarError, ToolError};
use super::{Cause, ChatFault, Error, RerankError, WeightError};

impl Error {
    /// Whether the model's file is as its writer meant it, but this version of Lapwing does not support it: its architecture, a key
    /// or tensor, a format of weights, or its tokenizer. The message names what is missing.
    pub fn is_unsupported(&self) -> bool {
        match &self.source {
            Cause::Model(_) | Cause::Tokenizer(_) => true,
            Cause::Weights(error) => is_unknown_format(error),
            #[cfg(feature = "fetch")]
            Cause::Fetch(FetchError::BadHeader { source, .. }) => is_unknown_format(source),
            _ => false,
        }
    }

    /// Why the model cannot answer conversations, if [`EngineBuilder::require_chat`](crate::EngineBuilder::require_chat) says that
    /// it has to.
    pub fn chat_fault(&self) -> Option<&ChatFault> {
        match &self.source {
            Cause::NoChat { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Why documents cannot be ranked, if that is the cause.
    pub fn rerank_error(&self) -> Option<&RerankError> {
        match &self.source {
            Cause::Rerank(error) => Some(error),
            _ => None,
        }
    }

    /// What is wrong with the grammar of the request, if that is the cause.
    #[cfg(feature = "structured")]
    pub fn grammar_error(&self) -> Option<&GrammarError> {
        match &self.source {
            Cause::Grammar(error) => Some(error),
            _ => None,
        }
    }

    /// What is wrong with the tools of the request, if that is the cause.
    #[cfg(feature = "structured")]
    pub fn tool_error(&self) -> Option<&ToolError> {
        match &self.source {
            Cause::Tools(error) => Some(error),
            _ => None,
        }
    }

    /// What is wrong with the arguments of a call, if that is the cause.
    #[cfg(feature = "structured")]
    pub fn arguments_error(&self) -> Option<&ArgumentsError> {
        match &self.source {
            Cause::Arguments(error) => Some(error),
            _ => None,
        }
    }

    /// Why there is no value of a type, if that is the cause. An error of the engine is none: it converts into a
    /// [`TypedError`] and back.
    #[cfg(feature = "schemars")]
    pub fn typed_error(&self) -> Option<&TypedError> {
        match &self.source {
            Cause::Typed(error) => Some(error),
            _ => None,
        }
    }
}

fn is_unknown_format(error: &WeightError) -> bool {
    match error {
        WeightError::InFile { source, .. } => is_unknown_format(source),
        error => matches!(error, WeightError::UnsupportedType { .. }),
    }
}

//! What an error says of its cause, for programs that act on it.

use super::{Cause, ChatFault, Error};
#[cfg(feature = "structured")]
use super::{GrammarError, ToolError};

impl Error {
    /// Why the model cannot answer conversations, if [`EngineBuilder::require_chat`](crate::EngineBuilder::require_chat) says that
    /// it has to.
    pub fn chat_fault(&self) -> Option<&ChatFault> {
        match &self.source {
            Cause::NoChat { fault, .. } => Some(fault),
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
}

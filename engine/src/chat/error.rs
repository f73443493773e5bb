//! Errors of chat templates.

use std::error::Error as _;

/// Why a template cannot be used, or cannot render a conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The weight file's template is not text.
    #[error("the model's chat template cannot be read: {source}")]
    Metadata {
        /// What is wrong with the key.
        source: lapwing_kernels::weights::MetadataError,
    },
    /// The conversation is empty.
    #[error("the conversation has no messages; give at least one")]
    NoMessages,
    /// The template does not compile.
    #[error("the model's chat template does not compile: {source}; use raw text instead")]
    Invalid {
        /// The template engine's message, with the line.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The template uses what chat templates do not need, or is longer or more deeply nested than they
    /// are.
    #[error(
        "the model's chat template ({template}, line {line}) is not supported: {what}; use raw text instead"
    )]
    TooComplex {
        /// Key of the template in the weight file.
        template: &'static str,
        /// What it does.
        what: String,
        /// Line, from 1.
        line: usize,
    },
    /// The template exceeds a limit of time or memory.
    #[error(
        "the model's chat template ({template}, line {line}) was stopped: {what}; use raw text instead"
    )]
    Exceeded {
        /// Key of the template in the weight file.
        template: &'static str,
        /// The limit.
        what: String,
        /// Line, from 1.
        line: usize,
    },
    /// The template rejects these messages by `raise_exception`.
    #[error("the model's chat template rejects the conversation: {message}")]
    Refused {
        /// The template's message.
        message: String,
    },
    /// A message contains a control token, and the template looks into messages so that the token
    /// cannot be told from the template's own.
    #[error(
        "a message contains the control token {token}, which the model's chat template does not keep apart from its own; remove it from the message"
    )]
    ControlToken {
        /// The token's text.
        token: String,
    },
    /// The last message cannot be continued.
    #[error(
        "the last message cannot be continued, because {reason}; let the conversation end with a text, or let a new message begin"
    )]
    NotContinued {
        /// Why.
        reason: &'static str,
    },
    /// The template failed while rendering.
    #[error("the model's chat template failed: {source}")]
    Failed {
        /// The template engine's message, with the line.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ChatError {
    pub(super) fn invalid(source: minijinja::Error) -> Self {
        Self::Invalid { source: source.into() }
    }

    pub(super) fn too_complex(what: String, line: usize) -> Self {
        Self::TooComplex { template: super::names::NAME, what, line }
    }

    fn exceeded(what: &str, source: &minijinja::Error) -> Self {
        let line = source.line().unwrap_or(1);
        Self::Exceeded { template: super::names::NAME, what: what.to_owned(), line }
    }

    /// Distinguishes a rejection by the template from a failure.
    pub(super) fn failed(source: minijinja::Error) -> Self {
        if source.kind() == minijinja::ErrorKind::OutOfFuel {
            return Self::exceeded("it takes too many steps", &source);
        }
        let mut cause = source.source();
        while let Some(error) = cause {
            if let Some(Exceeded(what)) = error.downcast_ref::<Exceeded>() {
                return Self::exceeded(what, &source);
            }
            if let Some(refusal) = error.downcast_ref::<Refusal>() {
                return Self::Refused { message: refusal.0.clone() };
            }
            cause = error.source();
        }
        Self::Failed { source: source.into() }
    }
}

/// Carries the message of `raise_exception` through the template engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

/// Carries the limit through the template engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Exceeded(pub(super) String);

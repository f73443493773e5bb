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
    /// The template does not compile.
    #[error("the model's chat template does not compile: {source}; use raw text instead")]
    Invalid {
        /// The template engine's message, with the line.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The template rejects these messages by `raise_exception`.
    #[error("the model's chat template rejects the conversation: {message}")]
    Refused {
        /// The template's message.
        message: String,
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

    /// Distinguishes a rejection by the template from a failure.
    pub(super) fn failed(source: minijinja::Error) -> Self {
        let mut cause = source.source();
        while let Some(error) = cause {
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

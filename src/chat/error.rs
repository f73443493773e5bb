//! Why a conversation cannot be rendered.

use std::error::Error as _;

/// Why a template cannot be used, or cannot render a conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The weight file's template is no text.
    #[error("the model's chat template cannot be read: {source}")]
    Metadata {
        /// What is wrong with the key.
        source: lapwing_kernels::weights::MetadataError,
    },
    /// The template does not compile.
    #[error("the model's chat template does not compile: {source}; use raw text instead")]
    Invalid {
        /// What the template engine says, with the line.
        source: minijinja::Error,
    },
    /// The template itself says that it cannot render these messages.
    #[error("the model's chat template refuses the conversation: {message}")]
    Refused {
        /// The template's words.
        message: String,
    },
    /// The template failed while rendering.
    #[error("the model's chat template failed: {source}")]
    Failed {
        /// What the template engine says, with the line.
        source: minijinja::Error,
    },
}

impl ChatError {
    pub(super) fn invalid(source: minijinja::Error) -> Self {
        Self::Invalid { source }
    }

    /// Tells a refusal from a failure.
    pub(super) fn failed(source: minijinja::Error) -> Self {
        let mut cause = source.source();
        while let Some(error) = cause {
            if let Some(refusal) = error.downcast_ref::<Refusal>() {
                return Self::Refused { message: refusal.0.clone() };
            }
            cause = error.source();
        }
        Self::Failed { source }
    }
}

/// Carries the message of `raise_exception` through the template engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

//! Whether a model can answer conversations.

use super::{ChatError, ChatTemplate};

/// Why a model cannot answer conversations. Each text goes on after the name of the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatFault {
    /// It is an encoder.
    #[error("makes embeddings only")]
    Encoder,
    /// Its file has no chat template.
    #[error("has no chat template, so requests with messages are refused")]
    NoTemplate,
    /// Its chat template cannot be used.
    #[error("cannot answer messages: {source}")]
    Template {
        /// What is wrong with the template.
        source: ChatError,
    },
}

impl ChatFault {
    /// What is wrong with a model of which the file has this template; `None` if it can answer conversations. It need not be
    /// loaded.
    pub fn of(is_encoder: bool, template: Option<&str>) -> Option<ChatFault> {
        if is_encoder {
            return Some(ChatFault::Encoder);
        }
        let Some(template) = template else { return Some(ChatFault::NoTemplate) };
        let checked = ChatTemplate::new(template, "", "").check();
        checked.err().map(|source| ChatFault::Template { source })
    }
}

//! Reads chat templates from the metadata of a weight file.

use lapwing_kernels::weights::Metadata;

use super::{ChatError, ChatTemplate};
use crate::tokenizer::Tokenizer;

/// Key of the default template; the key of a named one ends in its name.
const KEY: &str = "tokenizer.chat_template";

impl ChatTemplate {
    /// The file's default template, or `None` if it has none.
    ///
    /// # Errors
    /// If the key has the wrong type.
    pub fn from_metadata(
        metadata: &Metadata,
        tokenizer: &Tokenizer,
    ) -> Result<Option<Self>, ChatError> {
        Self::from_key(metadata, tokenizer, KEY)
    }

    /// The file's template called `name`, such as `tool_use`, or `None` if it has none.
    ///
    /// # Errors
    /// If the key has the wrong type.
    pub fn named_from_metadata(
        metadata: &Metadata,
        tokenizer: &Tokenizer,
        name: &str,
    ) -> Result<Option<Self>, ChatError> {
        Self::from_key(metadata, tokenizer, &format!("{KEY}.{name}"))
    }

    fn from_key(
        metadata: &Metadata,
        tokenizer: &Tokenizer,
        key: &str,
    ) -> Result<Option<Self>, ChatError> {
        let source = metadata.opt_str(key).map_err(|source| ChatError::Metadata { source })?;
        Ok(source.map(|source| Self::for_tokenizer(source, tokenizer)))
    }
}

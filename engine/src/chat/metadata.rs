//! Reads chat templates from the metadata of a weight file.

use lapwing_kernels::weights::Metadata;

use super::{ChatError, ChatTemplate};
use crate::tokenizer::Tokenizer;

/// Key of the default template; the key of a named one ends in its name.
const KEY: &str = "tokenizer.chat_template";

/// Name of a template for a query and a document, which is none for conversations.
const RERANK: &str = "rerank";

/// Variables of further special tokens, and the keys of their ids.
pub(crate) const SPECIALS: [(&str, &str); 5] = [
    ("unk_token", "tokenizer.ggml.unknown_token_id"),
    ("pad_token", "tokenizer.ggml.padding_token_id"),
    // The key is spelled like this.
    ("sep_token", "tokenizer.ggml.seperator_token_id"),
    ("cls_token", "tokenizer.ggml.cls_token_id"),
    ("mask_token", "tokenizer.ggml.mask_token_id"),
];

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

    /// The text of the file's default template, or `None` if it has none.
    ///
    /// # Errors
    /// If the key has the wrong type.
    pub(crate) fn source_in(metadata: &Metadata) -> Result<Option<&str>, ChatError> {
        metadata.opt_str(KEY).map_err(|source| ChatError::Metadata { source })
    }

    /// Names of the templates for conversations that the file has beside its default one.
    pub(crate) fn names_in(metadata: &Metadata) -> impl Iterator<Item = &str> {
        let names =
            metadata.iter().filter_map(|entry| entry.0.strip_prefix(KEY)?.strip_prefix('.'));
        names.filter(|name| *name != RERANK)
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
        let Some(source) = source else { return Ok(None) };
        let mut template = Self::for_tokenizer(source, tokenizer);
        for (name, key) in SPECIALS {
            let id = metadata.opt_u32(key).map_err(|source| ChatError::Metadata { source })?;
            if let Some(text) = id.and_then(|id| tokenizer.token_text(id)) {
                template.specials.insert(name, text.to_owned());
            }
        }
        Ok(Some(template))
    }
}

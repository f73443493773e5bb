//! Token ids in answers, by vLLM's names of fields.

use lapwing_engine::tokenizer::Tokenizer;
use serde_json::Value;

use crate::error::ApiError;
use crate::fields::Fields;

/// Whether an answer has the ids of its tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdOptions {
    /// The ids of the prompt and of the answer stand beside the text.
    pub(super) is_returned: bool,
    /// Log-probabilities name tokens by their ids.
    as_names: bool,
}

impl IdOptions {
    /// Takes them from a request. Names of tokens have an effect on log-probabilities only.
    ///
    /// # Errors
    /// When a field has the wrong type.
    pub(super) fn take(fields: &mut Fields, has_logprobs: bool) -> Result<IdOptions, ApiError> {
        let is_returned = fields.take("return_token_ids")?.unwrap_or(false);
        let name = "return_tokens_as_token_ids";
        let as_names = match has_logprobs {
            true => fields.take(name)?.unwrap_or(false),
            false => {
                fields.drop_if(name, &[Value::Bool(false)]);
                false
            }
        };
        Ok(IdOptions { is_returned, as_names })
    }

    /// The ids, if they are returned.
    pub(super) fn returned(self, ids: &[u32]) -> Option<Vec<u32>> {
        self.is_returned.then(|| ids.to_vec())
    }

    /// How log-probabilities name tokens.
    pub(super) fn names(self, tokenizer: &Tokenizer) -> TokenNames<'_> {
        TokenNames { tokenizer, as_ids: self.as_names }
    }
}

/// How log-probabilities name tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenNames<'a> {
    tokenizer: &'a Tokenizer,
    as_ids: bool,
}

impl TokenNames<'_> {
    /// The name of a token: its text, or `token_id:ID`, which differs for all tokens.
    pub(super) fn name(self, id: u32) -> String {
        self.of_id(id).unwrap_or_else(|| self.text(id))
    }

    /// The name of a token, if that is made of its id.
    pub(super) fn of_id(self, id: u32) -> Option<String> {
        self.as_ids.then(|| format!("token_id:{id}"))
    }

    /// The text of a token. Bytes that are no whole characters have stand-ins in it.
    pub(super) fn text(self, id: u32) -> String {
        String::from_utf8_lossy(&self.bytes(id)).into_owned()
    }

    /// The bytes of a token.
    pub(super) fn bytes(self, id: u32) -> Vec<u8> {
        self.tokenizer.token_bytes(id).unwrap_or_default().into_owned()
    }
}

//! A vocabulary as the file `tokenizer.json` of the `tokenizers` library, which gives a text the same ids.
//!
//! What the library cannot compute is refused: a file is never written that gives other ids.

mod added;
mod error;
mod file;
mod method;
mod overlap;
mod scored_merges;
mod ties;

pub use error::{Inexpressible, Overlap};

use serde_json::{Value, json};

use super::vocabulary::Vocabulary;
use super::{Method, Tokenizer};
pub(crate) use added::AddedToken;
use file::{File, Parts};

/// The file.
pub(crate) struct TokenizerJson {
    pub(crate) bytes: Vec<u8>,
    /// Control tokens that overlap in texts in which they are broken, and are read in another way there.
    pub(crate) overlap: Option<Overlap>,
}

impl Tokenizer {
    /// The contents of `tokenizer.json`; `vocabulary` is the one that the tokenizer was built from.
    ///
    /// # Errors
    /// [`Inexpressible`] names what the library cannot compute.
    pub(crate) fn to_json(&self, vocabulary: &Vocabulary) -> Result<TokenizerJson, Inexpressible> {
        let added_tokens = self.added_tokens();
        let overlap = overlap::find(&added_tokens)?;
        let inner = &*self.inner;
        let parts = match &inner.method {
            Method::BytePairs(_) => method::byte_pairs(self, vocabulary)?,
            Method::RankedPieces(pieces) => method::ranked_pieces(self, vocabulary, pieces)?,
            Method::SentencePieces => method::sentence_pieces(self)?,
            Method::Unigram(_) => method::unigram(self, vocabulary)?,
            Method::WordPieces(_) => method::word_pieces(self, vocabulary)?,
            Method::Ids => return Err(Inexpressible::NoTokenizer),
        };
        let Parts { normalizer, pre_tokenizer, decoder, model } = parts;
        let file = File {
            version: "1.0",
            truncation: (),
            padding: (),
            added_tokens,
            normalizer,
            pre_tokenizer,
            post_processor: self.template(),
            decoder,
            model,
        };
        let bytes = serde_json::to_vec(&file).map_err(|source| Inexpressible::Json { source })?;
        Ok(TokenizerJson { bytes, overlap })
    }

    /// The tokens around one text and around two, or null if the file requests none.
    fn template(&self) -> Value {
        let inner = &*self.inner;
        let begin = inner.roles.bos.filter(|_| inner.add_bos);
        let end = inner.roles.eos.filter(|_| inner.add_eos);
        let separation = self.separation().unwrap_or_default();
        if begin.is_none() && end.is_none() && separation.is_empty() {
            return Value::Null;
        }
        let token = |id: &u32, part: u32| json!({"SpecialToken": {"id": inner.table.text(*id), "type_id": part}});
        let text = |name: &str, part: u32| json!({"Sequence": {"id": name, "type_id": part}});
        let first = |end: &[u32]| -> Vec<Value> {
            let begin = begin.iter().map(|id| token(id, 0));
            begin.chain([text("A", 0)]).chain(end.iter().map(|id| token(id, 0))).collect()
        };
        let end: Vec<u32> = end.into_iter().collect();
        let last = self.end_of_text();
        let mut pair = first(&separation);
        pair.push(text("B", 1));
        pair.extend(last.iter().map(|id| token(id, 1)));
        let used = begin.iter().chain(&end).chain(&separation).chain(&last);
        let specials: serde_json::Map<String, Value> = used
            .map(|id| {
                let text = inner.table.text(*id);
                (text.to_owned(), json!({"id": text, "ids": [id], "tokens": [text]}))
            })
            .collect();
        json!({"type": "TemplateProcessing", "single": first(&end), "pair": pair, "special_tokens": specials})
    }
}

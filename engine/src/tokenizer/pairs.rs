//! Two texts as one: a query and a document, for models that read them together.

use super::special_tokens::Control;
use super::vocabulary::Vocabulary;
use super::{Special, Tokenizer};

/// Word rules whose models have a separator between the ends of two texts, as RoBERTa has.
const SEPARATED: [&str; 3] = ["jina-v1-en", "jina-v2-code", "roberta-bpe"];

/// What stands between two texts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Separation {
    /// The separator of the file.
    token: Option<u32>,
    /// Whether it stands between two texts in addition to the end of the first.
    is_added: bool,
}

impl Separation {
    pub(super) fn of(vocabulary: &Vocabulary) -> Separation {
        let len = vocabulary.tokens.len();
        let token = vocabulary.roles.separator.filter(|id| (*id as usize) < len);
        let is_added = match vocabulary.model.as_str() {
            // The end of a text is the separator, so that only a file that states both has two.
            "bert" => vocabulary.add_sep == Some(true) && vocabulary.add_eos == Some(true),
            _ => vocabulary.add_sep.unwrap_or_else(|| {
                let pre = vocabulary.pre.as_deref().unwrap_or_default();
                SEPARATED.contains(&pre)
            }),
        };
        Separation { token, is_added }
    }
}

impl Tokenizer {
    /// The ids of two texts that a model reads together: the begin token, the first text, its end, the second text, its end, as
    /// far as the file requests these. Control tokens in the texts are text. `None` if the file requests nothing between the
    /// texts.
    pub fn encode_pair(&self, first: &str, second: &str) -> Option<Vec<u32>> {
        let inner = &*self.inner;
        let between = self.separation()?;
        let end = self.end_of_text();
        let mut ids = Vec::new();
        if inner.add_bos {
            ids.extend(inner.roles.bos);
        }
        ids.extend(self.encode(first, Special::Plain, false));
        ids.extend(between);
        ids.extend(self.encode(second, Special::Plain, false));
        ids.extend(end);
        Some(ids)
    }

    /// The tokens between two texts, or `None` if the file requests none.
    pub(super) fn separation(&self) -> Option<Vec<u32>> {
        let Separation { token, is_added } = self.inner.separation;
        let between: Vec<u32> =
            self.end_of_text().into_iter().chain(token.filter(|_| is_added)).collect();
        (!between.is_empty()).then_some(between)
    }

    /// The token behind a text, or behind two.
    pub(super) fn end_of_text(&self) -> Option<u32> {
        let inner = &*self.inner;
        match inner.add_eos {
            true => inner.roles.eos.or(inner.separation.token),
            false => None,
        }
    }

    /// The ids of a text that is composed of a file's own and of others: control tokens are matched only where they contain
    /// none of the byte positions `foreign`, which are ascending. No begin or end token is added.
    pub(crate) fn encode_composed(&self, text: &str, foreign: &[usize]) -> Vec<u32> {
        self.inner.encode(text, Control::Without(foreign), false)
    }
}

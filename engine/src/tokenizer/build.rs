//! Builds tokenizers from the metadata of a model file, with the defaults of each kind of tokenizer.

use std::sync::Arc;

use super::byte_pairs::BytePairs;
use super::error::TokenizerError;
use super::ids;
use super::roles::Roles;
use super::special_tokens::SpecialTokens;
use super::token_table::TokenTable;
use super::vocabulary::{RoleIds, Vocabulary};
use super::word_pieces::{self, WordPieces};
use super::words::WordRules;
use super::{Inner, Method, Tokenizer};

impl Tokenizer {
    /// Builds a tokenizer from a vocabulary.
    ///
    /// # Errors
    /// If the tokenizer model or its word rules are unknown, or the lists do not match each other.
    pub fn new(vocabulary: Vocabulary) -> Result<Self, TokenizerError> {
        let mut vocabulary = vocabulary.checked()?;
        let mut table = TokenTable::new(&vocabulary)?;
        let is_bert = vocabulary.model == "bert";
        if is_bert {
            vocabulary.roles = bert_roles(&vocabulary, &table)?;
        }
        let defaults = Defaults::of(&vocabulary)?;
        let roles = Roles::find(&vocabulary, &mut table, defaults.roles);
        strip_around_specials(&vocabulary, &mut table);
        let specials = SpecialTokens::new(&table)?;
        let inner = Inner {
            table,
            specials,
            method: defaults.method,
            roles,
            add_bos: is_bert || vocabulary.add_bos.unwrap_or(defaults.add_bos),
            add_eos: is_bert || vocabulary.add_eos.unwrap_or(false),
            add_space_prefix: vocabulary.add_space_prefix.unwrap_or(defaults.add_space_prefix),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// Defaults of a tokenizer model and its word rules, used where the file states nothing.
struct Defaults {
    method: Method,
    roles: RoleIds,
    add_bos: bool,
    add_space_prefix: bool,
}

impl Defaults {
    fn of(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        match vocabulary.model.as_str() {
            "gpt2" => {
                let rules = WordRules::named(vocabulary.pre.as_deref().unwrap_or("default"))?;
                if vocabulary.merges.is_empty() {
                    return Err(TokenizerError::NoMerges);
                }
                let pairs = BytePairs::new(&vocabulary.tokens, &vocabulary.merges, rules)?;
                let bos = rules.has_bos.then_some(11);
                Ok(Self {
                    method: Method::BytePairs(Box::new(pairs)),
                    roles: RoleIds { bos, eos: Some(11), ..RoleIds::default() },
                    add_bos: rules.add_bos,
                    add_space_prefix: false,
                })
            }
            "llama" => Ok(Self {
                method: Method::SentencePieces,
                roles: RoleIds { bos: Some(1), eos: Some(2), unk: Some(0), ..RoleIds::default() },
                add_bos: true,
                add_space_prefix: true,
            }),
            "bert" => {
                let unknown = vocabulary.roles.unk.unwrap_or_default();
                let pieces = WordPieces::new(vocabulary, unknown)?;
                Ok(Self {
                    method: Method::WordPieces(Box::new(pieces)),
                    roles: vocabulary.roles,
                    add_bos: true,
                    add_space_prefix: true,
                })
            }
            model if ids::is_model(model) => Ok(Self {
                method: Method::Ids,
                roles: RoleIds::default(),
                add_bos: false,
                add_space_prefix: true,
            }),
            model => Err(TokenizerError::UnknownModel { model: model.to_owned() }),
        }
    }
}

/// The begin, end and unknown tokens of WordPiece: those that the file states, or those with the usual
/// texts.
///
/// # Errors
/// If one is missing: every text begins and ends with these.
fn bert_roles(vocabulary: &Vocabulary, table: &TokenTable) -> Result<RoleIds, TokenizerError> {
    let stated = vocabulary.roles;
    let find = |stated: Option<u32>, role: &'static str| {
        let id = stated.filter(|id| *id < table.len()).or_else(|| table.id(role));
        id.map(Some).ok_or(TokenizerError::NoRole { role })
    };
    Ok(RoleIds {
        bos: find(stated.bos.or(stated.class), word_pieces::BEGIN)?,
        eos: find(stated.separator, word_pieces::END)?,
        unk: find(stated.unk, word_pieces::UNKNOWN)?,
        ..stated
    })
}

/// Marks special tokens that absorb the white space next to them. Files do not state this; it
/// follows from the names of models and word rules.
fn strip_around_specials(vocabulary: &Vocabulary, table: &mut TokenTable) {
    let pre = vocabulary.pre.as_deref().unwrap_or_default();
    let name = vocabulary.name.as_deref().unwrap_or_default().to_lowercase();
    let has = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(pre, &["jina-v2-de", "jina-v2-es", "jina-v2-code"]) {
        let mask = table.id("<mask>");
        mask.into_iter().for_each(|id| table.change(id, |traits| traits.strip_left = true));
    } else if has(&name, &["phi-3", "phi3"]) {
        for id in 0..table.len() {
            let text = table.text(id);
            let strips = table.traits(id).is_special() || text == "</s>";
            let strip_right = strips && !matches!(text, "<unk>" | "<s>" | "<|endoftext|>");
            table.change(id, |traits| traits.strip_right = strip_right);
        }
    }
}

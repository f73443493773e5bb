//! Builds tokenizers from the metadata of a model file, with the defaults of each kind of tokenizer.

use std::sync::Arc;

use super::byte_pairs::BytePairs;
use super::error::TokenizerError;
use super::ids;
use super::pairs::Separation;
use super::ranked_pieces::RankedPieces;
use super::roles::Roles;
use super::special_tokens::SpecialTokens;
use super::token_table::TokenTable;
use super::unigram::Unigram;
use super::vocabulary::{RoleIds, Vocabulary};
use super::word_pieces::{self, WordPieces};
use super::words::{Begin, Spelling, WordRules};
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
        let defaults = Defaults::of(&vocabulary, &table)?;
        let roles = Roles::find(&vocabulary, &mut table, defaults.roles);
        strip_around_specials(&vocabulary, &mut table);
        let specials = SpecialTokens::new(&table)?;
        let inner = Inner {
            separation: Separation::of(&vocabulary),
            table,
            specials,
            method: defaults.method,
            roles,
            add_bos: defaults.begin.is_on(vocabulary.add_bos),
            add_eos: is_bert || vocabulary.add_eos.unwrap_or(defaults.add_eos),
            add_space_prefix: vocabulary.add_space_prefix.unwrap_or(defaults.add_space_prefix),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// Defaults of a tokenizer model and its word rules, used where the file states nothing.
struct Defaults {
    method: Method,
    roles: RoleIds,
    begin: Begin,
    add_eos: bool,
    add_space_prefix: bool,
}

impl Defaults {
    fn of(vocabulary: &Vocabulary, table: &TokenTable) -> Result<Self, TokenizerError> {
        match vocabulary.model.as_str() {
            "gpt2" => {
                let rules = word_rules(vocabulary)?;
                let bos = rules.has_bos.then_some(11);
                let roles = RoleIds { bos, eos: Some(11), ..RoleIds::default() };
                Self::of_merges(vocabulary, table, rules, roles)
            }
            "gemma4" => {
                let rules = word_rules(vocabulary)?;
                Self::of_merges(vocabulary, table, rules, RoleIds::default())
            }
            "llama" => Ok(Self {
                method: Method::SentencePieces,
                roles: RoleIds { bos: Some(1), eos: Some(2), unk: Some(0), ..RoleIds::default() },
                begin: Begin::On,
                add_eos: false,
                add_space_prefix: true,
            }),
            "t5" => {
                let roles = RoleIds { eos: Some(1), unk: Some(2), ..RoleIds::default() };
                let unknown = [vocabulary.roles.unk, roles.unk].into_iter().flatten();
                let unknown = unknown.into_iter().find(|id| *id < table.len());
                let unknown = unknown.ok_or(TokenizerError::NoRole { role: "<unk>" })?;
                Ok(Self {
                    method: Method::Unigram(Box::new(Unigram::new(vocabulary, table, unknown)?)),
                    roles,
                    begin: Begin::Off,
                    add_eos: true,
                    add_space_prefix: false,
                })
            }
            "bert" => {
                let unknown = vocabulary.roles.unk.unwrap_or_default();
                let pieces = WordPieces::new(vocabulary, unknown)?;
                Ok(Self {
                    method: Method::WordPieces(Box::new(pieces)),
                    roles: vocabulary.roles,
                    begin: Begin::Always,
                    add_eos: true,
                    add_space_prefix: true,
                })
            }
            model if ids::is_model(model) => Ok(Self {
                method: Method::Ids,
                roles: RoleIds::default(),
                begin: Begin::Off,
                add_eos: false,
                add_space_prefix: true,
            }),
            model => Err(TokenizerError::UnknownModel { model: model.to_owned() }),
        }
    }

    /// Defaults of BPE by ranks.
    fn of_merges(
        vocabulary: &Vocabulary,
        table: &TokenTable,
        rules: &WordRules,
        roles: RoleIds,
    ) -> Result<Self, TokenizerError> {
        let merges = &vocabulary.merges;
        if merges.is_empty() {
            return Err(TokenizerError::NoMerges);
        }
        let method = match rules.spelling {
            Spelling::Bytes => {
                Method::BytePairs(Box::new(BytePairs::new(&vocabulary.tokens, merges, rules)?))
            }
            Spelling::Pieces | Spelling::PiecesAfterSpace => {
                Method::RankedPieces(Box::new(RankedPieces::new(table, merges, rules)?))
            }
        };
        Ok(Self { method, roles, begin: rules.begin, add_eos: false, add_space_prefix: false })
    }
}

/// The rules by which text is split into words before BPE by ranks.
pub(super) fn word_rules(vocabulary: &Vocabulary) -> Result<&'static WordRules, TokenizerError> {
    WordRules::named(match vocabulary.model.as_str() {
        "gemma4" => "gemma4",
        _ => vocabulary.pre.as_deref().unwrap_or("default"),
    })
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
/// follows from the names of models, architectures and word rules.
fn strip_around_specials(vocabulary: &Vocabulary, table: &mut TokenTable) {
    let pre = vocabulary.pre.as_deref().unwrap_or_default();
    let arch = vocabulary.architecture.as_deref().unwrap_or_default();
    let name = vocabulary.name.as_deref().unwrap_or_default().to_lowercase();
    let has = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let mut strip_left = |text: &str| {
        let id = table.id(text);
        id.into_iter().for_each(|id| table.change(id, |traits| traits.strip_left = true));
    };
    if has(pre, &["jina-v2-de", "jina-v2-es", "jina-v2-code", "mmbert"])
        || has(arch, &["nomic-bert-moe", "jina-bert-v3"])
    {
        strip_left("<mask>");
    } else if has(&name, &["phi-3", "phi3"]) {
        for id in 0..table.len() {
            let text = table.text(id);
            let strips = table.traits(id).is_special() || text == "</s>";
            let strip_right = strips && !matches!(text, "<unk>" | "<s>" | "<|endoftext|>");
            table.change(id, |traits| traits.strip_right = strip_right);
        }
    } else if has(&name, &["modern-bert"]) {
        strip_left("[MASK]");
    }
}

//! Reads a vocabulary from the metadata of a weight file.

use lapwing_kernels::weights::{Metadata, MetadataError};

use super::Tokenizer;
use super::error::TokenizerError;
use super::ids;
use super::vocabulary::{RoleIds, TokenKind, Vocabulary};

impl Tokenizer {
    /// Builds the tokenizer that a weight file describes.
    ///
    /// # Errors
    /// If a key is missing or has the wrong type, and as for [`Tokenizer::new`].
    pub fn from_metadata(metadata: &Metadata) -> Result<Self, TokenizerError> {
        Self::new(Vocabulary::from_metadata(metadata)?)
    }
}

impl Vocabulary {
    /// Reads the `tokenizer.ggml` keys.
    ///
    /// # Errors
    /// If a key that every tokenizer needs is missing, or a key has the wrong type.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let model = metadata.str("tokenizer.ggml.model")?;
        if ids::is_model(model) {
            return Ok(Self {
                model: model.to_owned(),
                tokens: ids::tokens(metadata)?,
                roles: RoleIds::from_metadata(metadata)?,
                add_bos: metadata.opt_bool("tokenizer.ggml.add_bos_token")?,
                add_eos: metadata.opt_bool("tokenizer.ggml.add_eos_token")?,
                add_sep: metadata.opt_bool("tokenizer.ggml.add_sep_token")?,
                ..Self::default()
            });
        }
        let kinds = metadata.opt_i32s("tokenizer.ggml.token_type")?.unwrap_or_default();
        let merges = metadata.opt_strings("tokenizer.ggml.merges")?;
        Ok(Self {
            model: model.to_owned(),
            pre: metadata.opt_str("tokenizer.ggml.pre")?.map(str::to_owned),
            name: metadata.opt_str("general.name")?.map(str::to_owned),
            architecture: metadata.opt_str("general.architecture")?.map(str::to_owned),
            tokens: metadata.strings("tokenizer.ggml.tokens")?.map(str::to_owned).collect(),
            kinds: kinds.into_iter().map(TokenKind::from_number).collect(),
            scores: scores(metadata)?,
            merges: merges.into_iter().flatten().map(str::to_owned).collect(),
            roles: RoleIds::from_metadata(metadata)?,
            add_bos: metadata.opt_bool("tokenizer.ggml.add_bos_token")?,
            add_eos: metadata.opt_bool("tokenizer.ggml.add_eos_token")?,
            add_sep: metadata.opt_bool("tokenizer.ggml.add_sep_token")?,
            add_space_prefix: metadata.opt_bool("tokenizer.ggml.add_space_prefix")?,
            remove_extra_whitespaces: metadata
                .opt_bool("tokenizer.ggml.remove_extra_whitespaces")?,
            char_map: char_map(metadata)?,
            lowercase: metadata.opt_bool("tokenizer.ggml.normalizer.lowercase")?,
            strip_accents: metadata.opt_bool("tokenizer.ggml.normalizer.strip_accents")?,
        })
    }
}

impl RoleIds {
    fn from_metadata(metadata: &Metadata) -> Result<Self, MetadataError> {
        let id = |role: &str| metadata.opt_u32(&format!("tokenizer.ggml.{role}_token_id"));
        let either = |old, new| Ok::<_, MetadataError>(id(old)?.or(id(new)?));
        Ok(Self {
            bos: id("bos")?,
            eos: id("eos")?,
            eot: id("eot")?,
            eom: id("eom")?,
            unk: id("unknown")?,
            class: id("cls")?,
            // The key is spelled like this.
            separator: either("seperator", "separator")?,
            fim_prefix: either("prefix", "fim_pre")?,
            fim_suffix: either("suffix", "fim_suf")?,
            fim_middle: either("middle", "fim_mid")?,
            fim_pad: id("fim_pad")?,
            fim_repository: id("fim_rep")?,
            fim_separator: id("fim_sep")?,
        })
    }
}

/// The scores; some files store them as integers.
fn scores(metadata: &Metadata) -> Result<Vec<f32>, MetadataError> {
    const KEY: &str = "tokenizer.ggml.scores";
    let scores = metadata.opt_f32s(KEY).or_else(|error| match metadata.opt_i32s(KEY) {
        Ok(scores) => {
            Ok(scores.map(|scores| scores.into_iter().map(|score| score as f32).collect()))
        }
        Err(_) => Err(error),
    })?;
    Ok(scores.unwrap_or_default())
}

/// The map of characters; some files store its bytes as signed integers.
fn char_map(metadata: &Metadata) -> Result<Vec<u8>, TokenizerError> {
    let bytes = metadata.opt_i32s("tokenizer.ggml.precompiled_charsmap")?.unwrap_or_default();
    let unsigned =
        |byte: i32| u8::try_from(byte).or_else(|_| i8::try_from(byte).map(i8::cast_unsigned));
    let bytes = bytes.into_iter().map(unsigned).collect::<Result<_, _>>();
    bytes.map_err(|_| TokenizerError::CharMap { what: "a value is no byte" })
}

//! Checked values of metadata keys.

mod experts;
mod layers;
mod limits;
mod recurrent;

use std::cell::RefCell;
use std::collections::HashSet;

pub(super) use experts::ExpertsForm;
pub(super) use limits::ExpertLimits;

use super::{Architecture, ModelConfig, ModelError};
use crate::weights::Metadata;

const PREDICTORS: &str = "nextn_predict_layers";

/// The keys of an architecture, with checks of their values.
pub(super) struct Keys<'a> {
    pub(super) meta: &'a Metadata,
    pub(super) arch: &'static str,
    /// Whether layers may lack attention or a feed-forward block.
    may_lack_blocks: bool,
    /// Whether the layers that predict further tokens are kept, as those of the model are.
    keeps_predictors: bool,
    /// Names of the keys that were asked for.
    read: RefCell<HashSet<String>>,
}

/// Windows of an architecture, unless a file says otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// Every layer has a window, but each one of so many.
    pub(super) period: usize,
    /// Positions that a window shows. Without it, a file without a window has none.
    pub(super) default: Option<usize>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(meta: &'a Metadata, arch: &Architecture) -> Keys<'a> {
        let (arch, may_lack_blocks) = (arch.name(), arch.may_lack_blocks());
        let (keeps_predictors, read) = (false, RefCell::default());
        Keys { meta, arch, may_lack_blocks, keeps_predictors, read }
    }

    /// The same keys, for all layers of a file.
    pub(super) fn with_predictors(self) -> Keys<'a> {
        Keys { keeps_predictors: true, ..self }
    }

    /// A key by its name within the architecture. It counts as read.
    pub(super) fn key(&self, name: &str) -> String {
        self.read.borrow_mut().insert(name.to_owned());
        format!("{}.{name}", self.arch)
    }

    /// Whether a key was read.
    pub(super) fn is_read(&self, name: &str) -> bool {
        self.read.borrow().contains(name)
    }

    pub(super) fn check(
        &self,
        name: &str,
        found: impl ToString,
        good: bool,
        expected: impl FnOnce() -> String,
    ) -> Result<(), ModelError> {
        if good {
            return Ok(());
        }
        Err(ModelError::BadValue {
            key: self.key(name),
            found: found.to_string(),
            expected: expected(),
        })
    }

    pub(super) fn count(&self, name: &str, limit: usize) -> Result<usize, ModelError> {
        let value = self.meta.u32(&self.key(name))? as usize;
        self.check(name, value, (1..=limit).contains(&value), || {
            format!("it must be between 1 and {limit}")
        })?;
        Ok(value)
    }

    pub(super) fn opt_count(&self, name: &str) -> Result<Option<usize>, ModelError> {
        Ok(self.meta.opt_u32(&self.key(name))?.filter(|v| *v > 0).map(|v| v as usize))
    }

    pub(super) fn opt_u32(&self, name: &str) -> Result<Option<u32>, ModelError> {
        Ok(self.meta.opt_u32(&self.key(name))?)
    }

    /// A list of texts; empty without the key.
    pub(super) fn strings(&self, name: &str) -> Result<Vec<String>, ModelError> {
        let texts = self.meta.opt_strings(&self.key(name))?;
        Ok(texts.into_iter().flatten().map(str::to_owned).collect())
    }

    /// A factor, which is 1 where a file has 0.
    pub(super) fn factor(&self, name: &str, default: f32) -> Result<f32, ModelError> {
        let factor = self.opt_f32(name)?.unwrap_or(default);
        let factor = if factor == 0.0 { 1.0 } else { factor };
        self.check(name, factor, (1e-6..=1e6).contains(&factor), || {
            "it must be between 0.000001 and 1000000".to_owned()
        })?;
        Ok(factor)
    }

    /// The factor on scores, which replaces the usual one unless it is 0.
    pub(super) fn score_scale(&self, config: &ModelConfig) -> Result<f32, ModelError> {
        let scale = self.opt_f32("attention.scale")?.filter(|scale| *scale > 0.0);
        Ok(scale.unwrap_or(config.score_scale))
    }

    /// Notes a key that has no effect on text.
    pub(super) fn ignore(&self, name: &str) {
        self.key(name);
    }

    /// Layers of a file that predict further tokens, behind those of the model.
    pub(super) fn predictors(&self) -> Result<usize, ModelError> {
        Ok(self.opt_count(PREDICTORS)?.unwrap_or(0))
    }

    /// Leaves out the last layers of a file that predict further tokens and are no part of the model itself.
    pub(super) fn leave_out_predictors(&self, config: &mut ModelConfig) -> Result<(), ModelError> {
        let predictors = self.predictors()?;
        self.check(PREDICTORS, predictors, predictors < config.layers, || {
            format!("it must be less than the {} layers", config.layers)
        })?;
        if self.keeps_predictors {
            return Ok(());
        }
        config.layers -= predictors;
        config.blocks.truncate(config.layers);
        config.predictors = predictors;
        config.heads.truncate(config.layers);
        config.states.truncate(config.layers);
        config.ffn_widths.truncate(config.layers);
        config.rotated.truncate(config.layers);
        config.windowed.truncate(config.layers);
        Ok(())
    }

    /// Whether any value of a list is not 0.
    pub(super) fn flags(&self, name: &str) -> Result<bool, ModelError> {
        let key = self.key(name);
        match self.meta.get(&key) {
            None => Ok(false),
            Some(_) => Ok(self.meta.u32s(&key)?.iter().any(|value| *value != 0)),
        }
    }

    /// A number for each layer, of which a file may state one for all. The key has no prefix of the architecture.
    pub(super) fn bare_numbers(&self, key: &str, layers: usize) -> Result<Vec<f32>, ModelError> {
        let numbers = match self.meta.get(key) {
            Some(value) if value.is_array() => self.meta.f32s(key)?,
            _ => vec![self.meta.f32(key)?; layers],
        };
        match numbers.len() == layers && numbers.iter().all(|number| number.is_finite()) {
            true => Ok(numbers),
            false => Err(ModelError::BadValue {
                key: key.to_owned(),
                found: format!("a list of {}", numbers.len()),
                expected: format!("it must have a finite value for each of the {layers} layers"),
            }),
        }
    }

    /// The token between the parts of a text in vocabularies of WordPiece, which is the only kind whose models tell parts apart by
    /// the types of their tokens.
    pub(super) fn separator(&self) -> Result<Option<u32>, ModelError> {
        if self.meta.opt_str("tokenizer.ggml.model")? != Some("bert") {
            return Ok(None);
        }
        // The key is spelled like this.
        let key = |role: &str| self.meta.opt_u32(&format!("tokenizer.ggml.{role}_token_id"));
        if let Some(stated) = key("seperator")?.or(key("separator")?) {
            return Ok(Some(stated));
        }
        let tokens = self.meta.opt_strings("tokenizer.ggml.tokens")?;
        let found = tokens.into_iter().flatten().position(|text| text == "[SEP]");
        Ok(found.and_then(|id| u32::try_from(id).ok()))
    }

    /// Number of tokens, if the file says it.
    pub(super) fn tokens(&self) -> Result<Option<usize>, ModelError> {
        let listed = self.meta.opt_strings("tokenizer.ggml.tokens")?.map(|tokens| tokens.len());
        Ok(self.opt_count("vocab_size")?.or(listed))
    }

    /// Whether something is so, unless a file says otherwise.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, ModelError> {
        Ok(self.meta.opt_bool(&self.key(name))?.unwrap_or(default))
    }

    pub(super) fn epsilon(&self, name: &str) -> Result<f32, ModelError> {
        let value = self.meta.f32(&self.key(name))?;
        let good = value.is_finite() && value >= 0.0;
        self.check(name, value, good, || "it must be finite and not negative".to_owned())?;
        Ok(value)
    }

    /// Whether a number is there and is not 0.
    pub(super) fn has(&self, name: &str) -> Result<bool, ModelError> {
        Ok(self.opt_f32(name)?.is_some_and(|value| value > 0.0))
    }

    pub(super) fn rope_base(&self, name: &str) -> Result<Option<f32>, ModelError> {
        let value = self.opt_f32(name)?;
        self.check(name, value.unwrap_or_default(), value != Some(0.0), || {
            "it must be above 0".to_owned()
        })?;
        Ok(value)
    }

    pub(super) fn opt_f32(&self, name: &str) -> Result<Option<f32>, ModelError> {
        let value = self.meta.opt_f32(&self.key(name))?;
        let good = value.is_none_or(|v| v.is_finite() && v >= 0.0);
        self.check(name, value.unwrap_or_default(), good, || {
            "it must be finite and not negative".to_owned()
        })?;
        Ok(value)
    }

    /// Sets the sliding window, and which layers have it: those of the file's list, or all but each n-th, where a file may
    /// say n; 0 means all layers.
    pub(super) fn windows(
        &self,
        config: &mut ModelConfig,
        windows: Windows,
    ) -> Result<(), ModelError> {
        const PATTERN: &str = "attention.sliding_window_pattern";
        let layers = config.layers;
        let but_each = |period: usize| (1..=layers).map(|layer| layer % period != 0).collect();
        config.window = self.opt_count("attention.sliding_window")?.or(windows.default);
        let key = self.key(PATTERN);
        config.windowed = match self.meta.get(&key) {
            _ if config.window.is_none() => vec![false; layers],
            None => but_each(windows.period),
            Some(value) if value.is_array() => self.layer_flags(PATTERN, layers, None)?,
            Some(_) => match self.meta.u32(&key)? as usize {
                0 => vec![true; layers],
                period => but_each(period),
            },
        };
        Ok(())
    }

    pub(super) fn cap(&self, name: &str, default: Option<f32>) -> Result<Option<f32>, ModelError> {
        Ok(self.opt_f32(name)?.or(default).filter(|cap| *cap > 0.0))
    }

    /// Checks that the architecture has read the experts of a file that has any.
    pub(super) fn check_experts(&self, config: &ModelConfig) -> Result<(), ModelError> {
        // Files of Hunyuan call the dense block of all rows one expert.
        let experts = self.opt_count("expert_count")?.unwrap_or(0);
        self.check("expert_count", experts, experts <= 1 || config.experts.is_some(), || {
            "mixtures of experts of this architecture are not supported".to_owned()
        })
    }

    /// Checks that rows see what the architecture says. Some embedding models are decoders whose rows see
    /// later ones.
    pub(super) fn check_direction(&self, encoder: bool) -> Result<(), ModelError> {
        let causal = self.meta.opt_bool(&self.key("attention.causal"))?;
        let good = causal.is_none_or(|causal| causal != encoder);
        self.check("attention.causal", causal.unwrap_or_default(), good, || match encoder {
            true => "the rows of this architecture see later ones".to_owned(),
            false => "only architectures such as bert may have rows that see later ones".to_owned(),
        })
    }
}

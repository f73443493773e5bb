//! Keys that say how positions are encoded.

use super::keys::{Keys, Windows};
use super::{ModelConfig, ModelError};
use crate::op::{Activation, RopeScaling, Temperature};
use crate::weights::Value;

const LOG_MULTIPLIER: &str = "rope.scaling.yarn_log_multiplier";

impl Keys<'_> {
    /// How the rotation is stretched beyond the trained context.
    pub(super) fn rope_scaling(&self, context: usize) -> Result<RopeScaling, ModelError> {
        let kind = self.meta.opt_str(&self.key("rope.scaling.type"))?.unwrap_or("linear");
        let factor = match self.opt_f32("rope.scaling.factor")? {
            Some(factor) => factor,
            None => self.opt_f32("rope.scale_linear")?.unwrap_or(0.0),
        };
        let attn_factor = self.opt_f32("rope.scaling.attn_factor")?.filter(|factor| *factor > 0.0);
        let unscaled = factor == 0.0 || factor == 1.0;
        match kind {
            "none" | "linear" | "longrope" if attn_factor.is_some() && unscaled => {
                Ok(RopeScaling::LongRope { attn_factor: attn_factor.unwrap_or(1.0) })
            }
            "none" | "longrope" => Ok(RopeScaling::None),
            "linear" if unscaled => Ok(RopeScaling::None),
            "linear" => Ok(RopeScaling::Linear { factor }),
            "yarn" => Ok(RopeScaling::Yarn {
                factor: if factor == 0.0 { 1.0 } else { factor },
                original_context: self
                    .opt_count("rope.scaling.original_context_length")?
                    .unwrap_or(context),
                attn_factor: attn_factor.unwrap_or(1.0),
                beta_fast: self.opt_f32("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
                beta_slow: self.opt_f32("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
            }),
            other => Err(ModelError::BadValue {
                key: self.key("rope.scaling.type"),
                found: format!("'{other}'"),
                expected: "only none, linear, longrope and yarn are supported".to_owned(),
            }),
        }
    }

    /// Sets the window, and which layers have it: all but the first of each n, where a file may say n.
    pub(super) fn windows_but_first(
        &self,
        config: &mut ModelConfig,
        period: usize,
    ) -> Result<(), ModelError> {
        const PATTERN: &str = "attention.sliding_window_pattern";
        self.windows(config, Windows { period, default: None })?;
        let key = self.key(PATTERN);
        let is_list = self.meta.get(&key).is_some_and(Value::is_array);
        if config.window.is_none() || is_list {
            return Ok(());
        }
        let period = self.opt_count(PATTERN)?.unwrap_or(period);
        config.windowed = (0..config.layers).map(|layer| layer % period != 0).collect();
        Ok(())
    }

    /// The activation of gates, which some files name.
    pub(super) fn gate(&self) -> Result<Activation, ModelError> {
        const NAME: &str = "hidden_activation";
        let key = self.key(NAME);
        match self.meta.opt_str(&key)? {
            None | Some("gelu" | "gelu_pytorch_tanh") => Ok(Activation::GeluTanh),
            Some("silu" | "swish") => Ok(Activation::Silu),
            Some(other) => Err(ModelError::BadValue {
                key,
                found: format!("'{other}'"),
                expected: "only gelu and silu are supported".to_owned(),
            }),
        }
    }

    /// The factor on queries of models whose attention grows with the position; `length` is the trained context.
    pub(super) fn temperature(&self, length: usize) -> Result<Option<Temperature>, ModelError> {
        let scale = self.opt_f32("attention.temperature_scale")?.filter(|scale| *scale > 0.0);
        Ok(scale.map(|scale| Temperature { scale, length, offset: 0 }))
    }

    /// Divides YaRN's factor on the magnitude by one of the file's own.
    pub(super) fn yarn_log_multiplier(&self, config: &mut ModelConfig) -> Result<(), ModelError> {
        let multiplier = self.opt_f32(LOG_MULTIPLIER)?.unwrap_or(0.0);
        if let RopeScaling::Yarn { factor, attn_factor, .. } = &mut config.rope_scaling {
            *attn_factor /= 1.0 + 0.1 * multiplier * factor.ln();
        }
        Ok(())
    }

    /// YaRN's factors of latent attention, whose file has a tenth of the multiplier of the logarithm: one on the magnitude of what is
    /// rotated, which is divided by another that takes `divisor` for the multiplier, or else the file's; and the square of both on scores.
    pub(super) fn latent_yarn(
        &self,
        config: &mut ModelConfig,
        divisor: Option<f32>,
    ) -> Result<(), ModelError> {
        let multiplier = self.opt_f32(LOG_MULTIPLIER)?.unwrap_or(0.0) / 0.1;
        if let RopeScaling::Yarn { factor, attn_factor, .. } = &mut config.rope_scaling {
            let stretched = |multiplier: f32| 1.0 + 0.1 * multiplier * factor.ln();
            if multiplier != 0.0 {
                *attn_factor /= stretched(divisor.unwrap_or(multiplier));
            }
            let magnitude = *attn_factor * stretched(1.0);
            config.score_scale *= (magnitude * stretched(multiplier)).powi(2);
        }
        Ok(())
    }
}

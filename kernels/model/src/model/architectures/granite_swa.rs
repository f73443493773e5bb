//! Granite with sinks: the factors of Granite, and lists of the layers that have a window and of those that have a rotary embedding.

use super::super::keys::Keys;
use super::super::{ModelConfig, ModelError, SinkLayers};
use super::{Architecture, Decoder, granite};

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("granite_swa", &GraniteSwa);

struct GraniteSwa;

impl Decoder for GraniteSwa {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        granite::factors(keys, config)?;
        let layers = config.layers;
        config.window = Some(keys.count("attention.sliding_window", 1 << 30)?);
        config.windowed = keys.layer_flags("attention.sliding_window_pattern", layers, None)?;
        config.rotated = keys.layer_flags("attention.rope_pattern", layers, Some(true))?;
        config.rope_base_window = config.rope_base;
        config.sinks = SinkLayers::All;
        granite::experts(keys, config)
    }
}

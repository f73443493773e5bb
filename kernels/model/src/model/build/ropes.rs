//! Rotary embeddings of the layers.

use super::super::{LayerAttention, ModelError};
use super::Builder;
use crate::graph::WeightId;
use crate::op::{RopeScaling, RopeSpec};

impl Builder<'_> {
    /// Adds the rotary embeddings of all layers, each once: first those of layers with full attention.
    pub(super) fn add_ropes(&mut self) -> Result<(), ModelError> {
        let c = self.config;
        let is_windowed = |layer: usize| c.layer_attention(layer) != LayerAttention::Full;
        let is_scaled = |layer: usize| c.window_rope_is_scaled || !is_windowed(layer);
        let first_scaled = (0..c.layers).find(|layer| is_scaled(*layer)).unwrap_or(0);
        let factors = self.rope_factors(c.heads[first_scaled].rope_dims / 2)?;
        self.ropes = vec![0; c.layers];
        for windowed in [false, true] {
            for layer in (0..c.layers).filter(|layer| is_windowed(*layer) == windowed) {
                let (dims, is_scaled) = (c.heads[layer].rope_dims, is_scaled(layer));
                if is_scaled && dims != c.heads[first_scaled].rope_dims {
                    // The factors, if there are any, are those of another number of pairs.
                    self.rope_factors(dims / 2)?;
                }
                self.ropes[layer] = self.rope_index(RopeSpec {
                    base: if windowed { c.rope_base_window } else { c.rope_base },
                    dims,
                    pairs: c.rope_pairs,
                    scaling: if is_scaled { c.rope_scaling } else { RopeScaling::None },
                    factors: factors.filter(|_| is_scaled),
                });
            }
        }
        Ok(())
    }

    /// The divisors of the rotary frequencies: those of the file, or of the two sets of LongRoPE that for long contexts, if the
    /// context is longer than that of the training before it was stretched.
    fn rope_factors(&mut self, pairs: usize) -> Result<Option<WeightId>, ModelError> {
        let is_long = self.wanted.context > self.config.original_context;
        let long = self.opt_vector("rope_factors_long.weight", pairs)?;
        let short = self.opt_vector("rope_factors_short.weight", pairs)?;
        match if is_long { long } else { short } {
            Some(factors) => Ok(Some(factors)),
            None => {
                let all = self.config.rope_factors.unwrap_or(pairs);
                self.opt_part("rope_freqs.weight", 1, all, 0..pairs)
            }
        }
    }

    /// The index of a rotary embedding, which is added unless the graph has it.
    fn rope_index(&mut self, rope: RopeSpec) -> usize {
        let known = self.graph.ropes().iter().position(|other| *other == rope);
        known.unwrap_or_else(|| self.graph.add_rope(rope))
    }
}

//! Nodes of decoders.

use super::super::ModelError;
use super::super::architectures::Decoder;
use super::Builder;
use super::weights::Product;
use crate::graph::{ValueId, WeightId};
use crate::op::{Op, RopeScaling, RopeSpec, TableRow};

/// Indices of the rotary embeddings of layers with full attention, and of those with a window.
#[derive(Clone, Copy, Default)]
pub(super) struct Ropes {
    pub(super) full: usize,
    pub(super) window: usize,
}

impl Builder<'_> {
    /// All nodes of a decoder.
    ///
    /// With x + r·block(norm(x)) for the factor r on what a block adds, the hidden states are kept divided by r: y +
    /// block(norm(y)) is the same, as the RMS norm of y is that of x if its epsilon is divided by r².
    pub(super) fn decoder(&mut self, family: &dyn Decoder) -> Result<(), ModelError> {
        self.add_ropes()?;
        let c = self.config;
        let table = self.embedding()?;
        let scale = c.embedding_scale / c.residual_scale;
        let x = self.push(Op::Embed { table, scale }, &[], c.width, "embed");
        let mut x = family.embedded(self, x)?;
        for layer in 0..c.layers {
            self.layer = Some(layer);
            x = family.layer(self, x)?;
        }
        self.layer = None;
        let normed = self.norm("output_norm", x)?;
        self.head(normed, table)
    }

    fn add_ropes(&mut self) -> Result<(), ModelError> {
        let c = self.config;
        let factors = self.rope_factors()?;
        self.ropes.full = self.graph.add_rope(RopeSpec {
            base: c.rope_base,
            dims: c.rope_dims,
            pairs: c.rope_pairs,
            scaling: c.rope_scaling,
            factors,
        });
        let is_scaled = c.window_rope_is_scaled;
        let scaling = if is_scaled { c.rope_scaling } else { RopeScaling::None };
        let factors = factors.filter(|_| is_scaled);
        let full = &self.graph.ropes()[self.ropes.full];
        let window = RopeSpec { base: c.rope_base_window, scaling, factors, ..full.clone() };
        let is_other = window != *full && c.windowed.contains(&true);
        self.ropes.window = if is_other { self.graph.add_rope(window) } else { self.ropes.full };
        Ok(())
    }

    /// The divisors of the rotary frequencies: those of the file, or of the two sets of LongRoPE that for long contexts, if the
    /// context is longer than that of the training before it was stretched.
    fn rope_factors(&mut self) -> Result<Option<WeightId>, ModelError> {
        let pairs = self.config.rope_dims / 2;
        let is_long = self.context > self.config.original_context;
        let long = self.opt_vector("rope_factors_long.weight", pairs)?;
        let short = self.opt_vector("rope_factors_short.weight", pairs)?;
        match if is_long { long } else { short } {
            Some(factors) => Ok(Some(factors)),
            None => self.opt_vector("rope_freqs.weight", pairs),
        }
    }

    /// Adds to each row that of its position in the table of positions.
    pub(crate) fn position(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let (context, width) = (self.config.context, self.config.width);
        let table = self.matrix("position_embd.weight", context, width)?;
        let op = Op::AddRow { table, row: TableRow::Position };
        Ok(self.push(op, &[x], width, "position_embed"))
    }

    fn head(&mut self, x: ValueId, table: WeightId) -> Result<(), ModelError> {
        let c = self.config;
        let vocab = self.graph.weights()[table.0].rows;
        let (weight, rows) = self.output_matrix(table)?;
        let bias = self.opt_part("output.bias", 1, rows, 0..vocab)?;
        let product = Product { weight, bias, width: vocab, role: "output" };
        let mut logits = self.product("output", x, product)?;
        if c.logit_scale != 1.0 {
            let op = Op::Scale { factor: c.logit_scale };
            logits = self.push(op, &[logits], vocab, "logit_scale");
        }
        if let Some(cap) = c.logit_cap {
            self.push(Op::SoftCap { cap }, &[logits], vocab, "logit_cap");
        }
        Ok(())
    }
}

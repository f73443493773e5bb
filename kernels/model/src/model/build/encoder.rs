//! Nodes of encoders.

use super::super::ModelError;
use super::super::family::Encoder;
use super::{Builder, LayerForm};
use crate::graph::ValueId;
use crate::op::{Op, TableRow};

impl Builder<'_> {
    /// All nodes of an encoder. The output is the hidden states `[selected rows, width]`.
    pub(super) fn encoder(&mut self, family: &dyn Encoder) -> Result<(), ModelError> {
        self.add_ropes()?;
        let c = self.config;
        let table = self.embedding()?;
        let x = self.push(Op::Embed { table, scale: c.embedding_scale }, &[], c.width, "embed");
        let mut x = family.embedded(self, x)?;
        for layer in 0..c.layers {
            self.layer = Some(layer);
            x = family.layer(self, x)?;
        }
        self.layer = None;
        if let Some(role) = family.last_norm() {
            self.norm(role, x)?;
        }
        Ok(())
    }

    /// A layer whose norms follow what its blocks add to their inputs, as BERT's. Some files have one more norm, of attention and
    /// the layer's input.
    pub(crate) fn post_norm_layer(
        &mut self,
        x: ValueId,
        form: LayerForm,
    ) -> Result<ValueId, ModelError> {
        let attended = self.attention(x, &form)?;
        let sum = self.add_attended(attended, x);
        let mut normed = self.norm("attn_output_norm", sum)?;
        if self.has("attn_norm_2.weight") {
            let x = self.continued(x);
            let sum = self.push(Op::Add, &[normed, x], self.config.width, "attention_residual_2");
            normed = self.norm("attn_norm_2", sum)?;
        }
        let fed = self.feed_forward(normed, &form)?;
        let sum = self.add_fed(fed, normed);
        self.norm("layer_output_norm", sum)
    }

    /// Adds the embedding of the token type, if the file has token types: the first, and for the tokens of later parts the next
    /// ones where the architecture tells parts apart.
    pub(crate) fn token_type(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        const NAME: &str = "token_types.weight";
        let Some(types) = self.tensors.find(NAME) else { return Ok(x) };
        let width = self.config.width;
        let table = self.matrix(NAME, types.rows, width)?;
        let row = match self.config.separator {
            Some(separator) if types.rows > 1 => TableRow::Part { separator },
            _ => TableRow::First,
        };
        let op = Op::AddRow { table, row };
        Ok(self.push(op, &[x], width, "token_type_embed"))
    }
}

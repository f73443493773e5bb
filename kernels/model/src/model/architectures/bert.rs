//! BERT (Devlin et al., 2018), MiniLM, BGE, GTE and all other models whose files say `bert`: positions come from a table,
//! norms are layer norms after the residual additions, the feed-forward blocks have no gate, and there is no output matrix.

use super::super::ModelError;
use super::super::build::Builder;
use super::{Architecture, Encoder};
use crate::graph::ValueId;
use crate::mask::Mask;
use crate::op::{AttentionOp, Curve, Op, TableRow};

pub(super) const ARCHITECTURE: Architecture = Architecture::encoder("bert", &Bert);

struct Bert;

impl Encoder for Bert {
    fn nodes(&self, b: &mut Builder<'_>) -> Result<(), ModelError> {
        b.bert()
    }
}

impl Builder<'_> {
    /// The nodes of the whole model. The output is the hidden states `[selected rows, width]`.
    fn bert(&mut self) -> Result<(), ModelError> {
        let (layers, width) = (self.config.layers, self.config.width);
        let table = self.embedding()?;
        let x = self.push(Op::Embed { table, scale: 1.0 }, &[], width, "embed");
        let x = self.token_type(x)?;
        let x = self.position(x)?;
        let mut x = self.norm("token_embd_norm", x)?;
        for layer in 0..layers {
            self.layer = Some(layer);
            let attended = self.full_attention(x, layer)?;
            let sum = self.add_attended(attended, x);
            x = self.norm("attn_output_norm", sum)?;
            let fed = self.feed_forward_without_gate(x)?;
            let sum = self.push(Op::Add, &[fed, x], width, "ffn_residual");
            x = self.norm("layer_output_norm", sum)?;
        }
        Ok(())
    }

    /// Adds the embedding of the first token type, if the file has token types.
    fn token_type(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        const NAME: &str = "token_types.weight";
        let Some(types) = self.tensors.find(NAME) else { return Ok(x) };
        let width = self.config.width;
        let table = self.matrix(NAME, types.rows, width)?;
        let op = Op::AddRow { table, row: TableRow::First };
        Ok(self.push(op, &[x], width, "token_type_embed"))
    }

    fn full_attention(&mut self, x: ValueId, layer: usize) -> Result<ValueId, ModelError> {
        let (c, width) = (self.config, self.heads().mixed_width());
        let [q, k, v] = self.projections(x)?;
        let op = AttentionOp {
            layer,
            scale: c.score_scale,
            window: None,
            mask: Mask::Full,
            soft_cap: None,
            alibi: None,
        };
        let mixed = self.push(Op::Attention(op), &[q, k, v], width, "attention");
        self.linear("attn_output", mixed, c.width)
    }

    fn feed_forward_without_gate(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let (width, inner) = (self.config.width, self.config.ffn_widths[self.layer_number()]);
        let up = self.linear("ffn_up", x, inner)?;
        let active = self.push(Op::Curve(Curve::Gelu), &[up], inner, "ffn_gelu");
        self.linear("ffn_down", active, width)
    }
}

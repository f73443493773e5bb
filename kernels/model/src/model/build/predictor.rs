//! Layers behind those of a model that predict a further token (multi-token prediction; DeepSeek-V3, 2024).

use super::super::ModelError;
use super::super::family::Decoder;
use super::Builder;
use super::weights::Product;
use crate::graph::{ValueId, WeightId};
use crate::op::Op;

const TABLE: &str = "nextn.embed_tokens.weight";
/// Names of the norm after the layer.
const NORMS: [&str; 2] = ["nextn.shared_head_norm", "layer_output_norm"];
const HEAD: &str = "nextn.shared_head_head";

impl Builder<'_> {
    /// All nodes of a predictor, whose layer is the only one. The row at position p + 1 reads the token there and the hidden states h of
    /// the row before it, after the last norm of the model or before it: x = eh_proj(enorm(embedding) | hnorm(h)), then a layer, a norm and the
    /// logits of the token at p + 2. The rows after the norm, or before it, are passed on: for the next drafted token they take the place
    /// of h.
    pub(super) fn predictor(&mut self, family: &dyn Decoder) -> Result<(), ModelError> {
        self.add_ropes()?;
        self.layer = Some(0);
        let (c, is_own) = (self.config, self.has(TABLE));
        let table = match is_own {
            true => self.token_table(&self.name(TABLE), c.width)?,
            false => self.embedding()?,
        };
        let embedded = Op::Embed { table, scale: c.embedding_scale / c.residual_scale };
        let embedded = self.push(embedded, &[], c.width, "embed");
        let given = self.push(Op::Given, &[], c.width, "given");
        let embedded = self.norm("nextn.enorm", embedded)?;
        let given = self.norm("nextn.hnorm", given)?;
        let both = self.beside("nextn.eh", embedded, given);
        let x = self.linear("nextn.eh_proj", both, c.width)?;
        let x = family.layer(self, x)?;
        let own = NORMS.into_iter().find(|norm| self.has(&format!("{norm}.weight")));
        let normed = match own {
            Some(norm) => self.norm(norm, x)?,
            None => {
                self.layer = None;
                self.norm(family.last_norm(), x)?
            }
        };
        self.graph.pass_on(if family.passes_on_normed() { normed } else { x });
        self.layer = Some(0);
        self.predicted(normed, table, is_own)
    }

    /// The logits of a predictor: products with a matrix of its own, or with that of the model.
    fn predicted(
        &mut self,
        x: ValueId,
        table: WeightId,
        has_own_table: bool,
    ) -> Result<(), ModelError> {
        let head = self.name(&format!("{HEAD}.weight"));
        if self.tensors.find(&head).is_some() {
            let (weight, width) =
                (self.token_table(&head, self.config.width)?, self.graph.weights()[table.0].rows);
            let product = Product { weight, bias: None, width, role: "output" };
            let logits = self.product(HEAD, x, product)?;
            self.finish_logits(logits);
            return Ok(());
        }
        self.layer = None;
        let is_tied = self.tensors.find("output.weight").is_none();
        let table = if has_own_table && is_tied { self.embedding()? } else { table };
        self.head(x, table)
    }
}

//! Nodes of decoders.

use super::super::ModelError;
use super::super::family::Decoder;
use super::Builder;
use super::weights::Product;
use crate::graph::{ValueId, WeightId};
use crate::model::ModelPart;
use crate::op::{Op, TableRow};

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
        let x = family.embedded(self, x)?;
        let x = family.layers(self, x)?;
        self.layer = None;
        let mut x = family.finished(self, x)?;
        let passes_on = self.wanted.part == ModelPart::WithRows;
        if passes_on && !family.passes_on_normed() {
            x = self.passed_on(x);
        }
        let mut normed = self.norm(family.last_norm(), x)?;
        if passes_on && family.passes_on_normed() {
            normed = self.passed_on(normed);
        }
        self.head(normed, table)
    }

    /// Passes on all rows of a value, and returns the selected ones.
    fn passed_on(&mut self, x: ValueId) -> ValueId {
        self.graph.pass_on(x);
        self.push(Op::SelectRows, &[x], self.config.width, "select_hidden")
    }

    /// Adds to each row that of its position in the table of positions.
    pub(crate) fn position(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let (context, width) = (self.config.context, self.config.width);
        let table = self.matrix("position_embd.weight", context, width)?;
        let op = Op::AddRow { table, row: TableRow::Position };
        Ok(self.push(op, &[x], width, "position_embed"))
    }

    pub(super) fn head(&mut self, x: ValueId, table: WeightId) -> Result<(), ModelError> {
        let vocab = self.graph.weights()[table.0].rows;
        let (weight, rows) = self.output_matrix(table)?;
        let bias = self.opt_part("output.bias", 1, rows, 0..vocab)?;
        let product = Product { weight, bias, width: vocab, role: "output" };
        let logits = self.product("output", x, product)?;
        self.finish_logits(logits);
        Ok(())
    }

    /// The operations on the logits after the product with the output matrix.
    pub(super) fn finish_logits(&mut self, mut logits: ValueId) {
        let (c, vocab) = (self.config, self.graph.value(logits).width);
        if c.logit_scale != 1.0 {
            let op = Op::Scale { factor: c.logit_scale };
            logits = self.push(op, &[logits], vocab, "logit_scale");
        }
        if let Some(cap) = c.logit_cap {
            self.push(Op::SoftCap { cap }, &[logits], vocab, "logit_cap");
        }
    }
}

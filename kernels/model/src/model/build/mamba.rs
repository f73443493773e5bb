//! Mamba (Gu and Dao, 2023): steps, keys and queries are made of the values behind the convolution.

use super::super::{ModelError, RecurrentSizes, StepNorms};
use super::Builder;
use super::head_rows::HeadRows;
use super::weights::Joined;
use crate::graph::ValueId;
use crate::op::{Activation, Curve, LinearAttentionOp, Op};

impl Builder<'_> {
    /// Mamba: each value of a state fades by a factor of its own.
    pub(crate) fn mamba(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        const NAME: &str = "ssm_in";
        let RecurrentSizes { key_dim, .. } = self.recurrent();
        let (width, rank) = (self.recurrent().value_width(), self.columns("ssm_dt")?);
        let all = 2 * width;
        let mut part = |role, rows| self.joined_part(role, x, &Joined { name: NAME, all, rows });
        let (values, z) = (part("ssm_values", 0..width)?, part("ssm_z", width..all)?);
        let mixed = self.convolved("ssm_conv1d", 0, values)?;
        let parts = [("ssm_dt_norm", rank), ("ssm_b_norm", key_dim), ("ssm_c_norm", key_dim)];
        let [short, k, q] = self.normed_parts(mixed, parts)?;
        let time = self.times(short, width)?;
        let decay = Some(self.matrix(&self.name("ssm_a"), width, key_dim)?);
        let skip = Some(self.vector(&self.name("ssm_d"), width)?);
        let op = LinearAttentionOp { skip, decay, ..self.added_up(1) };
        self.gated_values(op, [q, k, mixed, time, time], z)
    }

    /// The same with heads of values, each of whose states fades by one factor, and with rows of gates and of values by turns.
    pub(crate) fn mamba_of_heads(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let RecurrentSizes { heads, key_dim, value_dim, .. } = self.recurrent();
        let (name, each, rank) = ("ssm_in", 2 * value_dim, self.columns("ssm_dt")?);
        let mut part =
            |role, rows| self.head_rows(role, x, &HeadRows { name, heads, each, rows, bias: None });
        let (z, values) = (part("ssm_z", 0..value_dim)?, part("ssm_values", value_dim..each)?);
        let mixed = self.convolved("ssm_conv1d", 0, values)?;
        let parts = [("ssm_b_norm", key_dim), ("ssm_c_norm", key_dim), ("ssm_dt_norm", rank)];
        let [k, q, short] = self.normed_parts(mixed, parts)?;
        let time = self.times(short, heads)?;
        let factors = Op::ScaleBy { weight: self.vector(&self.name("ssm_a"), heads)? };
        let decay = self.push(factors, &[time], heads, "ssm_decay");
        let keep = self.curve(Curve::Exp, decay, "ssm_keep");
        let skip = Some(self.vector(&self.name("ssm_d"), heads)?);
        let op = LinearAttentionOp { skip, ..self.added_up(1) };
        self.gated_values(op, [q, k, mixed, keep, time], z)
    }

    /// Products with parts of the rows of one matrix, which follow each other, by the names of their norms.
    fn normed_parts(
        &mut self,
        x: ValueId,
        parts: [(&'static str, usize); 3],
    ) -> Result<[ValueId; 3], ModelError> {
        let all = parts.iter().map(|part| part.1).sum();
        let mut first = 0;
        let mut normed = [x; 3];
        for (value, (norm, width)) in normed.iter_mut().zip(parts) {
            let rows = first..first + width;
            let made = self.joined_part("ssm_x", x, &Joined { name: "ssm_x", all, rows })?;
            *value = match self.recurrent().step_norms {
                StepNorms::None => made,
                StepNorms::WithoutWeights => {
                    let op = Op::RmsNorm { weight: None, group: width, eps: self.config.norm_eps };
                    self.push(op, &[made], width, norm)
                }
                StepNorms::Weighted => self.norm(norm, made)?,
            };
            first += width;
        }
        Ok(normed)
    }

    /// How long the step of each head is, from a short row.
    fn times(&mut self, short: ValueId, heads: usize) -> Result<ValueId, ModelError> {
        // The product adds this bias, which every file has.
        self.vector(&self.name("ssm_dt.bias"), heads)?;
        let time = self.linear("ssm_dt", short, heads)?;
        Ok(self.curve(Curve::Softplus, time, "ssm_time"))
    }

    /// What rows read of the states, times the gates, and the last product.
    fn gated_values(
        &mut self,
        op: LinearAttentionOp,
        inputs: [ValueId; 5],
        z: ValueId,
    ) -> Result<ValueId, ModelError> {
        let width = self.recurrent().value_width();
        let read = self.push(Op::LinearAttention(Box::new(op)), &inputs, width, "ssm");
        let gated = self.push(Op::Gated(Activation::Silu), &[z, read], width, "ssm_gated");
        self.linear("ssm_out", gated, self.config.width)
    }
}

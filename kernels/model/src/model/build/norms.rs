//! Norms of layers.

use super::super::ModelError;
use super::super::norm_kind::NormKind;
use super::Builder;
use crate::graph::ValueId;
use crate::op::{Op, TableRow};

/// How queries and keys are normalised: before the rotation, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// Not at all.
    None,
    /// Each head by itself.
    Heads,
    /// All heads of a row together.
    Rows,
    /// Each head by itself, after the rotation.
    RotatedHeads,
    /// The same without weights.
    RotatedHeadsWithoutWeights,
}

impl QkNorm {
    /// Whether it comes after the rotation.
    pub(super) fn is_rotated(self) -> bool {
        matches!(self, QkNorm::RotatedHeads | QkNorm::RotatedHeadsWithoutWeights)
    }
}

/// Norms of a layer, by the names of their tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norms {
    pub(crate) before_attention: Option<&'static str>,
    pub(crate) after_attention: Option<&'static str>,
    pub(crate) before_feed_forward: Option<&'static str>,
    pub(crate) after_feed_forward: Option<&'static str>,
    /// Before the last product of attention.
    pub(crate) inside_attention: Option<&'static str>,
    /// Before the last product of the feed-forward block.
    pub(crate) inside_feed_forward: Option<&'static str>,
    /// Epsilon of those after blocks, if it is not that of the others.
    pub(crate) after_eps: Option<f32>,
}

impl Norms {
    /// Before each block.
    pub(crate) const BEFORE: Norms = Norms {
        before_attention: Some("attn_norm"),
        after_attention: None,
        before_feed_forward: Some("ffn_norm"),
        after_feed_forward: None,
        inside_attention: None,
        inside_feed_forward: None,
        after_eps: None,
    };

    /// After each block.
    pub(crate) const AFTER: Norms = Norms {
        before_attention: None,
        after_attention: Some("post_attention_norm"),
        before_feed_forward: None,
        after_feed_forward: Some("post_ffw_norm"),
        ..Norms::BEFORE
    };

    /// Before and after each block.
    pub(crate) const BOTH: Norms = Norms {
        before_attention: Norms::BEFORE.before_attention,
        before_feed_forward: Norms::BEFORE.before_feed_forward,
        ..Norms::AFTER
    };
}

impl Builder<'_> {
    /// The norm of whole rows, if there is one.
    pub(super) fn norm_if(
        &mut self,
        role: Option<&'static str>,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        role.map_or(Ok(x), |role| self.norm(role, x))
    }

    /// A norm after a block.
    pub(super) fn norm_after(
        &mut self,
        role: Option<&'static str>,
        x: ValueId,
        Norms { after_eps, .. }: Norms,
    ) -> Result<ValueId, ModelError> {
        let (eps, width) = (after_eps.unwrap_or(self.config.norm_eps), self.graph.value(x).width);
        role.map_or(Ok(x), |role| self.norm_of_groups(role, x, width, eps))
    }

    /// The norm of whole rows.
    pub(crate) fn norm(&mut self, role: &'static str, x: ValueId) -> Result<ValueId, ModelError> {
        self.norm_of_groups(role, x, self.graph.value(x).width, self.config.norm_eps)
    }

    pub(crate) fn qk_norm(
        &mut self,
        role: &'static str,
        x: ValueId,
        qk: QkNorm,
    ) -> Result<ValueId, ModelError> {
        match qk {
            QkNorm::None => Ok(x),
            QkNorm::Heads | QkNorm::RotatedHeads => {
                self.norm_of_groups(role, x, self.heads().kv.key_dim, self.config.norm_eps)
            }
            QkNorm::Rows => self.norm(role, x),
            QkNorm::RotatedHeadsWithoutWeights => {
                let (group, width) = (self.heads().kv.key_dim, self.graph.value(x).width);
                let op = Op::RmsNorm { weight: None, group, eps: self.config.norm_eps };
                Ok(self.push(op, &[x], width, role))
            }
        }
    }

    /// The RMS norm of each group of values, each group with weights of its own.
    pub(super) fn norm_of_own_groups(
        &mut self,
        role: &'static str,
        x: ValueId,
        group: usize,
        eps: f32,
    ) -> Result<ValueId, ModelError> {
        let (name, width) = (self.norm_weight(role), self.graph.value(x).width);
        let weight = self.matrix(&name, width / group, group)?;
        let normed = self.push(Op::RmsNorm { weight: None, group, eps }, &[x], width, role);
        Ok(self.push(Op::ScaleBy { weight }, &[normed], width, "norm_gain"))
    }

    /// Name of a norm's weights. Files of PLaMo leave out the end of some names.
    fn norm_weight(&self, role: &str) -> String {
        let end = if self.has(role) { "" } else { ".weight" };
        self.name(&format!("{role}{end}"))
    }

    fn norm_of_groups(
        &mut self,
        role: &'static str,
        x: ValueId,
        group: usize,
        eps: f32,
    ) -> Result<ValueId, ModelError> {
        let width = self.graph.value(x).width;
        let (weight, bias) = (self.norm_weight(role), self.name(&format!("{role}.bias")));
        let eps = eps / self.config.residual_scale.powi(2);
        // In PLaMo 2 each head has weights of its own.
        let rows = self.tensors.find(&weight).map_or(1, |found| found.rows);
        if self.config.norm == NormKind::Rms && rows > 1 {
            return self.norm_of_own_groups(role, x, group, eps);
        }
        let op = match self.config.norm {
            NormKind::Rms => Op::RmsNorm { weight: Some(self.vector(&weight, group)?), group, eps },
            NormKind::RmsWithoutWeights => Op::RmsNorm { weight: None, group, eps },
            NormKind::Layer => {
                let weight = Some(self.matrix(&weight, width / group, group)?);
                let bias = match self.config.arch.has_biases() {
                    true => Some(self.vector(&bias, width)?),
                    false => self.opt_vector(&bias, width)?,
                };
                Op::LayerNorm { group, weight, bias, eps }
            }
            NormKind::LayerWithoutWeights => Op::LayerNorm { group, weight: None, bias: None, eps },
        };
        let normed = self.push(op, &[x], width, role);
        let bias = match self.config.norm {
            NormKind::Rms => self.opt_vector(&bias, width)?,
            _ => None,
        };
        Ok(match bias {
            Some(table) => {
                let op = Op::AddRow { table, row: TableRow::First };
                self.push(op, &[normed], width, "norm_bias")
            }
            None => normed,
        })
    }
}

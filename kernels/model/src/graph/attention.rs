//! Attention masks of a graph's layers.

use super::{Graph, Node};
use crate::mask::{AttentionRule, MaskError};
use crate::op::{AttentionOp, Op};

impl Graph {
    /// Replaces the masks of attention: each layer gets the mask of the last rule that covers it, and
    /// is causal if none does. The architecture's own sliding window stays in force: a row sees a key
    /// if both the mask and the window see it. Replaces the effect of earlier calls.
    ///
    /// # Errors
    /// If a rule is for layers that the graph lacks, a size is 0, or rows see later ones in this graph or
    /// by a rule. The graph is then unchanged.
    pub fn set_attention(&mut self, rules: &[AttentionRule]) -> Result<(), MaskError> {
        let layers = self.nodes.iter().filter_map(|node| match &node.op {
            Op::Attention(op) => Some(layer_of(node, op)),
            _ => None,
        });
        let last = layers.max().unwrap_or(0);
        for rule in rules {
            rule.mask.check()?;
            if rule.mask.sees_later() || self.is_encoder() {
                return Err(MaskError::Direction { rule: rule.to_string() });
            }
            if rule.layers.as_ref().is_some_and(|layers| *layers.end() > last) {
                return Err(MaskError::Layers { rule: rule.to_string(), last });
            }
        }
        if self.is_encoder() {
            return Ok(());
        }
        for node in &mut self.nodes {
            let layer = node.layer;
            if let Op::Attention(op) = &mut node.op {
                let layer = layer.unwrap_or(op.layer);
                let rule = rules.iter().rev().find(|rule| rule.covers(layer));
                op.mask = rule.map(|rule| rule.mask.clone()).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Whether the rows of a sequence see later ones ([`Mask::sees_later`](crate::mask::Mask::sees_later)): the graph of an encoder, whose
    /// output is hidden states. All rows of a sequence must be computed in one batch, and keys and values
    /// of common first tokens cannot be shared.
    pub fn is_encoder(&self) -> bool {
        let sees_later =
            |node: &Node| matches!(&node.op, Op::Attention(op) if op.mask.sees_later());
        self.nodes.iter().any(sees_later)
    }

    /// The masks in force, own windows included; consecutive layers of one mask are one rule.
    pub fn attention(&self) -> Vec<AttentionRule> {
        let mut rules: Vec<AttentionRule> = Vec::new();
        for node in &self.nodes {
            let Op::Attention(op) = &node.op else { continue };
            let (mask, layer) = (op.seen(), layer_of(node, op));
            match rules.last_mut() {
                Some(rule) if rule.mask == mask => {
                    let first = rule.layers.as_ref().map_or(0, |layers| *layers.start());
                    rule.layers = Some(first..=layer);
                }
                _ => rules.push(AttentionRule { layers: Some(layer..=layer), mask }),
            }
        }
        rules
    }
}

/// The layer of the model; that of the KV cache in graphs that do not number layers.
fn layer_of(node: &Node, op: &AttentionOp) -> usize {
    node.layer.unwrap_or(op.layer)
}

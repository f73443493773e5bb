//! Builds the op graph from hyper-parameters.

mod channel_delta_net;
mod decoder;
mod encoder;
mod experts;
mod factors;
mod gate;
mod head;
mod head_rows;
mod latent;
mod layer;
mod layer_inputs;
mod limits;
mod mamba;
mod normed_attention;
mod norms;
mod predictor;
mod recurrent;
mod ropes;
mod short_conv;
mod streams;
mod weights;

use std::collections::HashSet;

pub(super) use gate::{AttentionGate, GateCurve};
pub(super) use layer::{FeedForward, LayerForm, Order};
pub(super) use norms::{Norms, QkNorm};
pub(super) use streams::STREAMS;

use super::family::Family;
use super::tensors::Tensors;
use super::{LayerHeads, Model, ModelConfig, ModelError, ModelPart};
use crate::graph::{Graph, NewNode, ValueId};
use crate::op::Op;

/// What is built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) part: ModelPart,
    /// The number of tokens in the vocabulary, if it is known: rows of embeddings beyond it are left out, so that no id without a
    /// token has a logit.
    pub(super) tokens: Option<usize>,
    /// Length of the longest sequence.
    pub(super) context: usize,
}

/// Builds the graph and the head, and checks every tensor against them, but those of a predictor alone, which are a part of the file.
pub(super) fn build(
    config: ModelConfig,
    tensors: &dyn Tensors,
    wanted: Wanted,
) -> Result<Model, ModelError> {
    let mut builder = Builder {
        config: &config,
        wanted,
        tensors,
        graph: Graph::default(),
        layer: None,
        used: HashSet::new(),
        ropes: Vec::new(),
        layer_inputs: None,
        streams: Vec::new(),
    };
    match config.arch.family {
        Family::Decoder(family) if wanted.part == ModelPart::Predictor => {
            builder.predictor(family)?;
            let graph = builder.graph;
            return Ok(Model { config, graph, rank: None, projection: None });
        }
        Family::Decoder(family) => builder.decoder(family)?,
        Family::Encoder(family) => builder.encoder(family)?,
    }
    let (rank, projection) = (builder.rank_head()?, builder.projection()?);
    builder.check_experts()?;
    builder.check_unused()?;
    let graph = builder.graph;
    Ok(Model { config, graph, rank, projection })
}

pub(super) struct Builder<'a> {
    pub(super) config: &'a ModelConfig,
    wanted: Wanted,
    pub(super) tensors: &'a dyn Tensors,
    graph: Graph,
    pub(super) layer: Option<usize>,
    used: HashSet<String>,
    /// Index of each layer's rotary embedding.
    ropes: Vec<usize>,
    /// The embeddings that layers have of their own, side by side.
    layer_inputs: Option<ValueId>,
    /// The hidden states beside those that the current layer computes, if a model has several streams.
    pub(super) streams: Vec<ValueId>,
}

impl Builder<'_> {
    /// The current layer; the first one outside layers.
    pub(super) fn layer_number(&self) -> usize {
        self.layer.unwrap_or_default()
    }

    /// Heads of the current layer.
    pub(super) fn heads(&self) -> LayerHeads {
        self.config.heads[self.layer_number()]
    }

    /// Intermediate size of the current layer's feed-forward block.
    pub(super) fn ffn_width(&self) -> usize {
        self.config.ffn_widths[self.layer_number()]
    }

    /// Adds the attention output to its input. After the last attention, only selected rows, whose output is needed, continue.
    pub(super) fn add_attended(&mut self, attended: ValueId, x: ValueId) -> ValueId {
        let width = self.config.width;
        let (attended, x) = match self.is_last() {
            true => (
                self.continuing(attended, width, "select_attention"),
                self.continuing(x, width, "select_residual"),
            ),
            false => (attended, x),
        };
        self.push(Op::Add, &[attended, x], width, "attention_residual")
    }

    /// What follows attention and does not read it: after the last attention, only selected rows.
    pub(super) fn continued(&mut self, x: ValueId) -> ValueId {
        match self.is_last() {
            true => self.continuing(x, self.config.width, "select_input"),
            false => x,
        }
    }

    /// Whether the current layer is the last, from whose attention on only some rows continue.
    pub(super) fn is_last(&self) -> bool {
        self.layer == Some(self.config.layers - 1)
    }

    /// The rows that continue after the last attention: the selected ones, or where hidden states are passed on those, too.
    fn continuing(&mut self, x: ValueId, width: usize, role: &'static str) -> ValueId {
        let (layer, inputs) = (self.layer, &[x][..]);
        let node = NewNode { op: Op::SelectRows, inputs, width, layer, role };
        match self.wanted.part {
            ModelPart::WithRows => self.graph.push_passed(node),
            ModelPart::Whole | ModelPart::Predictor => self.graph.push(node),
        }
    }

    /// Rows of a tensor of the current layer; 0 if there is none.
    pub(super) fn rows(&self, tensor: &str) -> usize {
        self.tensors.find(&self.name(tensor)).map_or(0, |found| found.rows)
    }

    /// Whether the current layer has a tensor.
    pub(super) fn has(&self, tensor: &str) -> bool {
        self.tensors.find(&self.name(tensor)).is_some()
    }

    /// Adds the output of the feed-forward block to its input.
    pub(super) fn add_fed(&mut self, fed: ValueId, x: ValueId) -> ValueId {
        self.push(Op::Add, &[fed, x], self.config.width, "ffn_residual")
    }

    pub(super) fn push(
        &mut self,
        op: Op,
        inputs: &[ValueId],
        width: usize,
        role: &'static str,
    ) -> ValueId {
        self.graph.push(NewNode { op, inputs, width, layer: self.layer, role })
    }

    pub(super) fn name(&self, tensor: &str) -> String {
        match self.layer {
            Some(layer) => format!("blk.{}.{tensor}", self.config.blocks[layer]),
            None => tensor.to_owned(),
        }
    }
}

//! What may differ between the layers of a model.

use super::ModelConfig;
use crate::kv::{KvDtype, KvHeads, KvLayout, StateLayout};

/// Heads of a layer's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerHeads {
    /// Query heads; 0 in a layer without attention.
    pub count: usize,
    /// Key and value heads (GQA: fewer than `count`; MQA: 1; 0 without attention over positions), and the values of each. Queries
    /// are as long as keys.
    pub kv: KvHeads,
    /// Values per head that rotary embedding rotates.
    pub rope_dims: usize,
    /// The layer whose keys and values it reads: itself, unless layers share them.
    pub kv_of: usize,
}

impl LayerHeads {
    /// Values of the queries of all heads.
    pub fn q_width(&self) -> usize {
        self.count * self.kv.key_dim
    }

    /// Values of what all heads make of the values.
    pub fn mixed_width(&self) -> usize {
        self.count * self.kv.value_dim
    }
}

/// Ranks of latent attention: values of the rows per token from which products make the keys and values of all heads, and perhaps
/// the queries. [`LayerHeads::rope_dims`] values at the end of each key rotate, and are the same for all heads.
///
/// Of absorbed attention the latent row is the value, and with the rotated values behind it the key, of all heads: the products that
/// would make keys and values are applied to queries, and to what attention makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentRanks {
    /// Values of the row for keys and values.
    pub kv: usize,
    /// Values of the row for queries; `None` if the hidden states are multiplied at once.
    pub queries: Option<usize>,
    /// Values of a head's key.
    pub key_dim: usize,
    /// Values of a head's value.
    pub value_dim: usize,
    /// Whether attention is absorbed.
    pub is_absorbed: bool,
}

/// Attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerAttention {
    /// Over every earlier position.
    Full,
    /// Over the last positions, as many as this number.
    Window(usize),
    /// Over the positions from the last multiple of this number on.
    Chunk(usize),
}

impl ModelConfig {
    /// Makes layers of these blocks of the file, in their order, with the hyper-parameters that the blocks have as layers.
    pub(super) fn set_blocks(&mut self, blocks: Vec<usize>) {
        let heads = blocks.iter().enumerate();
        let heads = heads.map(|(layer, block)| LayerHeads { kv_of: layer, ..self.heads[*block] });
        self.heads = heads.collect();
        self.ffn_widths = blocks.iter().map(|block| self.ffn_widths[*block]).collect();
        self.rotated = blocks.iter().map(|block| self.rotated[*block]).collect();
        self.windowed = blocks.iter().map(|block| self.windowed[*block]).collect();
        self.states = blocks.iter().map(|block| self.states[*block]).collect();
        self.layers = blocks.len();
        self.blocks = blocks;
    }

    /// Attention of a layer.
    pub fn layer_attention(&self, layer: usize) -> LayerAttention {
        match self.window {
            Some(window) if self.windowed.get(layer) == Some(&true) => match self.is_window_fixed {
                true => LayerAttention::Chunk(window),
                false => LayerAttention::Window(window),
            },
            _ => LayerAttention::Full,
        }
    }

    /// Whether a layer has keys and values of its own.
    pub fn has_kv(&self, layer: usize) -> bool {
        self.heads[layer].kv_of == layer && self.heads[layer].kv.count > 0
    }

    /// Layer of the KV cache that a layer's attention reads.
    pub fn kv_layer(&self, layer: usize) -> usize {
        (0..self.heads[layer].kv_of).filter(|before| self.has_kv(*before)).count()
    }

    /// Whether a layer has a state.
    pub fn has_state(&self, layer: usize) -> bool {
        self.states[layer] > 0
    }

    /// Which of the states of a page is that of a layer.
    pub fn state_layer(&self, layer: usize) -> usize {
        (0..layer).filter(|before| self.has_state(*before)).count()
    }

    /// Shape of the model's KV pages.
    pub fn kv_layout(&self) -> KvLayout {
        let own = (0..self.layers).filter(|layer| self.has_kv(*layer));
        let states = self.states.iter().copied().filter(|values| *values > 0);
        KvLayout {
            layers: own.map(|layer| self.heads[layer].kv).collect(),
            states: states.map(|values| StateLayout { values }).collect(),
            page_rows: KvLayout::PAGE_ROWS,
            dtype: KvDtype::default(),
        }
    }
}

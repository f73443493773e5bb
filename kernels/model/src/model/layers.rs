//! What may differ between the layers of a model.

use super::ModelConfig;
use super::layer::{LayerAttention, LayerHeads, RecurrentSizes};
use crate::kv::{KvDtype, KvLayout, StateLayout};

impl ModelConfig {
    /// Makes layers of these blocks of the file, in their order, with the hyper-parameters that the blocks have as layers.
    pub(super) fn set_blocks(&mut self, blocks: Vec<usize>) {
        let heads = blocks.iter().enumerate();
        let heads = heads.map(|(layer, block)| LayerHeads { kv_of: layer, ..self.heads[*block] });
        self.heads = heads.collect();
        self.ffn_widths = blocks.iter().map(|block| self.ffn_widths[*block]).collect();
        self.rotated = blocks.iter().map(|block| self.rotated[*block]).collect();
        self.windowed = blocks.iter().map(|block| self.windowed[*block]).collect();
        self.states = blocks.iter().map(|block| self.states[*block].clone()).collect();
        self.layers = blocks.len();
        self.blocks = blocks;
    }

    /// Which layers have no heads of keys and values.
    pub(super) fn layers_without_keys(&self) -> Vec<bool> {
        self.heads.iter().map(|heads| heads.kv.count == 0).collect()
    }

    /// Leaves out attention of all layers. Files of models without it may state heads.
    pub(super) fn leave_out_heads(&mut self) {
        for heads in &mut self.heads {
            (heads.count, heads.kv.count) = (0, 0);
        }
        self.rotated.fill(false);
    }

    /// Sets the sizes of linear attention, and the states of the layers that have it, with so many columns of the convolution.
    pub(super) fn set_recurrent(
        &mut self,
        is_recurrent: &[bool],
        sizes: RecurrentSizes,
        conv_width: usize,
    ) {
        self.recurrent = Some(sizes);
        for (states, _) in self.states.iter_mut().zip(is_recurrent).filter(|(_, is)| **is) {
            *states = sizes.states(conv_width);
        }
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
        !self.states[layer].is_empty()
    }

    /// Which of the states of a page is the first of a layer.
    pub fn state_layer(&self, layer: usize) -> usize {
        self.states[..layer].iter().map(Vec::len).sum()
    }

    /// Shape of the model's KV pages.
    pub fn kv_layout(&self) -> KvLayout {
        let own = (0..self.layers).filter(|layer| self.has_kv(*layer));
        let states = self.states.iter().flatten().copied();
        KvLayout {
            layers: own.map(|layer| self.heads[layer].kv).collect(),
            states: states.map(|values| StateLayout { values }).collect(),
            page_rows: KvLayout::PAGE_ROWS,
            dtype: KvDtype::default(),
        }
    }
}

//! Gemma 3n: Gemma 4's normalised values, shared keys and embeddings of layers; four streams of hidden states, a branch of low rank
//! beside attention, and sparse gates in the first layers.

use super::super::build::{Builder, LayerForm, Norms, STREAMS};
use super::super::keys::{Keys, Windows};
use super::super::{ModelConfig, ModelError};
use super::{Architecture, Decoder};
use crate::graph::ValueId;
use crate::op::Op;

pub(super) const ARCHITECTURE: Architecture = Architecture::decoder("gemma3n", &Gemma3n);

struct Gemma3n;

/// Layers with keys and values of their own, and of these the first ones with sparse gates, unless a file says otherwise.
const OWN_LAYERS: usize = 20;
const SPARSE_LAYERS: usize = 10;

/// 95 % of normally distributed values are below their mean plus this many standard deviations.
const DEVIATIONS: f32 = 1.644_853_4;

impl Decoder for Gemma3n {
    fn settings(&self, keys: &Keys<'_>, config: &mut ModelConfig) -> Result<(), ModelError> {
        config.as_gemma(0);
        config.score_scale = 1.0;
        config.logit_cap = keys.cap("final_logit_softcapping", Some(30.0))?;
        keys.count("attention.sliding_window", 1 << 30)?;
        keys.windows(config, Windows { period: 5, default: None })?;
        config.rope_base_window = keys.rope_base("rope.freq_base_swa")?.unwrap_or(10_000.0);
        config.window_rope_is_scaled = false;
        config.layer_input_width =
            keys.opt_count("embedding_length_per_layer_input")?.unwrap_or(256);
        for (key, only) in [("altup.num_inputs", STREAMS as u32), ("altup.active_idx", 0)] {
            let found = keys.opt_u32(key)?.unwrap_or(only);
            keys.check(key, found, found == only, || format!("only {only} is supported"))?;
        }
        config.sparse_gates = sparse_gates(keys, config.layers)?;
        keys.share_kv(config, config.layers.saturating_sub(OWN_LAYERS))
    }

    fn embedded(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.add_layer_inputs(x)?;
        b.add_streams(x)?;
        Ok(x)
    }

    fn layer(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        let width = b.config.width;
        let predicted = b.predicted_streams(x)?;
        let normed = b.norm("attn_norm", predicted[0])?;
        let branch = b.low_rank_branch(normed)?;
        let attended = b.normed_attention(normed)?;
        let attended = b.norm("post_attention_norm", attended)?;
        let predicted: Vec<ValueId> =
            predicted.into_iter().map(|stream| b.continued(stream)).collect();
        let [attended, branch] = [attended, branch].map(|value| b.continued(value));
        let sum = b.push(Op::Add, &[attended, predicted[0]], width, "attention_residual");
        let sum = b.push(Op::Add, &[branch, sum], width, "laurel_residual");
        let half = Op::Scale { factor: std::f32::consts::FRAC_1_SQRT_2 };
        let sum = b.push(half, &[sum], width, "laurel_scale");
        let read = b.norm("ffn_norm", sum)?;
        let form = LayerForm { norms: Norms::BOTH, ..LayerForm::PLAIN };
        let computed = b.after_sum([sum, read], &form)?;
        let corrected = b.corrected_streams(&predicted, computed)?;
        b.streams = corrected[1..].to_vec();
        b.add_layer_input_to_streams(corrected[0])?;
        Ok(corrected[0])
    }

    fn finished(&self, b: &mut Builder<'_>, x: ValueId) -> Result<ValueId, ModelError> {
        b.joined_streams(x)
    }
}

/// The standard deviations of each layer's gate; −∞ in a file is a gate that is not sparse.
fn sparse_gates(keys: &Keys<'_>, layers: usize) -> Result<Vec<Option<f32>>, ModelError> {
    const NAME: &str = "activation_sparsity_scale";
    let key = keys.key(NAME);
    if keys.meta.get(&key).is_none() {
        return Ok((0..layers)
            .map(|layer| (layer < SPARSE_LAYERS).then_some(DEVIATIONS))
            .collect());
    }
    let found = keys.meta.f32s(&key)?;
    let is_known = |value: &f32| value.is_finite() || *value == f32::NEG_INFINITY;
    let good = found.len() == layers && found.iter().all(is_known);
    keys.check(NAME, format!("a list of {}", found.len()), good, || {
        format!("it must have a number or −∞ for each of the {layers} layers")
    })?;
    Ok(found.into_iter().map(|value| Some(value).filter(|value| value.is_finite())).collect())
}

impl Builder<'_> {
    /// A branch beside attention (LAuReL; Menghani et al., 2024): x + norm(R·L·x), where L has few rows.
    fn low_rank_branch(&mut self, x: ValueId) -> Result<ValueId, ModelError> {
        let (rank, width) = (self.rows("laurel_l.weight"), self.config.width);
        let low = self.linear("laurel_l", x, rank)?;
        let back = self.linear("laurel_r", low, width)?;
        let normed = self.norm("laurel_post_norm", back)?;
        Ok(self.push(Op::Add, &[normed, x], width, "laurel_sum"))
    }

    /// Adds what the current layer's embedding makes of the first stream to the others.
    fn add_layer_input_to_streams(&mut self, first: ValueId) -> Result<(), ModelError> {
        let width = self.config.width;
        let weight = self.vector(&self.name("altup_correct_scale.weight"), width)?;
        let scaled = self.push(Op::ScaleBy { weight }, &[first], width, "altup_correct_scale");
        let Some(added) = self.gated_layer_input(scaled)? else { return Ok(()) };
        let streams = std::mem::take(&mut self.streams).into_iter();
        let with = |stream| self.push(Op::Add, &[added, stream], width, "per_layer_residual");
        self.streams = streams.map(with).collect();
        Ok(())
    }
}

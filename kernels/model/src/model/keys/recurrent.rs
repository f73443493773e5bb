//! Keys of layers with linear attention.

use super::Keys;
use crate::model::{ModelConfig, ModelError, RecurrentSizes, StepNorms};
use crate::op::LinearAttentionOp;

const TAPS: &str = "ssm.conv_kernel";
const VALUES: &str = "ssm.inner_size";
const KEY: &str = "ssm.state_size";
const HEADS: &str = "ssm.time_step_rank";
const KEY_HEADS: &str = "ssm.group_count";

impl Keys<'_> {
    /// Sets the sizes of linear attention, and the states of the layers that have it.
    pub(in crate::model) fn recurrent(
        &self,
        config: &mut ModelConfig,
        is_recurrent: &[bool],
    ) -> Result<(), ModelError> {
        let heads = self.heads_of_values()?;
        let key_heads = self.count(KEY_HEADS, 1 << 16)?;
        self.check(KEY_HEADS, key_heads, heads.is_multiple_of(key_heads), || {
            format!("it must divide the {heads} heads")
        })?;
        let sizes = RecurrentSizes { heads, key_heads, ..self.sizes(heads)? };
        config.set_recurrent(is_recurrent, sizes, sizes.conv_width());
        Ok(())
    }

    /// Sets the sizes of Mamba, whose values fade each on their own, and the states of the layers that have it. Values that are stored
    /// together count as a head.
    pub(in crate::model) fn mamba(
        &self,
        config: &mut ModelConfig,
        is_recurrent: &[bool],
        step_norms: StepNorms,
    ) -> Result<(), ModelError> {
        // The tensors say how long the rows are that make steps.
        self.ignore(HEADS);
        let (values, block) = (self.count(VALUES, 1 << 20)?, LinearAttentionOp::BLOCK);
        let heads = if values.is_multiple_of(block) { values / block } else { 1 };
        let sizes = RecurrentSizes { step_norms, ..self.sizes(heads)? };
        config.set_recurrent(is_recurrent, sizes, values);
        Ok(())
    }

    /// As [`mamba`](Keys::mamba), with heads whose values fade together, and with weights of the norms.
    pub(in crate::model) fn mamba_of_heads(
        &self,
        config: &mut ModelConfig,
        is_recurrent: &[bool],
    ) -> Result<(), ModelError> {
        let groups = self.opt_count(KEY_HEADS)?.unwrap_or(0);
        self.check(KEY_HEADS, groups, groups == 0, || {
            "it must be 0: all heads have the same keys".to_owned()
        })?;
        let sizes = self.sizes(self.heads_of_values()?)?;
        let sizes = RecurrentSizes { step_norms: StepNorms::Weighted, ..sizes };
        config.set_recurrent(is_recurrent, sizes, sizes.value_width());
        Ok(())
    }

    /// Heads of values.
    fn heads_of_values(&self) -> Result<usize, ModelError> {
        let values = self.count(VALUES, 1 << 20)?;
        let heads = self.count(HEADS, values)?;
        self.check(HEADS, heads, values.is_multiple_of(heads), || {
            format!("it must divide the {values} values")
        })?;
        Ok(heads)
    }

    /// Sizes of so many heads with the same keys.
    fn sizes(&self, heads: usize) -> Result<RecurrentSizes, ModelError> {
        let (values, key_dim) = (self.count(VALUES, 1 << 20)?, self.count(KEY, 1 << 16)?);
        Ok(RecurrentSizes {
            taps: self.taps()?,
            heads,
            key_heads: 1,
            key_dim,
            value_dim: values / heads,
            step_norms: StepNorms::None,
        })
    }

    fn taps(&self) -> Result<usize, ModelError> {
        let taps = self.count(TAPS, 64)?;
        self.check(TAPS, taps, taps > 1, || "it must be at least 2".to_owned())?;
        Ok(taps)
    }

    /// As [`recurrent`](Keys::recurrent), for the layers without heads of keys and values.
    pub(in crate::model) fn recurrent_without_heads(
        &self,
        config: &mut ModelConfig,
    ) -> Result<(), ModelError> {
        self.recurrent(config, &config.layers_without_keys())
    }

    /// Sets the layers with a delta net that fades by channel, which have no heads of keys and values, and the ranks of latent attention
    /// of the others. Such a layer has a state of each of its three convolutions.
    pub(in crate::model) fn channel_delta_nets(
        &self,
        config: &mut ModelConfig,
    ) -> Result<(), ModelError> {
        let bare = config.layers_without_keys();
        self.latent(config)?;
        let (taps, heads) = (self.taps()?, config.heads[0].count);
        let dim = self.count("kda.head_dim", 1 << 16)?;
        let (key_heads, step_norms) = (heads, StepNorms::None);
        let sizes =
            RecurrentSizes { taps, heads, key_heads, key_dim: dim, value_dim: dim, step_norms };
        config.recurrent = Some(sizes);
        let conv = (taps - 1) * sizes.value_width();
        let state = LinearAttentionOp::state_values(heads, dim, dim);
        let layers = config.heads.iter_mut().zip(&mut config.states).zip(bare);
        for ((heads, states), _) in layers.filter(|(_, bare)| *bare) {
            heads.kv.count = 0;
            *states = vec![conv, conv, conv, state];
        }
        Ok(())
    }

    /// Sets the least logarithm of what stays of the states of such delta nets.
    pub(in crate::model) fn least_decay(&self, config: &mut ModelConfig) -> Result<(), ModelError> {
        const LEAST: &str = "kda.gate_lower_bound";
        const IS_BOUNDED: &str = "kda.safe_gate";
        let is_bounded = self.flag(IS_BOUNDED, true)?;
        self.check(IS_BOUNDED, is_bounded, is_bounded, || {
            "states of this architecture fade with a bound".to_owned()
        })?;
        let least = self.meta.f32(&self.key(LEAST))?;
        self.check(LEAST, least, (-1e6..0.0).contains(&least), || {
            "it must be below 0, and at least -1000000".to_owned()
        })?;
        config.least_decay = Some(least);
        Ok(())
    }

    /// Sets the layers with a gated delta net, which have no attention: those that a file lists, or all but each n-th, where it may say
    /// n. Queries, keys and values are equally long.
    pub(in crate::model) fn delta_nets(&self, config: &mut ModelConfig) -> Result<(), ModelError> {
        const LIST: &str = "attention.recurrent_layers";
        let period = self.opt_count("full_attention_interval")?.unwrap_or(4);
        let all = config.layers + config.predictors;
        let layers = all - self.predictors()?;
        let is_recurrent = match self.meta.get(&self.key(LIST)).is_some() {
            true => self.layer_flags(LIST, all, None)?,
            // Layers that predict further tokens have attention.
            false => (1..=all).map(|n| n <= layers && !n.is_multiple_of(period)).collect(),
        };
        self.recurrent(config, &is_recurrent)?;
        for (heads, _) in config.heads.iter_mut().zip(&is_recurrent).filter(|(_, is)| **is) {
            heads.kv.count = 0;
        }
        let sizes = config.recurrent.map(|sizes| (sizes.key_dim, sizes.value_dim));
        self.check(
            VALUES,
            sizes.map_or(0, |sizes| sizes.1),
            sizes.is_some_and(|s| s.0 == s.1),
            || "a head's values must be as long as its keys".to_owned(),
        )
    }
}

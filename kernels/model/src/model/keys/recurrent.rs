//! Keys of layers with linear attention.

use super::Keys;
use crate::model::{ModelConfig, ModelError, RecurrentSizes};
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
        let taps = self.count(TAPS, 64)?;
        self.check(TAPS, taps, taps > 1, || "it must be at least 2".to_owned())?;
        let (values, key_dim) = (self.count(VALUES, 1 << 20)?, self.count(KEY, 1 << 16)?);
        let (heads, key_heads) = (self.count(HEADS, values)?, self.count(KEY_HEADS, 1 << 16)?);
        self.check(HEADS, heads, values.is_multiple_of(heads), || {
            format!("it must divide the {values} values")
        })?;
        self.check(KEY_HEADS, key_heads, heads.is_multiple_of(key_heads), || {
            format!("it must divide the {heads} heads")
        })?;
        let sizes = RecurrentSizes { taps, heads, key_heads, key_dim, value_dim: values / heads };
        config.recurrent = Some(sizes);
        for (states, _) in config.states.iter_mut().zip(is_recurrent).filter(|(_, is)| **is) {
            *states = sizes.states();
        }
        Ok(())
    }

    /// As [`recurrent`](Keys::recurrent), for the layers without heads of keys and values.
    pub(in crate::model) fn recurrent_without_heads(
        &self,
        config: &mut ModelConfig,
    ) -> Result<(), ModelError> {
        let is_bare = config.heads.iter().map(|heads| heads.kv.count == 0);
        self.recurrent(config, &is_bare.collect::<Vec<_>>())
    }

    /// Sets the layers with a delta net that fades by channel, which have no heads of keys and values, and the ranks of latent attention
    /// of the others. Such a layer has a state of each of its three convolutions.
    pub(in crate::model) fn channel_delta_nets(
        &self,
        config: &mut ModelConfig,
    ) -> Result<(), ModelError> {
        let bare: Vec<bool> = config.heads.iter().map(|heads| heads.kv.count == 0).collect();
        self.latent(config)?;
        let (taps, heads) = (self.count(TAPS, 64)?, config.heads[0].count);
        self.check(TAPS, taps, taps > 1, || "it must be at least 2".to_owned())?;
        let dim = self.count("kda.head_dim", 1 << 16)?;
        let sizes = RecurrentSizes { taps, heads, key_heads: heads, key_dim: dim, value_dim: dim };
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
        self.check(LEAST, least, least < 0.0 && least >= -1e6, || {
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

//! Keys whose values may differ between layers.

use super::{Keys, Windows};
use crate::kv::KvHeads;
use crate::model::config::score_scale;
use crate::model::layer::{LatentRanks, LayerHeads};
use crate::model::{ModelConfig, ModelError};

const KEYS: &str = "attention.key_length";
const VALUES: &str = "attention.value_length";
const KEYS_OF_HEADS: &str = "attention.key_length_mla";
const VALUES_OF_HEADS: &str = "attention.value_length_mla";

impl Keys<'_> {
    /// A count that some files store once, and others for each layer. It may be 0 where the architecture has layers without a block.
    pub(in crate::model) fn per_layer(
        &self,
        name: &str,
        layers: usize,
        default: Option<&[usize]>,
    ) -> Result<Vec<usize>, ModelError> {
        let counts = self.counts(name, layers, default)?;
        self.check_each(name, &counts)?;
        Ok(counts)
    }

    /// Checks the sizes of counts, of which 0 is right only where the architecture has layers without a block.
    fn check_each(&self, name: &str, counts: &[usize]) -> Result<(), ModelError> {
        let least = usize::from(!self.may_lack_blocks);
        let wrong = counts.iter().find(|count| !(least..=1 << 20).contains(*count));
        self.check(name, wrong.copied().unwrap_or_default(), wrong.is_none(), || {
            format!("it must be between {least} and 1048576")
        })
    }

    /// Intermediate size of each layer's feed-forward block. Files whose layers all have experts may lack it.
    pub(in crate::model) fn ffn_widths(&self, layers: usize) -> Result<Vec<usize>, ModelError> {
        let of_experts = self.meta.get(&self.key("expert_feed_forward_length"));
        let none = of_experts.map(|_| vec![0; layers]);
        self.per_layer("feed_forward_length", layers, none.as_deref())
    }

    /// As [`per_layer`](Keys::per_layer), of any size.
    fn counts(
        &self,
        name: &str,
        layers: usize,
        default: Option<&[usize]>,
    ) -> Result<Vec<usize>, ModelError> {
        let key = self.key(name);
        let counts: Vec<usize> = match (self.meta.get(&key), default) {
            (None, Some(default)) => return Ok(default.to_vec()),
            (Some(value), _) if value.is_array() => {
                self.meta.u32s(&key)?.into_iter().map(|count| count as usize).collect()
            }
            _ => vec![self.meta.u32(&key)? as usize; layers],
        };
        self.check(name, format!("{} values", counts.len()), counts.len() == layers, || {
            format!("it must have a value for each of the {layers} layers")
        })?;
        Ok(counts)
    }

    /// Checks that each layer has attention, or a state in place of it, unless layers of the architecture may have neither.
    pub(in crate::model) fn check_mixers(&self, config: &ModelConfig) -> Result<(), ModelError> {
        let is_bare =
            |layer: &usize| config.heads[*layer].kv.count == 0 && !config.has_state(*layer);
        let bare = (0..config.layers).find(is_bare).filter(|_| !self.may_lack_blocks);
        self.check("attention.head_count_kv", 0, bare.is_none(), || {
            "it must be between 1 and 1048576: layers of this architecture have attention"
                .to_owned()
        })
    }

    /// Whether each layer has something: a list of truth values or of numbers.
    pub(in crate::model) fn layer_flags(
        &self,
        name: &str,
        layers: usize,
        default: Option<bool>,
    ) -> Result<Vec<bool>, ModelError> {
        let key = self.key(name);
        let flags: Vec<bool> = match (self.meta.opt_bools(&key), default) {
            (Ok(None), Some(default)) => return Ok(vec![default; layers]),
            (Ok(Some(flags)), _) => flags,
            _ => self.meta.u32s(&key)?.into_iter().map(|value| value != 0).collect(),
        };
        self.check(name, format!("{} values", flags.len()), flags.len() == layers, || {
            format!("it must have a value for each of the {layers} layers")
        })?;
        Ok(flags)
    }

    /// Heads of each layer's attention, all of them of the same sizes, with keys and values of their own.
    pub(in crate::model) fn heads(
        &self,
        layers: usize,
        width: usize,
    ) -> Result<Vec<LayerHeads>, ModelError> {
        let counts = self.counts("attention.head_count", layers, None)?;
        let kv_counts = self.counts("attention.head_count_kv", layers, Some(&counts))?;
        let first = counts.iter().copied().find(|count| *count > 0).unwrap_or(0);
        // For a layer without keys some files say no query heads, and others as many as the other layers have.
        let heads = counts.into_iter().zip(&kv_counts).map(|(count, kv)| match (count, kv) {
            (0, 0) if !self.may_lack_blocks => first,
            _ => count,
        });
        let counts: Vec<usize> = heads.collect();
        self.check_each("attention.head_count", &counts)?;
        let [key_dim, value_dim] = self.head_dims(width, first.max(1))?;
        let rope_dims = self.rope_dims("rope.dimension_count", key_dim, key_dim)?;
        let heads = counts.into_iter().zip(kv_counts).enumerate();
        let heads = heads.map(|(layer, (count, kv_count))| {
            let divides = kv_count == 0 || count > 0 && count.is_multiple_of(kv_count);
            self.check("attention.head_count_kv", kv_count, divides, || {
                format!("it must divide the {count} query heads")
            })?;
            let kv = KvHeads { count: kv_count, key_dim, value_dim };
            Ok(LayerHeads { count, kv, rope_dims, kv_of: layer })
        });
        heads.collect()
    }

    /// Values of a head that rotary embedding rotates.
    pub(in crate::model) fn rope_dims(
        &self,
        name: &str,
        head_dim: usize,
        default: usize,
    ) -> Result<usize, ModelError> {
        let dims = self.opt_count(name)?.unwrap_or(default);
        self.check(name, dims, dims <= head_dim && dims.is_multiple_of(2), || {
            format!("it must be even and at most the head's {head_dim} values")
        })?;
        Ok(dims)
    }

    /// Sets how many values of a head rotate: in layers with a window as many as the file says of these, or else of all, and in the
    /// others `full`.
    pub(in crate::model) fn rope_dims_of_windows(
        &self,
        config: &mut ModelConfig,
        full: usize,
    ) -> Result<(), ModelError> {
        let LayerHeads { kv, rope_dims, .. } = config.heads[0];
        let dims = self.rope_dims("rope.dimension_count_swa", kv.key_dim, rope_dims)?;
        for (heads, windowed) in config.heads.iter_mut().zip(&config.windowed) {
            heads.rope_dims = if *windowed { dims } else { full };
        }
        Ok(())
    }

    /// Sets the sliding window, and which layers have it, for architectures whose files say both.
    pub(in crate::model) fn listed_windows(
        &self,
        config: &mut ModelConfig,
    ) -> Result<(), ModelError> {
        const PATTERN: &str = "attention.sliding_window_pattern";
        let has_pattern = self.meta.get(&self.key(PATTERN)).is_some();
        self.check(PATTERN, "missing", has_pattern, || {
            "it must say which layers have a window".to_owned()
        })?;
        self.count("attention.sliding_window", 1 << 30)?;
        self.windows(config, Windows { period: config.layers, default: None })
    }

    /// Makes the last layers read the keys and values of the last layer of their kind that has some, which is the last one or
    /// the one before it: as many layers as the file says, or else `default`.
    pub(in crate::model) fn share_kv(
        &self,
        config: &mut ModelConfig,
        default: usize,
    ) -> Result<(), ModelError> {
        const NAME: &str = "attention.shared_kv_layers";
        let shared = self.opt_u32(NAME)?.map_or(default, |shared| shared as usize);
        let (layers, own) = (config.layers, config.layers.saturating_sub(shared));
        for layer in own..layers {
            let back = if config.windowed[layer] { 2 } else { 1 };
            let owner = own.checked_sub(back).filter(|owner| {
                let of = |layer: usize| (config.windowed[layer], config.heads[layer].kv);
                of(*owner) == of(layer)
            });
            self.check(NAME, shared, owner.is_some(), || {
                format!(
                    "layer {layer} would have no earlier layer with keys and values like its own"
                )
            })?;
            config.heads[layer].kv_of = owner.unwrap_or(layer);
        }
        Ok(())
    }

    /// Sets the ranks and the heads of latent attention, of whose keys a part rotates. Each head has keys and values of its own; in
    /// files with the length of these apart, the latent row is both for all heads.
    pub(in crate::model) fn latent(&self, config: &mut ModelConfig) -> Result<(), ModelError> {
        let rank = self.count("attention.kv_lora_rank", 1 << 20)?;
        let queries = self.opt_count("attention.q_lora_rank")?;
        let value_length = self.opt_count(VALUES)?;
        // Whose heads the layers between those with latent attention have is then not known.
        self.per_layer("attention.head_count", config.heads.len(), None)?;
        let LayerHeads { count, kv, .. } = config.heads[0];
        let own = [self.opt_count(KEYS_OF_HEADS)?, self.opt_count(VALUES_OF_HEADS)?];
        let (is_absorbed, [key_dim, value_dim]) = match own {
            [Some(key_dim), Some(value_dim)] => (true, [key_dim, value_dim]),
            _ => (false, [kv.key_dim, value_length.unwrap_or(config.width / count)]),
        };
        let [of_keys, of_values] = match is_absorbed {
            true => [KEYS_OF_HEADS, VALUES_OF_HEADS],
            false => [KEYS, VALUES],
        };
        self.head_len(of_keys, key_dim)?;
        self.head_len(of_values, value_dim)?;
        for LayerHeads { count, kv, rope_dims, .. } in &mut config.heads {
            self.check("rope.dimension_count", *rope_dims, *rope_dims < key_dim, || {
                format!("it must be less than the {key_dim} values of a key")
            })?;
            if is_absorbed {
                let key_dim = self.head_len("attention.kv_lora_rank", rank + *rope_dims)?;
                *kv = KvHeads { count: 1, key_dim, value_dim: rank };
                continue;
            }
            self.check("attention.head_count_kv", kv.count, kv.count == *count, || {
                format!("keys and values are made for each of the {count} heads")
            })?;
            kv.value_dim = value_dim;
        }
        config.score_scale = score_scale(key_dim);
        config.latent = Some(LatentRanks { kv: rank, queries, key_dim, value_dim, is_absorbed });
        Ok(())
    }

    /// Values of a head's keys, and of its values.
    fn head_dims(&self, width: usize, heads: usize) -> Result<[usize; 2], ModelError> {
        let key_dim = self.opt_count(KEYS)?.unwrap_or(width / heads);
        let value_dim = self.opt_count(VALUES)?.unwrap_or(key_dim);
        Ok([self.head_len(KEYS, key_dim)?, self.head_len(VALUES, value_dim)?])
    }

    fn head_len(&self, name: &str, len: usize) -> Result<usize, ModelError> {
        self.check(name, len, (1..=65_536).contains(&len), || {
            "a head must have between 1 and 65536 values".to_owned()
        })?;
        Ok(len)
    }
}

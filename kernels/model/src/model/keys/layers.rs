//! Keys whose values may differ between layers.

use super::Keys;
use crate::kv::KvHeads;
use crate::model::config::LayerHeads;
use crate::model::{ModelConfig, ModelError};

impl Keys<'_> {
    /// A count that some files store once, and others for each layer.
    pub(in crate::model) fn per_layer(
        &self,
        name: &str,
        layers: usize,
        default: Option<&[usize]>,
    ) -> Result<Vec<usize>, ModelError> {
        let counts = self.counts(name, layers, default)?;
        let wrong = counts.iter().find(|count| !(1..=1 << 20).contains(*count));
        self.check(name, wrong.copied().unwrap_or_default(), wrong.is_none(), || {
            "it must be between 1 and 1048576".to_owned()
        })?;
        Ok(counts)
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

    /// Checks that each layer has attention, or a state in place of it.
    pub(in crate::model) fn check_mixers(&self, config: &ModelConfig) -> Result<(), ModelError> {
        let is_bare =
            |layer: &usize| config.heads[*layer].kv.count == 0 && !config.has_state(*layer);
        let bare = (0..config.layers).find(is_bare);
        self.check("attention.head_count_kv", 0, bare.is_none(), || {
            "it must be between 1 and 1048576: layers of this architecture have attention"
                .to_owned()
        })
    }

    /// Heads of each layer's attention, all of them of the same size, with keys and values of their own.
    pub(in crate::model) fn heads(
        &self,
        layers: usize,
        width: usize,
    ) -> Result<Vec<LayerHeads>, ModelError> {
        let counts = self.per_layer("attention.head_count", layers, None)?;
        let kv_counts = self.counts("attention.head_count_kv", layers, Some(&counts))?;
        let head_dim = self.head_dim(width, counts[0])?;
        let rope_dims = self.rope_dims("rope.dimension_count", head_dim, head_dim)?;
        let heads = counts.into_iter().zip(kv_counts).enumerate();
        let heads = heads.map(|(layer, (count, kv_count))| {
            let divides = kv_count == 0 || count.is_multiple_of(kv_count);
            self.check("attention.head_count_kv", kv_count, divides, || {
                format!("it must divide the {count} query heads")
            })?;
            let kv = KvHeads::new(kv_count, head_dim);
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

    fn head_dim(&self, width: usize, heads: usize) -> Result<usize, ModelError> {
        let key_length = self.opt_count("attention.key_length")?;
        let value_length = self.opt_count("attention.value_length")?;
        let head_dim = key_length.or(value_length).unwrap_or(width / heads);
        let same = value_length.is_none_or(|v| v == head_dim);
        self.check("attention.value_length", value_length.unwrap_or_default(), same, || {
            format!("it must equal the key length, {head_dim}")
        })?;
        self.check("attention.key_length", head_dim, (1..=65_536).contains(&head_dim), || {
            "a head must have between 1 and 65536 values".to_owned()
        })?;
        Ok(head_dim)
    }
}

//! Tensors of a model in few rows: those that repeat in every layer are one row.

use std::collections::HashMap;

use super::report::Tensor;

/// Tensors of the same role, shape and format.
#[derive(Debug, PartialEq)]
pub(super) struct Group {
    /// Name, with `*` in place of the layer.
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) format: String,
    /// Layers, ascending; empty for a tensor outside the layers.
    pub(super) layers: Vec<usize>,
    pub(super) count: usize,
    /// Bytes of all of them.
    pub(super) bytes: u64,
}

/// Groups tensors, in the order of the first of each group.
pub(super) fn groups(tensors: &[Tensor]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<(String, &[usize], &str), usize> = HashMap::new();
    for tensor in tensors {
        let (name, layer) = pattern(&tensor.name);
        let key = (name.clone(), &tensor.shape[..], &*tensor.format);
        let at = *known.entry(key).or_insert_with(|| {
            groups.push(Group {
                name,
                shape: tensor.shape.clone(),
                format: tensor.format.clone(),
                layers: Vec::new(),
                count: 0,
                bytes: 0,
            });
            groups.len() - 1
        });
        groups[at].layers.extend(layer);
        groups[at].count += 1;
        groups[at].bytes += tensor.bytes as u64;
    }
    groups.iter_mut().for_each(|group| group.layers.sort_unstable());
    groups
}

/// `blk.*.attn_q.weight` and 7, for `blk.7.attn_q.weight`.
fn pattern(name: &str) -> (String, Option<usize>) {
    let is_layer = |part: &&str| part.parse::<usize>().is_ok();
    let mut parts: Vec<&str> = name.split('.').collect();
    match parts.iter().position(is_layer) {
        Some(at) if at > 0 => {
            let layer = parts[at].parse().ok();
            parts[at] = "*";
            (parts.join("."), layer)
        }
        _ => (name.to_owned(), None),
    }
}

/// Layers as text: `0-3, 8, 10-12`, shortened if there are many ranges.
pub(super) fn ranges(layers: &[usize]) -> String {
    const RANGES_MAX: usize = 6;
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for layer in layers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *layer => *last = *layer,
            _ => ranges.push((*layer, *layer)),
        }
    }
    let shown = ranges.iter().take(RANGES_MAX).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if ranges.len() > RANGES_MAX {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, format: &str) -> Tensor {
        Tensor { name: name.to_owned(), shape: vec![64, 2], format: format.to_owned(), bytes: 10 }
    }

    #[test]
    fn layers_of_one_shape_and_format_are_one_row() {
        let mut tensors = vec![tensor("token_embd.weight", "Q8_0")];
        for layer in 0..12 {
            tensors.push(tensor(&format!("blk.{layer}.attn_q.weight"), "Q4_K"));
            let down = if layer < 3 || layer == 7 { "Q6_K" } else { "Q4_K" };
            tensors.push(tensor(&format!("blk.{layer}.ffn_down.weight"), down));
        }
        tensors.push(tensor("output_norm.weight", "F32"));
        let groups = groups(&tensors);
        let rows = groups.iter().map(|group| {
            (&*group.name, &*group.format, group.count, group.bytes, ranges(&group.layers))
        });
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [
                ("token_embd.weight", "Q8_0", 1, 10, String::new()),
                ("blk.*.attn_q.weight", "Q4_K", 12, 120, "0-11".to_owned()),
                ("blk.*.ffn_down.weight", "Q6_K", 4, 40, "0-2, 7".to_owned()),
                ("blk.*.ffn_down.weight", "Q4_K", 8, 80, "3-6, 8-11".to_owned()),
                ("output_norm.weight", "F32", 1, 10, String::new()),
            ]
        );
        assert_eq!(ranges(&[0, 2, 4, 6, 8, 10, 12]), "0, 2, 4, 6, 8, 10, …");
    }
}

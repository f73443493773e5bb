//! Tensors that repeat from layer to layer, as one group.

use super::report::Tensor;

/// Runs of layers that a name lists in full.
const RUNS_MAX: usize = 4;

/// Tensors that differ only in the number of their layer, or one tensor outside the layers.
#[derive(Debug)]
pub(super) struct LayerGroup<'a> {
    /// The first of them.
    pub(super) first: &'a Tensor,
    /// Bytes of all of them.
    pub(super) bytes: u64,
    /// Name before and after the number of the layer, and the layers in the file's order.
    layers: Option<(&'a str, &'a str, Vec<usize>)>,
}

impl<'a> LayerGroup<'a> {
    /// The groups, in the order in which the file begins them.
    pub(super) fn of(tensors: &'a [Tensor]) -> Vec<LayerGroup<'a>> {
        let mut groups: Vec<LayerGroup<'a>> = Vec::new();
        for tensor in tensors {
            let parts = split(&tensor.name);
            let known = parts.and_then(|(before, _, after)| {
                groups.iter_mut().find(|group| group.holds(tensor, before, after))
            });
            match (known, parts) {
                (Some(group), Some((_, layer, _))) => group.add(tensor, layer),
                _ => groups.push(LayerGroup {
                    first: tensor,
                    bytes: tensor.bytes as u64,
                    layers: parts.map(|(before, layer, after)| (before, after, vec![layer])),
                }),
            }
        }
        groups
    }

    fn holds(&self, tensor: &Tensor, before: &str, after: &str) -> bool {
        let same_name = self.layers.as_ref().is_some_and(|own| (own.0, own.1) == (before, after));
        let first = self.first;
        same_name && first.shape == tensor.shape && first.format == tensor.format
    }

    fn add(&mut self, tensor: &Tensor, layer: usize) {
        self.bytes += tensor.bytes as u64;
        self.layers.iter_mut().for_each(|(_, _, layers)| layers.push(layer));
    }

    /// Number of tensors.
    pub(super) fn count(&self) -> usize {
        self.layers.as_ref().map_or(1, |(_, _, layers)| layers.len())
    }

    /// The name, with the numbers of all layers in place of one, as in `blk.0-2,5.attn_q.weight`.
    pub(super) fn name(&self) -> String {
        let Some((before, after, layers)) = &self.layers else { return self.first.name.clone() };
        let mut layers = layers.clone();
        layers.sort_unstable();
        let runs: Vec<String> = layers
            .chunk_by(|a, b| a + 1 == *b)
            .filter_map(|run| Some((run.first()?, run.last()?)))
            .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
            .collect();
        let runs = match &runs[..] {
            [first, second, .., last] if runs.len() > RUNS_MAX => {
                format!("{first},{second},…,{last}")
            }
            runs => runs.join(","),
        };
        format!("{before}{runs}{after}")
    }
}

/// A tensor's name before, at and after the number of its layer.
fn split(name: &str) -> Option<(&str, usize, &str)> {
    let mut start = 0;
    for part in name.split('.') {
        let end = start + part.len();
        if let Ok(layer) = part.parse() {
            return Some((&name[..start], layer, &name[end..]));
        }
        start = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{LayerGroup, Tensor};

    fn tensor(name: &str, width: usize, format: &str) -> Tensor {
        let (name, format) = (name.to_owned(), format.to_owned());
        Tensor { name, shape: vec![width, 2], format, bytes: width * 2 }
    }

    #[test]
    fn tensors_that_differ_only_in_their_layer_are_one_group() {
        let mut tensors = vec![tensor("token_embd.weight", 8, "F16")];
        for layer in [0, 1, 10, 11, 12, 2, 3] {
            let down = if layer == 2 { "Q6_K" } else { "Q4_K" };
            tensors.push(tensor(&format!("blk.{layer}.attn_q.weight"), 4, "F16"));
            tensors.push(tensor(&format!("blk.{layer}.ffn_down.weight"), 4, down));
        }
        tensors.extend([0, 2, 4, 6, 8].map(|at| tensor(&format!("v.{at}"), 4, "F32")));
        tensors.push(tensor("v.9", 5, "F32"));
        let groups = LayerGroup::of(&tensors);
        let rows: Vec<_> = groups.iter().map(|g| (g.name(), g.count(), g.bytes)).collect();
        let expected = [
            ("token_embd.weight", 1, 16),
            ("blk.0-3,10-12.attn_q.weight", 7, 56),
            ("blk.0-1,3,10-12.ffn_down.weight", 6, 48),
            ("blk.2.ffn_down.weight", 1, 8),
            ("v.0,2,…,8", 5, 40),
            ("v.9", 1, 10),
        ];
        let expected = expected.map(|(name, count, bytes)| (name.to_owned(), count, bytes));
        assert_eq!(rows, expected);
        assert_eq!(groups.iter().map(LayerGroup::count).sum::<usize>(), tensors.len());
    }
}

//! Keys and values that layers or heads share: a graph with fewer nodes and smaller weights.

use std::collections::{BTreeMap, BTreeSet};

use super::{Graph, Node, ValueId, WeightId};
use crate::kv::{KvHeads, KvLayout, KvSharing, KvSharingError};
use crate::op::Op;
use crate::weights::Slices;

impl Graph {
    /// The graph whose layers or heads share keys and values. In a group of layers, the later ones lose
    /// their projections of keys and values with all that follows up to attention; their attention reads
    /// the rows of the first layer's KV cache, with queries rotated as those keys are. Masks and windows
    /// stay those of each layer. Of heads, the first of each group remains, and the projections are cut to
    /// its rows. KV layers are numbered anew. Weights that no node reads are no longer part of the graph. `heads` is the number
    /// of KV heads.
    ///
    /// # Errors
    /// [`KvSharingError`] if a number does not fit the graph, keys or values are not made of heads, or
    /// layers share already.
    pub fn share_kv(&self, sharing: &KvSharing, heads: usize) -> Result<Graph, KvSharingError> {
        let is_attention = |node: &usize| matches!(self.nodes[*node].op, Op::Attention(_));
        let layers: Vec<usize> = (0..self.nodes.len()).filter(is_attention).collect();
        if layers.iter().any(|node| self.nodes[*node].inputs.len() != 3) {
            return Err(KvSharingError::Shared);
        }
        sharing.check(layers.len(), heads)?;
        let mut shared = self.clone();
        for (n, &node) in layers.iter().enumerate() {
            let first = n / sharing.group() * sharing.group();
            let owner = layers[first];
            if let Op::Attention(op) = &mut shared.nodes[node].op {
                op.layer = n / sharing.group();
            }
            if owner != node {
                let widths = |node: usize| {
                    let inputs = self.nodes[node].inputs[1..].iter();
                    inputs.map(|value| self.value(*value).width).collect::<Vec<_>>()
                };
                if widths(owner) != widths(node) {
                    return Err(KvSharingError::Unlike { layer: n, other: first });
                }
                let unlike = KvSharingError::Rotation { layer: n, owner: first };
                shared.read_rows_of(owner, node).ok_or(unlike)?;
            }
        }
        let kept = sharing.heads.unwrap_or(heads);
        if kept < heads {
            let mut cut = Cut { heads, kept, done: BTreeSet::new(), weights: BTreeSet::new() };
            for &node in layers.iter().step_by(sharing.group()) {
                for input in [1, 2] {
                    cut.value(&mut shared, self.nodes[node].inputs[input])?;
                }
            }
        }
        let cut = |of: &KvHeads| KvHeads { count: of.count * kept / heads, ..*of };
        shared.kv = self.kv.as_ref().map(|kv| {
            let layers = kv.layers.iter().step_by(sharing.group()).map(cut).collect();
            KvLayout { layers, ..kv.clone() }
        });
        Ok(shared.without_unread())
    }

    /// Makes the attention `reader` use the KV rows of `owner`, and rotate its queries as those keys. `None` if only the keys
    /// are rotated, or only a part of the queries.
    fn read_rows_of(&mut self, owner: usize, reader: usize) -> Option<()> {
        let keys = self.rotation_of(self.nodes[owner].inputs[1]);
        let queries = self.nodes[reader].inputs[0];
        match (keys, self.rotation_of(queries)) {
            (Some((_, of_keys)), Some((rotation, _))) => {
                if let Op::Rope { rope, .. } = &mut self.nodes[rotation].op {
                    *rope = of_keys;
                }
            }
            (None, Some((rotation, _))) if rotation == self.writer(queries) => {
                self.nodes[reader].inputs[0] = self.nodes[rotation].inputs[0];
            }
            (None, None) => {}
            _ => return None,
        }
        self.nodes[reader].inputs.truncate(1);
        Some(())
    }

    /// The node that rotates a value, or a part of each of its heads, and its rotary embedding.
    fn rotation_of(&self, value: ValueId) -> Option<(usize, usize)> {
        let at = self.writer(value);
        match &self.nodes[at].op {
            Op::Rope { rope, .. } => Some((at, *rope)),
            Op::JoinHeads { .. } => self.nodes[at].inputs.iter().find_map(|v| self.rotation_of(*v)),
            _ => None,
        }
    }

    /// Keys and values of a position, together, in the KV cache of an attention node; 0 for other nodes.
    pub fn kv_width(&self, node: usize) -> usize {
        let Op::Attention(op) = &self.nodes[node].op else { return 0 };
        let writes = |node: &&Node| match &node.op {
            Op::Attention(other) => other.layer == op.layer && node.inputs.len() > 1,
            _ => false,
        };
        let own = [&self.nodes[node]].into_iter().find(writes);
        let writer = own.or_else(|| self.nodes.iter().find(writes));
        let inputs = writer.map_or(&[][..], |writer| &writer.inputs[1..]);
        inputs.iter().map(|v| self.value(*v).width).sum()
    }

    /// The same computation without nodes and weights whose results nothing reads.
    fn without_unread(&self) -> Graph {
        let mut is_read = vec![false; self.nodes.len()];
        is_read[self.writer(self.output())] = true;
        self.passed_on.iter().for_each(|value| is_read[self.writer(*value)] = true);
        for node in (0..self.nodes.len()).rev() {
            if is_read[node] {
                self.nodes[node].inputs.iter().for_each(|v| is_read[self.writer(*v)] = true);
            }
        }
        let kept = || (0..self.nodes.len()).filter(|node| is_read[*node]);
        let values: BTreeMap<usize, ValueId> =
            kept().enumerate().map(|(new, old)| (old, ValueId(new))).collect();
        let mut used: BTreeSet<usize> =
            kept().flat_map(|n| self.nodes[n].op.weights()).map(|id| id.0).collect();
        used.extend(self.ropes.iter().filter_map(|rope| rope.factors).map(|id| id.0));
        let weights: BTreeMap<usize, WeightId> =
            used.into_iter().enumerate().map(|(new, old)| (old, WeightId(new))).collect();
        let mut graph =
            Graph { kv: self.kv.clone(), ropes: self.ropes.clone(), ..Graph::default() };
        graph.passed_on = self.passed_on.map(|value| values[&value.0]);
        for (old, new) in &weights {
            graph.weights.push(self.weights[*old].clone());
            graph.requant.extend(self.requant.get(old).map(|to| (new.0, *to)));
            graph.slices.extend(self.slices.get(old).map(|slices| (new.0, *slices)));
        }
        for rope in &mut graph.ropes {
            rope.factors = rope.factors.map(|id| weights[&id.0]);
        }
        for old in kept() {
            let mut node = self.nodes[old].clone();
            node.inputs.iter_mut().for_each(|v| *v = values[&v.0]);
            node.output = values[&node.output.0];
            node.op.renumber_weights(|id| weights[&id.0]);
            graph.add_node(node, self.values[old]);
        }
        graph
    }
}

/// Cuts keys and values to some of their heads.
struct Cut {
    heads: usize,
    kept: usize,
    /// Values that are cut.
    done: BTreeSet<ValueId>,
    /// Weights that are cut, by id.
    weights: BTreeSet<usize>,
}

impl Cut {
    /// Cuts a value and what it is computed from, back to the projection.
    fn value(&mut self, graph: &mut Graph, value: ValueId) -> Result<(), KvSharingError> {
        if !self.done.insert(value) {
            return Ok(());
        }
        let at = graph.writer(value);
        let (width, node) = (graph.values[value.0].width, &mut graph.nodes[at]);
        let uncut = KvSharingError::Heads { role: node.role };
        if !width.is_multiple_of(self.heads) {
            return Err(uncut);
        }
        let head = width / self.heads;
        let inputs = node.inputs.clone();
        // How many of the inputs have heads.
        let further = match &mut node.op {
            Op::Rope { heads, .. } => {
                *heads = self.kept;
                1
            }
            Op::JoinHeads { heads, is_shared } => {
                *heads = self.kept;
                if *is_shared { 1 } else { 2 }
            }
            Op::RmsNorm { group, .. } if *group == head => 1,
            Op::MatMul { weight, bias } => {
                let (weight, bias) = (*weight, *bias);
                let cut = self.weight(graph, weight, head);
                let cut =
                    cut.and_then(|()| bias.map_or(Some(()), |id| self.weight(graph, id, head)));
                cut.ok_or(uncut)?;
                0
            }
            _ => return Err(uncut),
        };
        graph.values[value.0].width = head * self.kept;
        inputs.into_iter().take(further).try_for_each(|input| self.value(graph, input))
    }

    /// Cuts a matrix to the rows, or a vector to the values, of the heads that remain. `None` if a vector's
    /// heads are not whole blocks.
    fn weight(&mut self, graph: &mut Graph, id: WeightId, head: usize) -> Option<()> {
        if !self.weights.insert(id.0) {
            return Some(());
        }
        let stored = graph.stored(id);
        let spec = &mut graph.weights[id.0];
        let len = if spec.rows > 1 {
            spec.rows = head * self.kept;
            head * stored.row_bytes(spec.cols)?
        } else {
            spec.cols = head * self.kept;
            stored.row_bytes(head)?
        };
        // Keys and values may be a part of a tensor, or a part of each head in it.
        let (start, each) = match graph.slices.get(&id.0) {
            Some(part) if part.len == len => (part.start, part.step),
            Some(part) => (part.start, len),
            None => (0, len),
        };
        let (total, step) = (each * self.heads, each * self.heads / self.kept);
        graph.slices.insert(id.0, Slices::stepped(start..start + total, len, step));
        Some(())
    }
}

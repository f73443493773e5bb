//! What is kept, in words.

use std::time::Duration;

use lapwing_kernels::op::Op;

use super::search::Search;

/// Tells ops of a kind.
type IsKind = fn(&Op) -> bool;

/// What layers have, by name.
const KINDS: [(&str, IsKind); 3] = [
    ("attention", |op| matches!(op, Op::Attention(_))),
    ("matmuls", |op| matches!(op, Op::MatMul { .. })),
    ("experts", |op| matches!(op, Op::Experts(_))),
];

impl Search<'_> {
    /// In words: what each device keeps of which roles, in how much of its room, and how far the time may be from the least.
    pub(super) fn about(&mut self) -> String {
        self.is_banned.iter_mut().flatten().for_each(|banned| *banned = true);
        let used = self.solve(0.0);
        let mut texts = Vec::new();
        for (device, info) in self.input.devices.iter().enumerate() {
            let Some(room) = &info.room else { continue };
            let blocks = (0..self.is_kept.len()).filter(|block| self.is_kept[*block][device]);
            let nodes: Vec<usize> = blocks.flat_map(|block| self.chain.nodes(block)).collect();
            let need = info.need(self.input.graph, nodes.iter().copied());
            let kept = self.kinds(&nodes);
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            texts.push(format!(
                "'{}' keeps {kept} in {:.1} of the {:.1} MiB that its memory has for them, which bound the choice",
                info.name,
                mib(need.bytes()),
                mib(room.bytes)
            ));
        }
        let used = used.map_or(0.0, |used| used.time);
        let gap = 100.0 * (used - self.bound).max(0.0) / used.max(1.0);
        let request = Duration::from_nanos(used as u64);
        format!(
            "{}; a request takes {request:.1?}, at most {gap:.1} % more than the least within the memory",
            texts.join("; ")
        )
    }

    /// How many layers have their attention, their other matrices and their experts among these nodes, and what is kept outside them.
    fn kinds(&self, nodes: &[usize]) -> String {
        let nodes = || nodes.iter().map(|node| &self.input.graph.nodes()[*node]);
        let all = self.input.graph.nodes().iter();
        let layers = all.filter_map(|node| node.layer).max().map_or(0, |last| last + 1);
        let mut texts: Vec<String> = Vec::new();
        for (name, is) in KINDS {
            if self.input.graph.nodes().iter().any(|node| is(&node.op)) {
                let kept = nodes().filter(|node| is(&node.op)).filter_map(|node| node.layer);
                let mut kept: Vec<usize> = kept.collect();
                kept.dedup();
                texts.push(format!("{name} of {} of {layers} layers", kept.len()));
            }
        }
        let mut outside = nodes().filter(|node| node.layer.is_none());
        if outside.any(|node| matches!(node.op, Op::MatMul { .. })) {
            texts.push("the output matrix".to_owned());
        }
        texts.join(", ")
    }
}

//! A device whose model yields token 0, or as a draft model token 1 where it is wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_kernels::device::{Batch, BlockingDevice, DeviceError, StageRun, Tensor};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::kv::PageId;
use lapwing_kernels::op::Op;

use super::speculation::Acceptance;

/// Tokens: the target's, and a wrong one.
pub(super) const VOCAB: usize = 2;

/// Whether a node of a graph of `layers` layers is a layer.
pub(super) fn is_layer(node: usize, layers: usize) -> bool {
    (1..=layers).contains(&node)
}

/// A model of `layers` layers; only its shape matters.
pub(super) fn graph(layers: usize) -> Graph {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols: 1, dtype: DType::F32 })
    };
    let (table, head) = (weight("table", VOCAB), weight("head", VOCAB));
    let mut push = |op, inputs: &[_], (width, layer)| {
        graph.push(NewNode { op, inputs, width, layer, role: "pass" })
    };
    let mut x = push(Op::Embed { table, scale: 1.0 }, &[], (1, None));
    for layer in 0..layers {
        x = push(Op::Add, &[x, x], (1, Some(layer)));
    }
    let selected = push(Op::SelectRows, &[x], (1, None));
    push(Op::MatMul { weight: head, bias: None }, &[selected], (VOCAB, None));
    graph
}

#[derive(Clone, Debug)]
pub(super) struct PassDevice {
    graph: Arc<Graph>,
    /// Of a draft model; all tokens are right without it. Also the positions of a text, of which each has others.
    acceptance: Option<(Acceptance, usize)>,
    /// First page of each text, in order of appearance.
    texts: Vec<PageId>,
    rows: Arc<AtomicUsize>,
}

impl PassDevice {
    pub(super) fn new(graph: &Arc<Graph>, acceptance: Option<(&Acceptance, usize)>) -> PassDevice {
        let acceptance = acceptance.map(|(acceptance, text)| (acceptance.clone(), text));
        let graph = Arc::clone(graph);
        PassDevice { graph, acceptance, texts: Vec::new(), rows: Arc::default() }
    }

    /// Counts the rows it computes. Clones share the count.
    pub(super) fn rows(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.rows)
    }
}

impl PassDevice {
    /// Whether the token that a row predicts is the target's.
    fn is_right(&mut self, batch: &Batch, row: usize) -> bool {
        let Some((acceptance, positions)) = self.acceptance.as_ref().filter(|_| batch.model.0 > 0)
        else {
            return true;
        };
        let span = batch.spans.iter().find(|span| span.rows.contains(&row));
        let page = span.and_then(|span| span.pages.first());
        let text = page.map_or(0, |page| {
            let found = self.texts.iter().position(|text| text == page);
            found.unwrap_or_else(|| {
                self.texts.push(*page);
                self.texts.len() - 1
            })
        });
        // The row at a position predicts the token after it.
        acceptance.is_right(text * positions + batch.positions[row] as usize + 1)
    }
}

impl BlockingDevice for PassDevice {
    fn name(&self) -> &str {
        "pass"
    }

    fn run(&mut self, work: StageRun<'_>) -> Result<(), DeviceError> {
        let logits = self.graph.output();
        if work.writes.contains(&logits) {
            self.rows.fetch_add(work.batch.rows(), Ordering::Relaxed);
            let row = |row: &usize| match self.is_right(work.batch, *row) {
                true => [1.0_f32, 0.0],
                false => [0.0, 1.0],
            };
            let values: Vec<f32> = work.batch.selected.iter().flat_map(row).collect();
            work.outputs.put(logits, Tensor::new(VOCAB, values));
        }
        Ok(())
    }
}

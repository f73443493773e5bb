//! A device whose model yields token 0, or as a draft model token 1 where it is wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapwing_kernels::device::{BlockingDevice, DeviceError, StageRun, Tensor};
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;
use lapwing_kernels::quant::DType;

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
    /// Of a draft model; all tokens are right without it.
    acceptance: Option<Acceptance>,
    rows: Arc<AtomicUsize>,
}

impl PassDevice {
    pub(super) fn new(graph: &Arc<Graph>, acceptance: Option<&Acceptance>) -> PassDevice {
        let (graph, acceptance) = (Arc::clone(graph), acceptance.cloned());
        PassDevice { graph, acceptance, rows: Arc::default() }
    }

    /// Counts the rows it computes. Clones share the count.
    pub(super) fn rows(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.rows)
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
            let is_draft = work.batch.model.0 > 0;
            let row = |row: &usize| {
                // The row at a position predicts the token after it.
                let position = work.batch.positions[*row] as usize + 1;
                let is_right = |acceptance: &Acceptance| acceptance.is_right(position);
                let is_wrong = is_draft && !self.acceptance.as_ref().is_none_or(is_right);
                if is_wrong { [0.0_f32, 1.0] } else { [1.0, 0.0] }
            };
            let values: Vec<f32> = work.batch.selected.iter().flat_map(row).collect();
            work.outputs.put(logits, Tensor::new(VOCAB, values));
        }
        Ok(())
    }
}

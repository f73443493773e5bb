//! Processors that compute no values.

use std::collections::HashSet;
use std::sync::Arc;

use lapwing_kernels::device::{
    BlockingDevice, DeviceError, DeviceInfo, DeviceKind, GraphKey, Observer, Prepare, Prepared,
    Preparer, StageRun, Step,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::op::Op;
use lapwing_kernels::part::OperandOrder;

use crate::simulate::tokens::Tokens;
use lapwing_plan::soc::Soc;

/// A processor for a model without weights. Its only outputs are logits, by default of a single token, which
/// sampling therefore always selects. Graphs that are prepared ahead are ready from the start, because
/// the published systems prepare them offline. Graphs that are prepared during a run are reported once
/// per matmul shape and row count, because equal matmuls of all layers share a graph.
#[derive(Debug)]
pub struct Shapes {
    name: String,
    is_static: bool,
    graph: Arc<Graph>,
    prepared: HashSet<MatmulShape>,
    stepped: bool,
    fault: Option<Fault>,
    runs: usize,
    tokens: Tokens,
}

/// A run that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The device.
    pub kind: DeviceKind,
    /// Which of its runs, from 0.
    pub run: usize,
}

/// The shape of a matmul graph: output and input channels of each matmul, rows, and operand order.
type MatmulShape = (Vec<(usize, usize)>, usize, OperandOrder);

impl Shapes {
    /// A processor of that kind.
    pub fn new(info: &DeviceInfo, graph: &Arc<Graph>, fault: Option<Fault>) -> Shapes {
        Shapes {
            name: info.name.clone(),
            is_static: info.is_static(),
            graph: Arc::clone(graph),
            prepared: HashSet::new(),
            stepped: false,
            fault,
            runs: 0,
            tokens: Tokens::default(),
        }
    }

    /// With other tokens than token 0.
    #[must_use]
    pub fn yielding(mut self, tokens: &Tokens) -> Shapes {
        self.tokens = tokens.clone();
        self
    }

    /// Sets whether it prepares graphs for standard row counts instead of exact ones.
    pub fn stepped(mut self, stepped: bool) -> Shapes {
        self.stepped = stepped;
        self
    }

    /// Reports the preparation of graphs that are not ready yet.
    fn prepare(&mut self, work: &mut StageRun<'_>) {
        let nodes = self.graph.nodes();
        let mut first = work.nodes.start;
        while first < work.nodes.end {
            let is_matmul = |at: usize| matches!(nodes[at].op, Op::MatMul { .. });
            let joins = |at: &usize| is_matmul(*at) && nodes[*at].inputs == nodes[first].inputs;
            let end = (first + 1..work.nodes.end).find(|at| !joins(at)).unwrap_or(work.nodes.end);
            if !is_matmul(first) {
                first += 1;
                continue;
            }
            let sides = nodes[first..end].iter().filter_map(|node| match node.op {
                Op::MatMul { weight, .. } => {
                    let width = self.graph.value(node.output).width;
                    let outputs = work.part.features.of_width(width).len();
                    Some((outputs, self.graph.weights()[weight.0].cols))
                }
                _ => None,
            });
            let sides: Vec<(usize, usize)> = sides.collect();
            for rows in &work.part.graphs {
                let rows = if self.stepped { standard(*rows) } else { *rows };
                if self.prepared.insert((sides.clone(), rows, work.part.order)) {
                    work.observer.step_done(Step::Prepared { first, end, rows, bytes: 0 });
                }
            }
            first = end;
        }
    }
}

/// The next standard row count.
fn standard(rows: usize) -> usize {
    Soc::NPU_SIZES.into_iter().find(|size| *size >= rows).unwrap_or(rows)
}

impl BlockingDevice for Shapes {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, mut work: StageRun<'_>) -> Result<(), DeviceError> {
        let run = self.runs;
        self.runs += 1;
        if self.fault.is_some_and(|fault| fault.run == run) {
            let reason = format!("run {run} fails, as the options request");
            return Err(DeviceError::Failed { device: self.name.clone(), reason });
        }
        if work.prepare == Prepare::OnTheSpot {
            self.prepare(&mut work);
        }
        self.tokens.put_logits(&self.graph, &mut work);
        Ok(())
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        self.is_static.then(|| Box::new(Ready) as Box<dyn Preparer>)
    }
}

/// A preparer whose graphs are all ready.
struct Ready;

impl Preparer for Ready {
    fn prepare(
        &mut self,
        _keys: &[GraphKey],
        _keep: &[GraphKey],
        _observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        Ok(Prepared::default())
    }
}

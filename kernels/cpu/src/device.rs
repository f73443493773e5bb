//! The CPU as a [`BlockingDevice`]: runs a stage's nodes one after another on the pool, fused where
//! possible.

mod experts;
mod fused_matmul;
mod fusion;
mod fusion_context;
mod model;
mod next;
mod ops;
mod read_ahead;
mod scratch;
mod stage;
mod states;
mod tables;

use std::ops::Range;
use std::sync::Arc;

use crate::context::Cpu;
use crate::gemm::NextDispatch;
use crate::weights::{BindError, Weights};
use fused_matmul::GemvPlans;
use fusion::{FusedMatmulRun, Fusion, NormAddRun};
use lapwing_model::device::{Batch, BlockingDevice, DeviceError, Slot, StageRun, Tensor};
use lapwing_model::graph::Node;
use lapwing_model::op::Op;
use lapwing_model::part::Part;
use lapwing_model::quant::Activations;
use lapwing_model::sync::{Mutex, lock};
use lapwing_model::weights::WeightFile;
use model::BoundModel;
pub use model::CpuDeviceParts;
use ops::OpRun;
use read_ahead::ReadAhead;
use scratch::{Angles, Scratch};
use stage::Stage;

/// A CPU with a model's weights.
///
/// Consecutive ops whose intermediate results are not used elsewhere are fused:
/// - a norm and the matmuls of its result, for which it is quantised once;
/// - a matmul and the residual added to it, in place if nothing else reads the residual;
/// - a norm and the sum that follows;
/// - gate and up of a feed-forward block, with the output quantised on the fly if only a matmul of
///   quantised weights reads it;
/// - the rotation of keys and the attention that follows: keys are rotated while they are written
///   to their pages.
///
/// Results are bit for bit those of the separate ops. An observer receives all nodes of a fusion
/// together.
#[derive(Debug)]
pub struct CpuDevice {
    model: BoundModel,
    /// The fusion that begins with each node, if any does.
    fusions: Vec<Option<Fusion>>,
    /// How the matmuls of the fusion that begins with each node are divided for one row.
    gemv_plans: Vec<Option<GemvPlans>>,
    /// For each node, the first node from there on that begins a fusion of matmuls, or has experts: which weights these read is
    /// not known before.
    next_matmuls: Vec<Option<usize>>,
    /// Bytes of packed weights that each node reads.
    packed_bytes: Vec<usize>,
    /// What is known of weights in a mapped file.
    read_ahead: Option<ReadAhead>,
    /// One for each concurrent run.
    scratch: Mutex<Vec<Scratch>>,
}

impl CpuDevice {
    /// Binds the graph's weights from `file`, packed for the kernels. Devices of the process that
    /// use the same open file share them; the first one packs them on its threads.
    ///
    /// # Errors
    /// [`BindError`] when `file` is not the one that the graph was built from, or there is not
    /// enough memory.
    pub fn new(parts: CpuDeviceParts, file: &WeightFile) -> Result<CpuDevice, BindError> {
        let model = BoundModel::new(parts, file)?;
        if model.cpu.activations() == Activations::Int8RowMin {
            model.weights.sum_channels(&model.cpu)?;
        }
        let (context, nodes) = (model.context(), 0..model.graph.nodes().len());
        let fusions: Vec<_> = nodes.clone().map(|node| Fusion::at(&context, node)).collect();
        let is_matmul = |node: &usize| {
            let op = &model.graph.nodes()[*node].op;
            matches!(fusions[*node], Some(Fusion::Matmul(_))) || matches!(op, Op::Experts(_))
        };
        let gemv_plans = fusions.iter().map(|fusion| match fusion {
            Some(Fusion::Matmul(fused)) => Some(GemvPlans::of(&model.cpu, fused, &context)),
            _ => None,
        });
        let gemv_plans = gemv_plans.collect();
        let next_matmuls = nodes.clone().map(|n| (n..nodes.end).find(is_matmul)).collect();
        let packed_bytes = model.packed_bytes();
        let (read_ahead, scratch) = (ReadAhead::new(&model), Mutex::new(Vec::new()));
        let device = CpuDevice {
            model,
            fusions,
            gemv_plans,
            next_matmuls,
            packed_bytes,
            read_ahead,
            scratch,
        };
        Ok(device)
    }

    /// The threads and instruction set in use.
    pub fn cpu(&self) -> &Cpu {
        &self.model.cpu
    }

    /// The model's weights.
    pub fn weights(&self) -> &Arc<Weights> {
        &self.model.weights
    }
}

impl BlockingDevice for CpuDevice {
    fn name(&self) -> &str {
        &self.model.name
    }

    fn threads(&self) -> usize {
        self.model.cpu.pool().threads()
    }

    fn run(&mut self, work: StageRun<'_>) -> Result<(), DeviceError> {
        self.run_shared(work)
    }
}

impl CpuDevice {
    /// As [`BlockingDevice::run`], from several threads at once: one of them uses the pool's threads, the
    /// others compute alone.
    ///
    /// # Errors
    /// As [`BlockingDevice::run`].
    pub fn run_shared(&self, mut work: StageRun<'_>) -> Result<(), DeviceError> {
        let mut scratch = lock(&self.scratch).pop().unwrap_or_default();
        let result = self.run_with(&mut work, &mut scratch);
        scratch.written.clear();
        scratch.matmul_inputs.value = None;
        scratch.loads.get_mut().load = None;
        lock(&self.scratch).push(scratch);
        result
    }

    fn run_with(&self, work: &mut StageRun<'_>, scratch: &mut Scratch) -> Result<(), DeviceError> {
        let StageRun { nodes, part, batch, inputs, writes, .. } = &*work;
        let (nodes, part, batch, inputs, writes) = (nodes.clone(), *part, *batch, *inputs, *writes);
        let Scratch { written, sequences, matmul_inputs, angles, reading, loads } = scratch;
        self.check_experts(&nodes, part)?;
        self.fill_angles(nodes.clone(), part, batch, angles);
        let mut held = self.model.hold()?;
        let ahead = self.read_ahead.as_ref();
        let mut reading = ahead.and_then(|ahead| ahead.begin(&self.model, &nodes, reading));
        let mut next = nodes.start;
        while next < nodes.end {
            let fused = self.fusions[next].as_ref();
            let fused = fused.filter(|fused| fused.fits(nodes.end, part, writes));
            let done = next..fused.map_or(next + 1, |fused| fused.nodes().end);
            let first = nodes.start;
            let residual = fused.and_then(|fused| {
                let id = fused.accumulates_into(&self.model.context(), writes)?;
                written.get_mut(id.0.checked_sub(first)?)?.take()
            });
            let stage =
                Stage { model: &self.model, part, batch, inputs, written: (first, &written[..]) };
            if let Some(reading) = &mut reading {
                reading.before(&done, &stage, work.observer)?;
            }
            match fused {
                Some(Fusion::RopeAttention(rope)) => {
                    let [keys, node] = [0, 1].map(|at| &self.model.graph.nodes()[rope + at]);
                    let after = NextDispatch::default();
                    let run = OpRun { stage, node, angles, keys: Some(keys), after, loads };
                    written.extend([None, Some(run.compute(sequences)?)]);
                }
                Some(Fusion::Matmul(fused)) => {
                    let output_scheme = self.output_scheme(fused, nodes.end, part, writes);
                    let (gemv_plan, next_dispatch) = match part.features.is_whole() {
                        true => (
                            self.gemv_plan(next, output_scheme),
                            self.next_dispatch(done.end, &nodes, part, writes),
                        ),
                        false => (None, NextDispatch::default()),
                    };
                    let run = FusedMatmulRun {
                        stage,
                        fused,
                        output_scheme,
                        residual,
                        gemv_plan,
                        next_dispatch,
                    };
                    let outputs = run.compute(matmul_inputs)?;
                    written.extend(outputs.into_iter().take(done.len()));
                }
                Some(&Fusion::NormAdd { node, norm, residual: input }) => {
                    let run = NormAddRun { stage, node, norm, input, residual };
                    written.extend([None, Some(run.compute()?)]);
                }
                None => {
                    let node: &Node = &self.model.graph.nodes()[next];
                    let after = self.after_experts(next, &nodes, part, writes);
                    let run = OpRun { stage, node, angles, keys: None, after, loads };
                    written.push(Some(run.compute(sequences)?));
                }
            }
            self.release(done.clone(), first, written);
            let read = self.packed_bytes[done.clone()].iter().sum::<usize>() * batch.ids.len();
            held.after(read).map_err(|lost| self.model.failed(lost))?;
            next = done.end;
            work.observer.nodes_done(done);
            loads.get_mut().report(next - 1, work.observer);
        }
        self.put_outputs(work, written);
        Ok(())
    }

    /// Checks that nodes can be computed for some experts, if the part says so.
    fn check_experts(&self, nodes: &Range<usize>, part: &Part) -> Result<(), DeviceError> {
        let is_cut = part.experts.is_some();
        if !is_cut || self.model.graph.can_cut_experts(nodes.clone()).is_some() {
            return Ok(());
        }
        let (device, what) =
            (self.model.name.clone(), format!("nodes {nodes:?} over some experts"));
        Err(DeviceError::Unsupported { device, what })
    }

    /// Hands over the values that the stage writes.
    fn put_outputs(&self, work: &mut StageRun<'_>, written: &mut [Option<Slot>]) {
        for &id in work.writes {
            if let Some(data) = written.get_mut(id.0 - work.nodes.start).and_then(Option::take) {
                let width = work.part.features.of_width(self.model.graph.value(id).width).len();
                work.outputs.put(id, Tensor::new(width, data));
            }
        }
    }

    /// Computes the angles of the part's rows, if the nodes rotate any.
    fn fill_angles(&self, nodes: Range<usize>, part: &Part, batch: &Batch, angles: &mut Angles) {
        let BoundModel { cpu, graph, ropes, .. } = &self.model;
        if graph.nodes()[nodes].iter().any(|node| matches!(node.op, Op::Rope { .. })) {
            let positions = match &part.rows {
                Some(rows) => &batch.positions[rows.clone()],
                None => &batch.positions[..],
            };
            angles.fill(cpu, ropes.iter().map(|(freqs, _)| freqs), positions);
        }
    }

    /// Gives back the slots of values that these nodes were the last to read.
    fn release(&self, nodes: Range<usize>, first: usize, written: &mut [Option<Slot>]) {
        for dead in self.model.last_uses[nodes].iter().flatten() {
            if let Some(slot) = dead.0.checked_sub(first).and_then(|at| written.get_mut(at)) {
                *slot = None;
            }
        }
    }
}

//! The CPU as a [`BlockingDevice`]: walks a stage's nodes, one op or one fused group after another on the
//! pool.

use std::ops::Range;
use std::sync::Arc;

use crate::cpu::products::{RowTasks, Upcoming};
use crate::cpu::quantize::ActKind;
use crate::cpu::{BindError, Cpu, RopeFreqs, Table, Weights};
use crate::device::{BlockingDevice, DeviceError, Slot, SlotPool, StageRun, Tensor};
use crate::graph::{Graph, Node, ValueId, WeightId};
use crate::kv::KvStore;
use crate::op::{Op, RopePairs, RopeSpec};
use crate::part::Part;
use crate::sync::{Mutex, lock};
use crate::weights::WeightFile;

mod fused;
mod group;
mod ops;
mod scratch;
mod stage;

use fused::{Fused, FusedRun, Known, NormAddRun};
use group::{Group, OneRow};
use ops::OpRun;
use scratch::Scratch;
use stage::Stage;

/// A CPU with a model's weights.
///
/// Ops that follow each other are computed together where nothing else reads what lies between
/// them: a norm and the products of its result, which are quantised for once; a product and the
/// residual that is added to it, where that lies if nothing else reads it; a norm and the sum that
/// follows; a feed-forward block's gate and up, whose result is quantised as it comes where only a
/// product of quantised weights reads it; an attention and the rotation of its keys, which are
/// written to their pages as they turn. The results are those of the ops one by one, bit for bit. An
/// observer is told of the group's nodes but the last before it begins, so that the time of all of
/// them lies at the last.
#[derive(Debug)]
pub struct CpuDevice {
    name: String,
    cpu: Cpu,
    graph: Arc<Graph>,
    weights: Arc<Weights>,
    ropes: Vec<(RopeFreqs, RopePairs)>,
    kv: Arc<KvStore>,
    slots: SlotPool,
    last_uses: Vec<Vec<ValueId>>,
    /// The group that begins with each node, if any does.
    groups: Vec<Option<Fused>>,
    /// How the products of the group that begins with each node are cut for one row.
    one_row: Vec<Option<OneRow>>,
    /// The first node from each one on that begins a group of products.
    products_from: Vec<Option<usize>>,
    /// One for each run at the same time.
    scratch: Mutex<Vec<Scratch>>,
}

/// What a [`CpuDevice`] is made of.
#[derive(Debug)]
pub struct CpuDeviceParts {
    /// Its name in the engine.
    pub name: String,
    /// Threads and instruction set.
    pub cpu: Cpu,
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Keys and values, shared with the other devices of this address space.
    pub kv: Arc<KvStore>,
    /// Where its results lie, shared too.
    pub slots: SlotPool,
}

impl CpuDevice {
    /// Takes the graph's weights from `file`, packed for the kernels: once for all devices of
    /// the process that use the same open file, on this device's threads if it is the first.
    ///
    /// # Errors
    /// [`BindError`] when `file` is not the one that the graph was built from, or there is no
    /// memory.
    pub fn new(parts: CpuDeviceParts, file: &WeightFile) -> Result<CpuDevice, BindError> {
        let CpuDeviceParts { name, cpu, graph, kv, slots } = parts;
        let weights = Weights::of(&cpu, &graph, file)?;
        let ropes = graph.ropes().iter().map(|spec| bind_rope(spec, &weights)).collect();
        let last_uses = graph.last_uses();
        let scratch = Mutex::new(Vec::new());
        let known = Known { graph: &graph, weights: &weights, last_uses: &last_uses };
        let nodes = 0..graph.nodes().len();
        let groups: Vec<_> = nodes.clone().map(|node| Fused::at(&known, node)).collect();
        let is_products = |node: &usize| matches!(groups[*node], Some(Fused::Products(_)));
        let one_row = groups.iter().map(|group| match group {
            Some(Fused::Products(group)) => Some(OneRow::of(&cpu, group, &known)),
            _ => None,
        });
        let one_row = one_row.collect();
        let products_from = nodes.clone().map(|n| (n..nodes.end).find(is_products)).collect();
        Ok(CpuDevice {
            name,
            cpu,
            graph,
            weights,
            ropes,
            kv,
            slots,
            last_uses,
            groups,
            one_row,
            products_from,
            scratch,
        })
    }

    /// The threads and instruction set in use.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// The model's weights.
    pub fn weights(&self) -> &Arc<Weights> {
        &self.weights
    }

    fn known(&self) -> Known<'_> {
        let CpuDevice { graph, weights, last_uses, .. } = self;
        Known { graph, weights, last_uses }
    }

    fn table(&self, id: WeightId) -> Result<Table<'_>, DeviceError> {
        self.weights.table(id).map_err(|error| DeviceError::Failed {
            device: self.name.clone(),
            reason: error.to_string(),
        })
    }
}

impl BlockingDevice for CpuDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> usize {
        self.cpu.pool().threads()
    }

    fn run(&mut self, work: StageRun<'_>) -> Result<(), DeviceError> {
        self.run_shared(work)
    }
}

impl CpuDevice {
    /// As [`BlockingDevice::run`], also for several threads at once: while one of them has the pool's
    /// threads, the others compute alone.
    ///
    /// # Errors
    /// As [`BlockingDevice::run`].
    pub fn run_shared(&self, mut work: StageRun<'_>) -> Result<(), DeviceError> {
        let mut scratch = lock(&self.scratch).pop().unwrap_or_default();
        let result = self.run_with(&mut work, &mut scratch);
        scratch.written.clear();
        scratch.forms.value = None;
        lock(&self.scratch).push(scratch);
        result
    }

    fn run_with(&self, work: &mut StageRun<'_>, scratch: &mut Scratch) -> Result<(), DeviceError> {
        let StageRun { nodes, part, batch, inputs, writes, .. } = &*work;
        let (nodes, part, batch, inputs, writes) = (nodes.clone(), *part, *batch, *inputs, *writes);
        let Scratch { written, spans, forms, angles } = scratch;
        if self.graph.nodes()[nodes.clone()].iter().any(|n| matches!(n.op, Op::Rope { .. })) {
            let positions = match &part.rows {
                Some(rows) => &batch.positions[rows.clone()],
                None => &batch.positions[..],
            };
            angles.fill(&self.cpu, self.ropes.iter().map(|(freqs, _)| freqs), positions);
        }
        let mut next = nodes.start;
        while next < nodes.end {
            let group = self.groups[next].as_ref();
            let group = group.filter(|group| group.fits(nodes.end, part, writes));
            let done = next..group.map_or(next + 1, |group| group.nodes().end);
            (done.start..done.end - 1).for_each(|node| work.observer.node_done(node));
            let first = nodes.start;
            let residual = group.and_then(|group| {
                let id = group.adds_to(&self.known(), writes)?;
                written.get_mut(id.0.checked_sub(first)?)?.take()
            });
            let stage = Stage { device: self, part, batch, inputs, written: (first, &written[..]) };
            match group {
                Some(Fused::Keys(rope)) => {
                    let [keys, node] = [0, 1].map(|at| &self.graph.nodes()[rope + at]);
                    let run = OpRun { stage, node, angles, keys: Some(keys) };
                    let output = run.compute(spans)?;
                    written.extend([None, Some(output)]);
                }
                Some(Fused::Products(group)) => {
                    let form = self.next_form(group, nodes.end, part, writes);
                    let (one_row, upcoming) = match part.features.is_whole() {
                        true => (
                            self.one_row(next, form),
                            self.upcoming(done.end, (&nodes, part, writes)),
                        ),
                        false => (None, Upcoming::default()),
                    };
                    let run = FusedRun { stage, group, form, residual, one_row, upcoming };
                    let outputs = run.compute(forms)?;
                    written.extend(outputs.into_iter().take(done.len()));
                }
                Some(&Fused::NormAdd { node, norm, residual: input }) => {
                    let run = NormAddRun { stage, node, norm, input, residual };
                    written.extend([None, Some(run.compute()?)]);
                }
                None => {
                    let node: &Node = &self.graph.nodes()[next];
                    let output = OpRun { stage, node, angles, keys: None }.compute(spans)?;
                    written.push(Some(output));
                }
            }
            self.release(done.clone(), first, written);
            work.observer.node_done(done.end - 1);
            next = done.end;
        }
        for &id in writes {
            if let Some(data) = written.get_mut(id.0 - nodes.start).and_then(Option::take) {
                let width = part.features.of_width(self.graph.value(id).width).len();
                work.outputs.put(id, Tensor::new(width, data));
            }
        }
        Ok(())
    }

    /// The form in which the next group takes the only result of `group`, if that may be made
    /// instead of the result: when nothing else reads it, and its columns make enough tasks.
    fn next_form(
        &self,
        group: &Group,
        end: usize,
        part: &Part,
        writes: &[ValueId],
    ) -> Option<ActKind> {
        const TASKS_PER_THREAD: usize = 3;
        let Fused::Products(next) = self.groups.get(group.nodes().end)?.as_ref()? else {
            return None;
        };
        let (value, format) = group.feeds?;
        let kind = ActKind::of(self.cpu.activations(), format)?;
        let tasks = self.graph.value(value).width / kind.columns();
        let fits = next.fits(end, part, writes) && part.features.is_whole();
        (fits && !writes.contains(&value) && tasks >= TASKS_PER_THREAD * self.cpu.pool().threads())
            .then_some(kind)
    }

    /// The weights of the products that come first from a node of the stage on, or after its last
    /// when the stage begins anew.
    fn upcoming(
        &self,
        from: usize,
        (stage, part, writes): (&Range<usize>, &Part, &[ValueId]),
    ) -> Upcoming<'_> {
        let first = |from: usize| {
            self.products_from.get(from).copied().flatten().filter(|node| *node < stage.end)
        };
        let Some(node) = first(from).or_else(|| first(stage.start)) else {
            return Upcoming::default();
        };
        let Some(Fused::Products(group)) = &self.groups[node] else {
            return Upcoming::default();
        };
        let form = self.next_form(group, stage.end, part, writes);
        let one_row = self.one_row(node, form);
        Upcoming { form, one_row, ..group.upcoming(&self.known()) }
    }

    /// How the products of the group that begins with a node are cut for one row.
    fn one_row(&self, node: usize, form: Option<ActKind>) -> Option<&RowTasks> {
        self.one_row[node].as_ref()?.in_form(form)
    }

    /// Gives back the slots of values that these nodes were the last to read.
    fn release(&self, nodes: Range<usize>, first: usize, written: &mut [Option<Slot>]) {
        for dead in self.last_uses[nodes].iter().flatten() {
            if let Some(slot) = dead.0.checked_sub(first).and_then(|at| written.get_mut(at)) {
                *slot = None;
            }
        }
    }
}

fn bind_rope(spec: &RopeSpec, weights: &Weights) -> (RopeFreqs, RopePairs) {
    let factors = spec.factors.map(|id| weights.vector(id));
    (RopeFreqs::new(spec.base, spec.dims, spec.scaling, factors), spec.pairs)
}

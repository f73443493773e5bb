//! The CPU as a [`Device`]: walks a stage's nodes, one op after another on the pool.

use std::sync::Arc;

use crate::cpu::{BindError, Cpu, RopeAngles, RopeFreqs, Table, Weights};
use crate::device::{Device, DeviceError, Slot, SlotPool, Tensor, Work};
use crate::graph::{Graph, ValueId, WeightId};
use crate::kv::KvStore;
use crate::op::{Op, RopePairs, RopeSpec};
use crate::weights::WeightFile;

mod ops;

use ops::OpRun;

/// A CPU with a model's weights.
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
        Ok(CpuDevice { name, cpu, graph, weights, ropes, kv, slots, last_uses })
    }

    /// The threads and instruction set in use.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// The model's weights.
    pub fn weights(&self) -> &Arc<Weights> {
        &self.weights
    }

    fn table(&self, id: WeightId) -> Result<Table<'_>, DeviceError> {
        self.weights.table(id).map_err(|error| DeviceError::Failed {
            device: self.name.clone(),
            reason: error.to_string(),
        })
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> usize {
        self.cpu.pool().threads()
    }

    fn run(&mut self, work: Work<'_>) -> Result<(), DeviceError> {
        self.run_shared(work)
    }
}

impl CpuDevice {
    /// As [`Device::run`], also for several threads at once: while one of them has the pool's
    /// threads, the others compute alone.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub fn run_shared(&self, work: Work<'_>) -> Result<(), DeviceError> {
        let Work { nodes, part, batch, inputs, writes, outputs, observer, .. } = work;
        let positions = match &part.rows {
            Some(rows) => &batch.positions[rows.clone()],
            None => &batch.positions[..],
        };
        let uses_rope =
            self.graph.nodes()[nodes.clone()].iter().any(|n| matches!(n.op, Op::Rope { .. }));
        let angles: Vec<RopeAngles> = match uses_rope {
            true => self.ropes.iter().map(|(freqs, _)| freqs.angles(positions)).collect(),
            false => Vec::new(),
        };
        let first = nodes.start;
        let mut written: Vec<Option<Slot>> = Vec::with_capacity(nodes.len());
        for index in nodes {
            let node = &self.graph.nodes()[index];
            let run = OpRun {
                device: self,
                node,
                part,
                batch,
                angles: &angles,
                inputs,
                written: (first, &written),
            };
            let output = run.compute()?;
            written.push(Some(output));
            for dead in &self.last_uses[index] {
                if let Some(slot) = dead.0.checked_sub(first).and_then(|at| written.get_mut(at)) {
                    *slot = None;
                }
            }
            observer.node_done(index);
        }
        for &id in writes {
            if let Some(data) = written.get_mut(id.0 - first).and_then(Option::take) {
                let width = part.features.of_width(self.graph.value(id).width).len();
                outputs.put(id, Tensor { width, data });
            }
        }
        Ok(())
    }
}

fn bind_rope(spec: &RopeSpec, weights: &Weights) -> (RopeFreqs, RopePairs) {
    let factors = spec.factors.map(|id| weights.vector(id));
    (RopeFreqs::new(spec.base, spec.dims, spec.scaling, factors), spec.pairs)
}

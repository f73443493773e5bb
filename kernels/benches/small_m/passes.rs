//! Runs and times passes of the CPU device.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::cpu::{Cpu, CpuDevice, CpuDeviceParts};
use lapwing_kernels::device::{
    Batch, BlockingDevice, Observer, Prepare, SlotPool, StageRun, TensorSet,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::{KvLease, KvPool, KvStore};
use lapwing_kernels::model::Model;
use lapwing_kernels::part::Part;
use lapwing_kernels::weights::WeightFile;

use crate::{Failure, now};

/// A device with one sequence.
pub(crate) struct Passes {
    pub(crate) cpu: Cpu,
    pub(crate) graph: Arc<Graph>,
    pub(crate) layers: usize,
    /// Bytes of all matrices that a pass reads, as stored in the file.
    pub(crate) weight_bytes: u64,
    device: CpuDevice,
    lease: KvLease,
    context: usize,
}

/// Times of passes of one size, in seconds.
pub(crate) struct Timing {
    pub(crate) rows: usize,
    pub(crate) median: f64,
    /// Median time of each kind of op.
    pub(crate) ops: BTreeMap<&'static str, f64>,
}

/// Adds up the time of each kind of op.
struct Clock<'a> {
    graph: &'a Graph,
    last: Duration,
    ops: BTreeMap<&'static str, f64>,
}

impl Observer for Clock<'_> {
    fn nodes_done(&mut self, nodes: Range<usize>) {
        let time = now();
        // A fusion counts as its matmul.
        let mut names = nodes.clone().map(|node| self.graph.nodes()[node].op.name());
        let name = names.clone().find(|name| *name == "matmul").or_else(|| names.next_back());
        let role = self.graph.nodes()[nodes.end - 1].role;
        let name = if name == Some("matmul") { role } else { name.unwrap_or("other") };
        *self.ops.entry(name).or_default() += (time - self.last).as_secs_f64();
        self.last = time;
    }
}

impl Passes {
    /// Opens a model with room for a context and `rows` more rows.
    pub(crate) fn open(
        cpu: Cpu,
        file: &Path,
        context: usize,
        rows: usize,
    ) -> Result<Passes, Failure> {
        let file = WeightFile::open(file)?;
        let model = Model::from_weights(&file)?;
        let (graph, layout) = (Arc::new(model.graph), model.config.kv_layout());
        let pages = layout.pages_for(context + rows) as u32;
        let mut lease = KvLease::default();
        lease.grow(&KvPool::new(pages), &layout, context + rows)?;
        let parts = CpuDeviceParts {
            name: "cpu".to_owned(),
            cpu: Cpu::new(cpu.pool().threads(), cpu.isa()),
            graph: Arc::clone(&graph),
            kv: Arc::new(KvStore::new(layout, pages)?),
            slots: SlotPool::default(),
        };
        let device = CpuDevice::new(parts, &file)?;
        let layers = model.config.layers;
        let mut passes = Passes { cpu, graph, layers, weight_bytes: 0, device, lease, context };
        // Without a context, a pass reads weights only, and the rows that it writes itself.
        let mut batch = Batch::default();
        batch.push(&[1], 0, passes.lease.page_ids().to_vec(), 0..1);
        passes.weight_bytes = passes.graph.stored_bytes(&batch);
        for first in (0..context).step_by(64) {
            let ids = vec![1; 64.min(context - first)];
            let mut batch = Batch::default();
            batch.push(&ids, first, passes.lease.page_ids().to_vec(), 0..1);
            passes.pass(&batch)?;
        }
        Ok(passes)
    }

    /// The rows after the context, with logits for each.
    pub(crate) fn batch(&self, rows: usize) -> Batch {
        let ids: Vec<u32> = (0..rows as u32).map(|row| 1 + row).collect();
        let mut batch = Batch::default();
        batch.push(&ids, self.context, self.lease.page_ids().to_vec(), 0..rows);
        batch
    }

    /// Time of a pass, and of its ops.
    fn pass(&mut self, batch: &Batch) -> Result<(f64, BTreeMap<&'static str, f64>), Failure> {
        let writes = [self.graph.output()];
        let (mut outputs, start) = (TensorSet::default(), now());
        let mut clock = Clock { graph: &self.graph, last: start, ops: BTreeMap::new() };
        self.device.run(StageRun {
            nodes: 0..self.graph.nodes().len(),
            part: &Part::WHOLE,
            prepare: Prepare::Ahead,
            batch,
            inputs: &TensorSet::default(),
            writes: &writes,
            outputs: &mut outputs,
            observer: &mut clock,
        })?;
        Ok(((now() - start).as_secs_f64(), clock.ops))
    }

    /// Medians over `rounds` rounds, each of which runs a pass of every size after an unmeasured one
    /// of one row.
    pub(crate) fn run(&mut self, rows: &[usize], rounds: usize) -> Result<Vec<Timing>, Failure> {
        let batches: Vec<Batch> = rows.iter().map(|rows| self.batch(*rows)).collect();
        let mut samples: Vec<Vec<_>> = rows.iter().map(|_| Vec::new()).collect();
        for round in 0..=rounds {
            self.pass(&batches[0])?;
            for (batch, samples) in batches.iter().zip(&mut samples) {
                let sample = self.pass(batch)?;
                if round > 0 {
                    samples.push(sample);
                }
            }
        }
        let timings = rows.iter().zip(samples).map(|(rows, samples)| {
            let median = median(samples.iter().map(|(time, _)| *time));
            let names = samples[0].1.keys();
            let ops = names.map(|name| (*name, median_of(&samples, name)));
            Timing { rows: *rows, median, ops: ops.collect() }
        });
        Ok(timings.collect())
    }
}

fn median_of(samples: &[(f64, BTreeMap<&'static str, f64>)], name: &str) -> f64 {
    median(samples.iter().map(|(_, ops)| ops.get(name).copied().unwrap_or(0.0)))
}

/// The median of at least one value.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

//! An NPU as a [`BlockingDevice`]: rows go through prepared graphs, one after another.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use lapwing_cpu::{BindError, Cpu};
use lapwing_model::device::{
    BlockingDevice, DeviceError, DeviceInfo, GraphKey, Prepare, Preparer, Slot, SlotPool, StageRun,
    TensorSet,
};
use lapwing_model::graph::{Graph, Node, ValueId};
use lapwing_model::part::Part;
use lapwing_model::weights::WeightFile;

use super::array::Array;
use super::backend::{BackendInfo, NpuBackend, PreparedGraph};
use super::cache::{GraphCache, Requester};
use super::check::Checker;
use super::graph_builder::{CheckedGraph, Graphs, Maker, NpuGraph};
use super::spec::GraphSpec;
use super::stage_run::{Piece, StagePieces};
use super::systolic::Systolic;

/// A device that runs prepared graphs only.
pub struct NpuDevice {
    info: DeviceInfo,
    backend: BackendInfo,
    graph: Arc<Graph>,
    slots: SlotPool,
    graphs: Graphs,
}

/// The components of an [`NpuDevice`].
#[derive(Clone, Debug)]
pub struct NpuDeviceParts {
    /// Its name in the engine.
    pub name: String,
    /// The model's ops.
    pub graph: Arc<Graph>,
    /// Where its results lie, shared with the other devices of this address space.
    pub slots: SlotPool,
    /// Bytes that its graphs may keep.
    pub budget: u64,
}

impl fmt::Debug for NpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("NpuDevice");
        debug.field("info", &self.info).field("cache", &self.graphs.cache).finish_non_exhaustive()
    }
}

impl NpuDevice {
    /// A device over a back end. `file` is the model's, for the check of every graph.
    pub fn new(
        parts: NpuDeviceParts,
        backend: Box<dyn NpuBackend>,
        file: &WeightFile,
    ) -> NpuDevice {
        let NpuDeviceParts { name, graph, slots, budget } = parts;
        let about = backend.info().clone();
        let maker = Maker {
            graph: Arc::clone(&graph),
            checker: Checker::new(&name, &about, &graph, file).with_rounding(backend.rounding()),
            refused: HashMap::new(),
            kept: None,
            backend,
        };
        let info = about.device_info(&name, budget);
        let cache = GraphCache::new(&info.name, budget);
        let graphs = Graphs::new(&info.name, cache, maker);
        NpuDevice { info, backend: about, graph, slots, graphs }
    }

    /// Keeps checked graphs in a folder, and takes those of an earlier start from there, if the back end can export
    /// graphs. `file` is the model's. A file of another library, processor, model or version of Lapwing, or a damaged
    /// one, is not used; the folder holds at most 16 GiB.
    #[must_use]
    pub fn keep_graphs(self, folder: PathBuf, file: &WeightFile) -> NpuDevice {
        self.graphs.keep(folder, file);
        self
    }

    /// A device in software ([`Systolic`]). `cpu` computes, one thread is enough.
    ///
    /// # Errors
    /// [`BindError`] when `file` is not the one that the graph was built from.
    pub fn systolic(
        parts: NpuDeviceParts,
        cpu: Cpu,
        array: Array,
        file: &WeightFile,
    ) -> Result<NpuDevice, BindError> {
        let backend = Systolic::new(&parts.name, cpu, array, &parts.graph, file)?;
        Ok(NpuDevice::new(parts, Box::new(backend), file))
    }

    /// Its description for the planner.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The backend that computes its graphs.
    pub fn backend(&self) -> &BackendInfo {
        &self.backend
    }

    /// Its graphs, also to be looked at once the device runs elsewhere.
    pub fn cache(&self) -> GraphCache<CheckedGraph> {
        self.graphs.cache.clone()
    }

    /// The graphs that a part needs for `rows`, each ready, and which rows each of them computes.
    pub(super) fn pieces(
        &self,
        work: &mut StageRun<'_>,
        rows: Range<usize>,
    ) -> Result<Vec<Piece>, DeviceError> {
        let Part { features, order, graphs, .. } = work.part;
        let mut pieces = Vec::new();
        let mut next = rows.start;
        for &size in graphs {
            if next == rows.end {
                break;
            }
            let end = rows.end.min(next + size);
            let (nodes, features, order) = (work.nodes.clone(), *features, *order);
            let model = work.batch.model;
            pieces.push((GraphKey { model, nodes, features, rows: size, order }, next..end));
            next = end;
        }
        if next < rows.end {
            let what = format!("{} rows with graphs of {graphs:?}", rows.len());
            return Err(self.unsupported(what));
        }
        let (keys, rows): (Vec<GraphKey>, Vec<_>) = pieces.into_iter().unzip();
        let graphs = match work.prepare {
            Prepare::OnTheSpot => self.graphs.ensure(&keys, Requester::Device, work.observer)?.1,
            Prepare::Ahead => keys.iter().map(|key| self.ready(key)).collect::<Result<_, _>>()?,
        };
        Ok(graphs.into_iter().zip(rows).map(|(graph, rows)| Piece { graph, rows }).collect())
    }

    /// Output channels of a part's share of a value.
    pub(super) fn width(&self, id: ValueId, part: &Part) -> usize {
        part.features.of_width(self.graph.value(id).width).len()
    }

    /// Room for a result of that many values.
    pub(super) fn slot(&self, values: usize) -> Slot {
        self.slots.take(values)
    }

    pub(super) fn count_run(&self) {
        self.graphs.cache.count_run();
    }

    fn ready(&self, key: &GraphKey) -> Result<Arc<NpuGraph>, DeviceError> {
        self.graphs.cache.get(key, Requester::Device).ok_or_else(|| DeviceError::NotPrepared {
            device: self.info.name.clone(),
            nodes: key.nodes.clone(),
            rows: key.rows,
        })
    }

    /// The rows of the stage's values. All of them have the same.
    pub(super) fn rows(&self, work: &StageRun<'_>) -> Result<Range<usize>, DeviceError> {
        let StageRun { nodes, part, batch, .. } = work;
        let first = self.graph.nodes().get(nodes.start).filter(|_| !nodes.is_empty());
        let Some(first) = first.filter(|_| nodes.end <= self.graph.nodes().len()) else {
            return Err(self.unsupported(format!("nodes {nodes:?}")));
        };
        let rows = part.rows_of(self.graph.value(first.output), batch);
        if rows.start > rows.end || rows.end > batch.rows().max(batch.selected.len()) {
            return Err(self.unsupported(format!("rows {rows:?} of {}", batch.rows())));
        }
        Ok(rows)
    }

    /// Copies rows into a graph's buffers, and zeros below them. Returns the bytes read and
    /// written.
    pub(super) fn load(
        &self,
        inputs: &TensorSet,
        spec: &GraphSpec,
        graph: &mut dyn PreparedGraph,
        rows: &Range<usize>,
    ) -> Result<u64, DeviceError> {
        let mut bytes = 0;
        for (at, port) in spec.inputs.iter().enumerate() {
            let from = inputs.get(port.value);
            let from = from.filter(|from| from.width == port.width && from.rows() >= rows.end);
            let Some(from) = from else {
                let of = |node: &&Node| node.inputs.contains(&port.value);
                let role = self.graph.nodes()[spec.key.nodes.clone()].iter().find(of);
                let role = role.map_or("", |node| node.role);
                return Err(DeviceError::MissingValue { value: port.value.0, role });
            };
            let values = from.host().ok_or(DeviceError::OtherMemory { value: port.value.0 })?;
            let values = &values[rows.start * port.width..rows.end * port.width];
            let buffer = graph.input(at);
            let (real, padding) = buffer.split_at_mut(values.len());
            real.copy_from_slice(values);
            padding.fill(0.0);
            bytes += size_of_val(values) + size_of_val(buffer);
        }
        Ok(bytes as u64)
    }

    pub(super) fn unsupported(&self, what: String) -> DeviceError {
        DeviceError::Unsupported { device: self.info.name.clone(), what }
    }
}

impl BlockingDevice for NpuDevice {
    fn name(&self) -> &str {
        &self.info.name
    }

    /// Runs the part's graphs one after another. The nodes are reported once, while the last graph
    /// runs; what the graphs before it take is part of the first step reported after them.
    fn run(&mut self, mut work: StageRun<'_>) -> Result<(), DeviceError> {
        let mut run = StagePieces::new(self, &mut work)?;
        while run.load(self, work.inputs, work.observer)? {
            run.compute(work.observer)?;
            run.unload(self)?;
        }
        run.end(work.observer, work.outputs);
        Ok(())
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        Some(Box::new(self.graphs.clone()))
    }
}

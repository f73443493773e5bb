//! The interface of a library or device that runs static graphs.

use lapwing_model::device::{
    Arithmetic, DeviceError, DeviceInfo, DeviceKind, GraphBudget, GraphKey, Notify, Observer,
};
use lapwing_model::quant::Activations;

use super::array::graph_bytes;
use super::rounding::ProductRounding;
use super::spec::{GraphSpec, SpecNode};
use super::weight_form::WeightForm;
use lapwing_model::graph::Graph;
use lapwing_model::op::Op;

/// Row counts of prepared graphs, powers of two: below 32 for decode and verification, and the
/// standard sizes of prefill from 32 on (HeteroLLM, arXiv 2501.14794, section 5).
pub const BUCKETS: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// What a prepared graph keeps in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMemory {
    /// The f32 buffers of its inputs and outputs ([`graph_bytes`]): weights are shared by all graphs.
    Buffers,
    /// Buffers, and a copy of the weights in the library's layout: for [`WeightForm::Stored`] as many bytes
    /// as in the model file for quantised weights, and f32 for others.
    BuffersAndWeights(WeightForm),
}

impl GraphMemory {
    /// Bytes that a graph takes.
    ///
    /// # Panics
    /// If the model's graph has no such nodes.
    pub fn bytes(self, graph: &Graph, key: &GraphKey) -> u64 {
        let buffers = graph_bytes(graph, key);
        let GraphMemory::BuffersAndWeights(form) = self else { return buffers };
        let weights = graph.nodes()[key.nodes.clone()].iter().map(|node| {
            let Op::MatMul { weight, .. } = node.op else { return 0 };
            let spec = &graph.weights()[weight.0];
            let rows = key.features.of_width(spec.rows).len();
            (rows * form.row_bytes(spec.dtype, spec.cols)) as u64
        });
        buffers + weights.sum::<u64>()
    }
}

/// Properties of a back end, known once it is open. Each back end has its own way to open; if it is
/// not available, that returns an error with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Name of the back end, such as `systolic`.
    pub name: String,
    /// Version of the library that computes.
    pub version: String,
    /// The processor is emulated: values are correct, wall-clock time is meaningless.
    pub emulated: bool,
    /// The row count of a graph must be a multiple of this, or smaller.
    pub row_multiple: usize,
    /// Row counts worth preparing graphs for, ascending.
    pub sizes: Vec<usize>,
    /// The back end itself rejects buffers of the wrong size.
    pub checks_sizes: bool,
    /// Threads that the back end starts.
    pub own_threads: usize,
    /// Precision of activations in matmuls with quantised weights; the reference that results are
    /// checked against uses the same. [`Activations::F32`] stands for binary16 or better.
    pub activations: Activations,
    /// What its graphs keep in memory.
    pub memory: GraphMemory,
    /// How its graphs represent matrices; the reference that results are checked against does the same.
    pub weights: WeightForm,
    /// How its values are rounded.
    pub arithmetic: Arithmetic,
}

impl BackendInfo {
    /// Properties of a library that runs on a real processor, computes in floats, takes any number of rows
    /// and keeps weights in each graph. Version and threads are not known before it is open.
    pub fn float_library(name: &str) -> BackendInfo {
        BackendInfo {
            name: name.to_owned(),
            version: String::new(),
            emulated: false,
            row_multiple: 1,
            sizes: BUCKETS.to_vec(),
            checks_sizes: true,
            own_threads: 0,
            activations: Activations::F32,
            memory: GraphMemory::BuffersAndWeights(WeightForm::Stored),
            weights: WeightForm::Stored,
            arithmetic: Arithmetic::Own,
        }
    }

    /// As [`float_library`](BackendInfo::float_library), of a library that computes in binary16, keeps
    /// matrices in the form `weights`, and does not check sizes.
    pub fn half_library(name: &str, weights: WeightForm) -> BackendInfo {
        let memory = GraphMemory::BuffersAndWeights(weights);
        let floats = BackendInfo::float_library(name);
        BackendInfo { memory, weights, checks_sizes: false, ..floats }
    }

    /// What a planner has to know of a device with this back end, whose prepared graphs may take
    /// `budget` bytes together.
    pub fn device_info(&self, name: &str, budget: u64) -> DeviceInfo {
        let memory = self.memory;
        let budget = GraphBudget::new(budget, move |graph, key| memory.bytes(graph, key));
        let info =
            DeviceInfo::new(name, DeviceKind::Npu).with_graphs(self.sizes.clone(), Some(budget));
        DeviceInfo { row_alignment: self.row_multiple, arithmetic: self.arithmetic, ..info }
    }
}

/// Prepares static graphs. It may move between threads, but only one uses it at a time.
pub trait NpuBackend: Send {
    /// Properties of the back end.
    fn info(&self) -> &BackendInfo;

    /// Checks that it can run a node with this op, these weight formats and shapes.
    ///
    /// # Errors
    /// The reason why it cannot, as text.
    fn supports(&self, node: &SpecNode) -> Result<(), String>;

    /// Estimate, before preparation, of the bytes that the prepared graph will occupy.
    fn estimate_bytes(&self, spec: &GraphSpec) -> u64 {
        spec.buffer_bytes()
    }

    /// Bytes that all its graphs share, excluding the mapped model file: copies of weights, scratch.
    fn shared_bytes(&self) -> u64;

    /// Prepares a graph. Blocks, and may take seconds.
    ///
    /// # Errors
    /// [`DeviceError`] if this graph cannot be prepared; the back end remains usable for others.
    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError>;

    /// How it rounds at products, if it has fixed scales for them; the reference that results are checked against
    /// then rounds in the same way.
    fn rounding(&self) -> Option<ProductRounding> {
        None
    }

    /// What its exported graphs depend on besides their specification and the model: the library and its version, the
    /// processor, the settings. `None` if it exports none.
    fn export_key(&self) -> Option<String> {
        None
    }

    /// Prepares a graph from what [`PreparedGraph::export`] returned for the same specification, with the same
    /// [`export_key`](NpuBackend::export_key) and the same model.
    ///
    /// # Errors
    /// [`DeviceError`] if it cannot be used; the graph is then prepared anew.
    fn import(
        &mut self,
        spec: &GraphSpec,
        _content: &[u8],
    ) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let what = format!("an exported graph of nodes {:?}", spec.key.nodes);
        Err(DeviceError::Unsupported { device: self.info().name.clone(), what })
    }
}

/// State of a run that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It has ended on the calling thread.
    Ended,
    /// It is under way elsewhere.
    Running,
}

/// A graph that is ready to run. It owns its input and output buffers, so that their sizes are
/// always right and a device can place them in its own memory.
pub trait PreparedGraph: Send {
    /// The row-major buffer `[rows, width]` of an input. `port` is its index in
    /// [`GraphSpec::inputs`].
    ///
    /// # Panics
    /// If there is no such input.
    fn input(&mut self, port: usize) -> &mut [f32];

    /// Computes the outputs from the inputs and returns when they are complete. Reports the nodes
    /// in order as they finish, or all at the end if the back end cannot observe them.
    ///
    /// # Errors
    /// [`DeviceError::Failed`]; the outputs are then undefined.
    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError>;

    /// Begins a run. One that is under way calls `notify` at its end, from any thread, and
    /// [`finish`](PreparedGraph::finish) returns its result from then on; until it has, the buffers belong to the
    /// back end. By default the run ends here, on the calling thread.
    ///
    /// # Errors
    /// As [`run`](PreparedGraph::run).
    fn start(
        &mut self,
        _notify: &Notify,
        observer: &mut dyn Observer,
    ) -> Result<Started, DeviceError> {
        self.run(observer).map(|()| Started::Ended)
    }

    /// The result of a run that was under way; `None` while it is. Reports the nodes.
    ///
    /// # Errors
    /// As [`run`](PreparedGraph::run).
    fn finish(&mut self, _observer: &mut dyn Observer) -> Option<Result<(), DeviceError>> {
        Some(Ok(()))
    }

    /// The row-major buffer `[rows, width]` of an output after a run. `port` is its index in
    /// [`GraphSpec::outputs`].
    ///
    /// # Panics
    /// If there is no such output.
    fn output(&self, port: usize) -> &[f32];

    /// Bytes that the graph occupies.
    fn bytes(&self) -> u64;

    /// The graph as bytes from which it can be prepared again in less time; `None` if that is impossible.
    fn export(&mut self) -> Option<Vec<u8>> {
        None
    }
}

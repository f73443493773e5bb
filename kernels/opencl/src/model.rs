//! A model on a device.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::discovery::OpenClInfo;
use super::error::OpenClError;
use super::kv::DeviceKv;
use super::memory::Memory;
use super::ops::{HeadDims, KernelSpec, Kernels};
use super::pack::CHANNELS;
use super::program::ProgramCache;
use super::session::Session;
use super::shared::SharedMemory;
use super::weights::DeviceWeights;
use lapwing_cpu::{BindError, RopeFreqs};
use lapwing_model::device::{MemoryDomain, SlotPool};
use lapwing_model::formats::DType;
use lapwing_model::graph::{Graph, Node, ValueId, WeightId};
use lapwing_model::kv::{KvLayout, KvStore};
use lapwing_model::op::{Op, RopePairs};
use lapwing_model::weights::WeightFile;

/// Parts of an [`OpenClDevice`](super::OpenClDevice).
#[derive(Clone, Debug)]
pub struct OpenClDeviceParts {
    /// Name of the device in the engine.
    pub name: String,
    /// The device of this machine.
    pub device: OpenClInfo,
    /// Number of its memory among the engine's devices.
    pub domain: MemoryDomain,
    /// The model's op graph.
    pub graph: Arc<Graph>,
    /// KV cache, which the device uses in place or keeps copies of.
    pub kv: Arc<KvStore>,
    /// Memory for results that the host reads.
    pub slots: SlotPool,
    /// Memory of the device that the host uses in place, of which `kv` and `slots` are made; without it, values and
    /// pages are copied. Its domain is [`MemoryDomain::Host`].
    pub shared: Option<Arc<SharedMemory>>,
    /// Whether runs of few rows may be computed by a persistent kernel.
    pub persistent: bool,
    /// Folder for compiled programs; without one, each start compiles.
    pub programs: Option<PathBuf>,
}

/// Why an OpenCL device cannot run a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenClBindError {
    /// The device, or its driver.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
    /// The weights.
    #[error(transparent)]
    Weights(#[from] BindError),
}

/// A rotary embedding of a graph.
#[derive(Debug)]
pub(super) struct Rotary {
    pub(super) freqs: RopeFreqs,
    pub(super) pairs: RopePairs,
}

/// A model that is bound to a device.
#[derive(Debug)]
pub(super) struct Model {
    /// Name of the device in the engine.
    pub(super) name: String,
    pub(super) domain: MemoryDomain,
    pub(super) session: Arc<Session>,
    pub(super) graph: Arc<Graph>,
    /// For each node, how many matmuls from it on may be computed as one.
    pub(super) joins: Vec<usize>,
    /// As [`Graph::last_uses`].
    pub(super) last_uses: Vec<Vec<ValueId>>,
    /// The rotary embeddings of the graph.
    pub(super) ropes: Vec<Rotary>,
    pub(super) weights: DeviceWeights,
    pub(super) kernels: Kernels,
    pub(super) kv: DeviceKv,
    /// As [`Graph::has_state`].
    pub(super) has_states: bool,
    pub(super) memory: Memory,
    pub(super) shared: Option<Arc<SharedMemory>>,
    pub(super) persistent: bool,
}

impl Model {
    /// Builds the kernels in a session of the device. Weights are copied when they are first needed.
    pub(super) fn new(
        parts: OpenClDeviceParts,
        session: Arc<Session>,
        file: &WeightFile,
    ) -> Result<Model, OpenClBindError> {
        let OpenClDeviceParts {
            name, domain, graph, kv, slots, programs, shared, persistent, ..
        } = parts;
        let layout = kv.layout();
        let cache = ProgramCache::new(programs);
        let spec = KernelSpec {
            dtypes: formats_of(&graph, |op| match op {
                Op::MatMul { weight, .. } | Op::Embed { table: weight, .. } => vec![*weight],
                _ => Vec::new(),
            }),
            experts: formats_of(&graph, |op| match op {
                Op::Experts(_) => op.matrices(),
                _ => Vec::new(),
            }),
            head_dims: head_dims(layout),
            convolves: graph.nodes().iter().any(|node| matches!(node.op, Op::ShortConv(_))),
            key_dims: key_dims(&graph),
            page_rows: layout.page_rows,
            kv: layout.dtype,
        };
        let mut kernels = Kernels::new(&session, &cache, &spec)?;
        // The first launch of a kernel may compile it, so it happens before the first request.
        kernels.warm_up()?;
        if persistent {
            kernels.start_persistent();
        }
        kernels.save(&cache);
        let weights = DeviceWeights::new(&name, &session, &graph, file)?;
        let ropes = graph.ropes().iter().map(|spec| {
            let factors = spec.factors.map(|id| weights.on_host(id)).transpose()?;
            let factors = factors.as_deref();
            let freqs = RopeFreqs::new(spec.base, spec.dims, spec.scaling, factors);
            Ok(Rotary { freqs, pairs: spec.pairs })
        });
        let ropes = ropes.collect::<Result<_, BindError>>()?;
        let kv = DeviceKv::new(&name, &session, kv);
        let memory = Memory::new(&session, slots, shared.clone());
        let joins = joins(&graph);
        let (last_uses, has_states) = (graph.last_uses(), graph.has_state());
        Ok(Model {
            name,
            domain,
            session,
            graph,
            joins,
            last_uses,
            ropes,
            weights,
            kernels,
            kv,
            has_states,
            memory,
            shared,
            persistent,
        })
    }
}

/// For each node, how many matmuls from it on may be computed as one, because they multiply the same
/// value with matrices of one format, which nothing else reads. Matmuls with a bias stay alone.
fn joins(graph: &Graph) -> Vec<usize> {
    let mut uses = vec![0; graph.weights().len()];
    for node in graph.nodes() {
        if let Op::MatMul { weight, .. } | Op::Embed { table: weight, .. } = node.op {
            uses[weight.0] += 1;
        }
    }
    let joinable = |node: &Node| match node.op {
        Op::MatMul { weight, bias: None } if uses[weight.0] == 1 => {
            let spec = &graph.weights()[weight.0];
            // The channels of the next matrix begin with a panel of their own.
            let is_even = spec.rows.is_multiple_of(CHANNELS);
            Some(((node.inputs[0], spec.dtype, spec.cols), is_even))
        }
        _ => None,
    };
    let from = |first: usize| {
        let nodes = &graph.nodes()[first..];
        let kind = nodes.first().and_then(joinable).map(|(kind, _)| kind);
        let same = nodes.iter().map_while(joinable).take_while(|(other, _)| Some(*other) == kind);
        let same: Vec<bool> = same.map(|(_, is_even)| is_even).collect();
        let even = same.iter().take_while(|is_even| **is_even).count();
        same.len().min(even + 1)
    };
    (0..graph.nodes().len()).map(from).collect()
}

/// Sizes of the heads of all layers.
fn head_dims(layout: &KvLayout) -> Vec<HeadDims> {
    let layers = layout.layers.iter();
    let dims = layers.map(|heads| HeadDims { key: heads.key_dim, value: heads.value_dim });
    dims.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Sizes of the keys of all linear attention.
fn key_dims(graph: &Graph) -> Vec<usize> {
    let dims = graph.nodes().iter().filter_map(|node| match &node.op {
        Op::LinearAttention(op) => Some(op.key_dim),
        _ => None,
    });
    dims.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Formats of some matrices of the graph's ops.
fn formats_of(graph: &Graph, matrices: impl Fn(&Op) -> Vec<WeightId>) -> Vec<DType> {
    let matrices = graph.nodes().iter().flat_map(|node| matrices(&node.op));
    let mut formats: Vec<DType> = matrices.map(|id| graph.weights()[id.0].dtype).collect();
    formats.sort_unstable_by_key(|dtype| dtype.gguf_id());
    formats.dedup();
    formats
}

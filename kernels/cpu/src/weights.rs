//! A model's weights in the layout of the kernels, shared by all devices of the process.

use crate::channel_sums::sum_channels;
use crate::context::Cpu;
use crate::embed::Table;
use crate::matrix::MatrixError;
use crate::pack::cache::report::PackReport;
use crate::pack::error::PackError;
use crate::pack::load::Packing;
use crate::pack::source::{FileMatrix, Source};
use crate::packed::{LostWeights, PackedMatrix};
use lapwing_model::graph::{Graph, WeightId, WeightSpec};
use lapwing_model::op::Op;
use lapwing_model::reference::dequantize;
use lapwing_model::requant::Requant;
use lapwing_model::weights::{ChangedError, Slices, TensorReadError, WeightFile, WeightTensor};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

mod beside;
mod held;
mod lock;
mod packed_bytes;
mod packed_use;
mod shared;
mod uses;

use beside::{Beside, Loading};
pub use held::Held;
pub use lock::{LockError, lock_packed};
pub use packed_bytes::packed_bytes;
pub use packed_use::{PackedUse, PackedUsers, packed_users};
pub use shared::{keep_packed, limit_packed, pack_report};
use uses::{Uses, uses};

/// Why a model's weights cannot be bound to a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A tensor of the graph is not in the file.
    #[error(
        "tensor '{name}' is not in the weight file; use the file that the graph was built from"
    )]
    Missing {
        /// Tensor name.
        name: String,
    },
    /// A tensor has the wrong size.
    #[error("tensor '{name}': {source}")]
    Size {
        /// Tensor name.
        name: String,
        /// What is wrong.
        source: MatrixError,
    },
    /// A tensor cannot be read.
    #[error(transparent)]
    Read(#[from] TensorReadError),
    /// The file was changed while it was read.
    #[error(transparent)]
    Changed(#[from] ChangedError),
    /// A tensor cannot be requantised.
    #[error(
        "tensor '{name}' cannot be requantised to {format}: its row {row} has a value that is \
         infinite, NaN, or too large for a binary16 scale; open the model without requantising"
    )]
    Requant {
        /// Tensor name.
        name: String,
        /// First such row.
        row: usize,
        /// Requested format.
        format: Requant,
    },
    /// The matrices cannot be packed.
    #[error(transparent)]
    Pack(PackError),
    /// Another program has changed the packed weights.
    #[error(transparent)]
    Lost(#[from] LostWeights),
}

/// The weights of a graph: vectors in f32, matrices of matmuls packed, rows of other embedding tables
/// are read from the file.
#[derive(Debug)]
pub struct Weights {
    specs: Vec<WeightSpec>,
    /// What each weight is requantised to.
    forms: Vec<Option<Requant>>,
    slices: BTreeMap<usize, Slices>,
    uses: Vec<Uses>,
    weights: Vec<Weight>,
    /// The gains of norms without a weight.
    ones: Vec<f32>,
    /// A matrix in a mapped file, if some are: all of them, or those that another model's weights share.
    mapped: Option<PackedMatrix>,
}

#[derive(Debug, Default)]
struct Weight {
    vector: Vec<f32>,
    packed: Option<PackedMatrix>,
    table: Option<WeightTensor>,
}

impl Weights {
    /// The weights of `graph` in `file`. Devices of the process that use the same weights of the
    /// same open file share them. Otherwise the matrices are packed on `ctx`, or read from the file
    /// of an earlier start ([`keep_packed`]). A model whose rows are given by another one of the same open file shares the matrices
    /// that both have; it packs its others into memory at each start.
    ///
    /// # Errors
    /// [`BindError`] when `file` is not the one that the graph was built from, cannot be read, or
    /// there is not enough memory.
    pub fn of(ctx: &Cpu, graph: &Graph, file: &WeightFile) -> Result<Arc<Weights>, BindError> {
        let uses = uses(graph);
        let forms = forms(graph);
        let same = |w: &Arc<Weights>| {
            let bytes = w.forms == forms && w.slices == *graph.slices();
            let ones = w.ones.len() == longest_plain_group(graph);
            bytes && ones && w.specs == graph.weights() && w.uses == uses
        };
        // The lock is held while weights are packed, so that two devices never pack the same ones.
        shared::with(file, |shared| {
            shared.weights.retain(|weights| weights.strong_count() > 0);
            if let Some(weights) = shared.weights.iter().filter_map(|w| w.upgrade()).find(same) {
                return Ok(weights);
            }
            let beside = Beside::of(graph, &shared.weights);
            let kept = if beside.is_empty() { &shared.kept } else { &shared.kept.beside() };
            let loading = Loading { graph, uses: uses.clone(), kept, beside: &beside };
            let (weights, report) = Weights::load(ctx, &loading, file)?;
            let weights = Arc::new(weights);
            if beside.is_empty() {
                shared.report = shared.kept.cache.is_some().then(|| Arc::new(report));
            }
            shared.weights.push(Arc::downgrade(&weights));
            Ok(weights)
        })
    }

    fn load(
        ctx: &Cpu,
        loading: &Loading<'_>,
        file: &WeightFile,
    ) -> Result<(Weights, PackReport), BindError> {
        let Loading { graph, uses, kept, beside } = loading;
        let specs = graph.weights();
        let tensors: Vec<WeightTensor> = specs
            .iter()
            .enumerate()
            .map(|(i, spec)| {
                let missing = || BindError::Missing { name: spec.name.clone() };
                graph.tensor(WeightId(i), file).ok_or_else(missing)
            })
            .collect::<Result<_, BindError>>()?;
        let sources = specs.iter().zip(&tensors).enumerate().map(|(i, (spec, tensor))| {
            let name = || spec.name.clone();
            let matrix = FileMatrix::new(tensor, spec.rows, spec.cols);
            let matrix = matrix.map_err(|source| BindError::Size { name: name(), source })?;
            Ok(Source::file(matrix, graph.requant(WeightId(i))))
        });
        let sources = sources.collect::<Result<Vec<_>, BindError>>()?;
        let mut others = beside.packed(graph, uses);
        let is_own = |i: &usize| uses[*i].matmul && others[*i].is_none();
        let matmuls: Vec<usize> = (0..specs.len()).filter(is_own).collect();
        let of_matmuls: Vec<&WeightTensor> = matmuls.iter().map(|i| &tensors[*i]).collect();
        let sources: Vec<Source<'_>> = matmuls.iter().map(|i| sources[*i]).collect();
        let (cache, free) = (kept.cache.as_ref(), kept.free());
        let packing = Packing { sources: &sources, tensors: &of_matmuls, file, cache, free };
        let (packed, report) = packing.load_or_pack(ctx).map_err(|error| match error {
            PackError::NotFinite { matrix, row, format } => {
                BindError::Requant { name: specs[matmuls[matrix]].name.clone(), row, format }
            }
            PackError::Read(error) => BindError::Read(error),
            other => BindError::Pack(other),
        })?;
        let mut packed = packed.into_iter();
        let all = uses.iter().enumerate().zip(tensors);
        let read = |i: usize, tensor: &WeightTensor| -> Result<Vec<f32>, BindError> {
            let values = dequantize(graph.stored(WeightId(i)), &tensor.read()?);
            Ok(match uses[i].by_column {
                Some(order) => order.of(&values, specs[i].cols),
                None => values,
            })
        };
        let weights = all.map(|((i, uses), tensor)| {
            Ok(Weight {
                vector: if uses.vector { read(i, &tensor)? } else { Vec::new() },
                packed: others[i].take().or_else(|| uses.matmul.then(|| packed.next()).flatten()),
                table: (uses.table && !uses.matmul).then_some(tensor),
            })
        });
        let weights = weights.collect::<Result<Vec<Weight>, BindError>>()?;
        let mut matrices = weights.iter().filter_map(|weight| weight.packed.as_ref());
        let mapped = matrices.find(|matrix| matrix.memory().mapped().is_some()).cloned();
        file.check_unchanged()?;
        let (specs, slices) = (specs.to_vec(), graph.slices().clone());
        let ones = vec![1.0; longest_plain_group(graph)];
        let (forms, uses) = (forms(graph), uses.clone());
        Ok((Weights { specs, forms, slices, weights, uses, ones, mapped }, report))
    }

    /// A weight that the graph reads in f32: a norm, a bias, rotary factors, sinks, all rows of a table that is
    /// added, or a small matrix in the order of [`Op::by_column`](lapwing_model::op::Op::by_column).
    pub fn vector(&self, id: WeightId) -> &[f32] {
        assert!(self.uses[id.0].vector, "weight {} is read as a vector", id.0);
        &self.weights[id.0].vector
    }

    /// The gains of a norm over groups of `group` values: its weight, or ones without one.
    pub fn gains(&self, weight: Option<WeightId>, group: usize) -> &[f32] {
        weight.map_or_else(|| &self.ones[..group], |weight| self.vector(weight))
    }

    /// The values of a vector that belong to some columns; its only value if it has one for all.
    pub fn factors(&self, id: WeightId, columns: Range<usize>) -> &[f32] {
        match self.vector(id) {
            one @ [_] => one,
            all => &all[columns],
        }
    }

    /// The matrix of a matmul. Its values may be read only while the weights are [held](Weights::hold).
    pub fn packed(&self, id: WeightId) -> &PackedMatrix {
        match &self.weights[id.0].packed {
            Some(packed) => packed,
            None => unreachable!("weight {} is the matrix of a matmul", id.0),
        }
    }

    /// An embedding table. If it is also the matrix of a matmul, the packed values are used, so
    /// that the file is not read.
    pub(crate) fn table(&self, id: WeightId) -> Result<Table<'_>, MatrixError> {
        let spec = &self.specs[id.0];
        match &self.weights[id.0] {
            Weight { packed: Some(packed), .. } => Ok(Table::Packed(packed)),
            Weight { table: Some(tensor), .. } => {
                FileMatrix::new(tensor, spec.rows, spec.cols).map(Table::File)
            }
            _ => unreachable!("weight {} is a table", id.0),
        }
    }

    /// Sums the weights of each output channel of the matrices, for activations with a minimum.
    pub(crate) fn sum_channels(&self, ctx: &Cpu) -> Result<(), LostWeights> {
        let mut held = self.hold(ctx)?;
        let packed = self.weights.iter().filter_map(|weight| weight.packed.as_ref());
        for matrix in packed.filter(|packed| packed.dtype().block_len() > 1) {
            sum_channels(ctx, matrix);
            held.renew()?;
        }
        Ok(())
    }

    /// Bytes of all packed matrices.
    pub fn packed_bytes(&self) -> usize {
        self.weights.iter().filter_map(|w| w.packed.as_ref()).map(PackedMatrix::bytes).sum()
    }
}

fn forms(graph: &Graph) -> Vec<Option<Requant>> {
    (0..graph.weights().len()).map(|id| graph.requant(WeightId(id))).collect()
}

/// Values of the longest group that a norm without a weight normalises.
fn longest_plain_group(graph: &Graph) -> usize {
    let groups = graph.nodes().iter().map(|node| match node.op {
        Op::RmsNorm { weight: None, group, .. } => group,
        _ => 0,
    });
    groups.max().unwrap_or(0)
}

//! A product of rounded activations, with the outliers computed beside the array.

use std::ops::Range;
use std::sync::Arc;

use super::columns::Columns;
use super::counts::OutlierCounts;
use super::excess::{Excess, NotFinite, RoundedInput};
use super::parts::Int8Parts;
use super::scales::ProductScale;
use lapwing_cpu::{
    Dispatch, Epilogue, GemmInput, Matmul, PackedMatrix, Q8Rows, QuantScheme, matmuls,
};
use lapwing_model::graph::WeightId;

/// A product of a graph: `x[rows, k] · W[features, k]ᵀ + bias`.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) matrix: WeightId,
    pub(super) bias: Option<WeightId>,
    pub(super) features: Range<usize>,
    pub(super) scale: Arc<ProductScale>,
}

/// Buffers of products; reuses its memory.
#[derive(Debug, Default)]
pub(super) struct ProductScratch {
    input: RoundedInput,
    /// `[rows][features]`: the share of the outliers. Rows without any are not written.
    beside: Vec<f32>,
}

/// The half of a product that a thread computes.
enum Half<'a> {
    Array(&'a mut [f32]),
    Outliers(&'a mut [f32]),
}

impl Product {
    /// Computes the product into `out`, `[rows][features]`, and counts its outliers.
    ///
    /// # Errors
    /// [`NotFinite`] if a value of the input is NaN or infinite.
    pub(super) fn run(
        &self,
        parts: &Int8Parts,
        x: &[f32],
        scratch: &mut ProductScratch,
        out: &mut [f32],
    ) -> Result<OutlierCounts, NotFinite> {
        let packed = parts.weights.packed(self.matrix);
        let k = packed.cols();
        let Some(scheme) = QuantScheme::of_format(packed.dtype()) else {
            unreachable!("scales are made for quantised weights only");
        };
        let ProductScratch { input, beside } = scratch;
        input.fill(x, k, &self.scale, scheme)?;
        let mut counts =
            OutlierCounts { values: x.len() as u64, products: 1, ..OutlierCounts::default() };
        let RoundedInput { blocks, excess, .. } = &*input;
        let product = || {
            let bias = self.bias.map(|bias| &parts.weights.vector(bias)[self.features.clone()]);
            Matmul {
                x: GemmInput::Q8(Q8Rows::new(blocks, k / 32)),
                weight: packed.channels(self.features.clone()),
                bias,
                epilogue: Epilogue::Store,
            }
        };
        let dispatch = Dispatch::of(excess.rows());
        if excess.len() == 0 {
            matmuls(&parts.cpu, &dispatch, [(product(), out)]);
            return Ok(counts);
        }
        let (channels, columns) =
            self.columns(parts.columns(self.matrix), packed, excess, &mut counts);
        let width = self.features.len();
        counts.outliers = excess.len() as u64;
        counts.shadowed = 1;
        counts.multiply_adds = (excess.len() * width) as u64;
        beside.resize(out.len(), 0.0);
        let mut halves = [Half::Array(out), Half::Outliers(beside)];
        parts.beside.chunks_mut(&mut halves, 1, |_, half| match &mut half[0] {
            Half::Array(out) => matmuls(&parts.cpu, &dispatch, [(product(), &mut **out)]),
            Half::Outliers(out) => {
                multiply(excess, &channels, &columns, self.features.clone(), out);
            }
        });
        let [Half::Array(out), Half::Outliers(beside)] = halves else { unreachable!("two halves") };
        for row in (0..excess.rows()).filter(|row| !excess.row(*row).is_empty()) {
            let at = row * width..(row + 1) * width;
            out[at.clone()].iter_mut().zip(&beside[at]).for_each(|(out, more)| *out += more);
        }
        Ok(counts)
    }

    /// The channels with outliers and their columns.
    fn columns(
        &self,
        columns: Option<&Columns>,
        packed: &PackedMatrix,
        excess: &Excess,
        counts: &mut OutlierCounts,
    ) -> (Vec<u32>, Vec<Arc<[f32]>>) {
        let channels = excess.channels();
        let Some(columns) = columns else {
            unreachable!("every matrix of the graph has columns");
        };
        let (found, read) = columns.get(packed, &channels);
        counts.columns = channels.len() as u64;
        counts.read = read as u64;
        (channels, found)
    }
}

/// `out[row] = Σ excess · column` over the outliers of the row, by ascending channel, for rows that have any.
fn multiply(
    excess: &Excess,
    channels: &[u32],
    columns: &[Arc<[f32]>],
    features: Range<usize>,
    out: &mut [f32],
) {
    let width = features.len().max(1);
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        let outliers = excess.row(row);
        if !outliers.is_empty() {
            out.fill(0.0);
        }
        for outlier in outliers {
            let Ok(at) = channels.binary_search(&outlier.channel) else { continue };
            let column = &columns[at][features.clone()];
            for (out, weight) in out.iter_mut().zip(column) {
                *out += outlier.excess * weight;
            }
        }
    }
}

//! Checks every prepared graph against the naive reference before its first use: a back end may compute wrong results for some shapes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use lapwing_model::device::{DeviceError, GraphKey};
use lapwing_model::graph::{Graph, Node, ValueId, WeightId};
use lapwing_model::op::Op;
use lapwing_model::quant::Activations;
use lapwing_model::reference;
use lapwing_model::weights::WeightFile;

use super::backend::{BackendInfo, PreparedGraph};
use super::model_weights::ModelWeights;
use super::rounding::{ProductRounding, Steps};
use super::spec::{GraphSpec, Port};

mod rows;

use rows::{SAMPLES, error, noise, root_mean_square, sample_of};

/// Largest relative error of a graph with float activations: enough for binary16. A wrong output
/// channel is off by 0.3 or more.
pub const TOLERANCE_FLOAT: f32 = 0.05;

/// Largest relative error of a graph whose activations are rounded to 8 bits; the reference then rounds too. A value near the middle
/// between two steps may be rounded to different ones, and the norms after it magnify the difference: up to 0.03 in the blocks of a
/// Gemma 3 model of 270 M weights.
pub const TOLERANCE_ROUNDED: f32 = 0.1;

/// Weight rows that are dequantised at a time.
const WEIGHT_ROWS: usize = 64;

/// Compares graphs with the reference. Reference results are kept, because they are the same for
/// every row count and every share of the output channels.
#[derive(Debug)]
pub(super) struct Checker {
    device: String,
    activations: Activations,
    graph: Arc<Graph>,
    weights: ModelWeights,
    samples: HashMap<Range<usize>, Arc<Samples>>,
    /// How the back end rounds at products, if it has fixed scales.
    rounding: Option<ProductRounding>,
}

/// Input rows and the results of the reference for them. Each value is `[SAMPLES, width]`.
#[derive(Debug)]
struct Samples {
    values: HashMap<ValueId, Vec<f32>>,
    tolerance: f32,
}

impl Samples {
    fn row(&self, value: ValueId, sample: usize) -> &[f32] {
        let rows = self.values.get(&value).map_or(&[][..], Vec::as_slice);
        let width = rows.len() / SAMPLES;
        &rows[sample * width..(sample + 1) * width]
    }
}

impl Checker {
    pub(super) fn new(
        device: &str,
        backend: &BackendInfo,
        graph: &Arc<Graph>,
        file: &WeightFile,
    ) -> Checker {
        let activations = backend.activations;
        let weights = ModelWeights::new(device, graph, file).in_form(backend.weights);
        let (device, graph) = (device.to_owned(), Arc::clone(graph));
        Checker { device, activations, graph, weights, samples: HashMap::new(), rounding: None }
    }

    /// The same, of a back end that rounds at products with fixed scales.
    pub(super) fn with_rounding(self, rounding: Option<ProductRounding>) -> Checker {
        Checker { rounding, ..self }
    }

    /// Runs a graph once on known rows and compares all values of its outputs. The error of a
    /// value is |got − want| / (|want| + root mean square of the row).
    ///
    /// # Errors
    /// [`DeviceError::WrongResult`], or the error of the run.
    pub(super) fn check(
        &mut self,
        spec: &GraphSpec,
        graph: &mut dyn PreparedGraph,
    ) -> Result<(), DeviceError> {
        let samples = self.samples(&spec.key.nodes)?;
        let rows = spec.key.rows;
        for (at, port) in spec.inputs.iter().enumerate() {
            let buffer = graph.input(at);
            self.has_size(buffer, port, rows)?;
            for (row, to) in buffer.chunks_exact_mut(port.width.max(1)).enumerate() {
                to.copy_from_slice(samples.row(port.value, sample_of(row)));
            }
        }
        graph.run(&mut ())?;
        let mut worst = 0.0f32;
        for (at, port) in spec.outputs.iter().enumerate() {
            let got = graph.output(at);
            self.has_size(got, port, rows)?;
            let columns = spec.key.features.of_width(self.graph.value(port.value).width);
            for (row, got) in got.chunks_exact(port.width.max(1)).enumerate() {
                let want = samples.row(port.value, sample_of(row));
                worst = worst.max(error(got, &want[columns.clone()], root_mean_square(want)));
            }
        }
        if worst <= samples.tolerance {
            return Ok(());
        }
        let GraphKey { nodes, rows, .. } = spec.key.clone();
        let (device, tolerance) = (self.device.clone(), samples.tolerance);
        Err(DeviceError::WrongResult { device, nodes, rows, error: worst, tolerance })
    }

    fn has_size(&self, buffer: &[f32], port: &Port, rows: usize) -> Result<(), DeviceError> {
        if buffer.len() == rows * port.width {
            return Ok(());
        }
        let (name, len, width) = (&port.name, buffer.len(), port.width);
        Err(self.weights.failed(format!(
            "its buffer for '{name}' has {len} values, but {rows} rows of {width} are needed"
        )))
    }

    fn samples(&mut self, nodes: &Range<usize>) -> Result<Arc<Samples>, DeviceError> {
        if let Some(samples) = self.samples.get(nodes) {
            return Ok(Arc::clone(samples));
        }
        let mut samples = Samples { values: self.values(nodes, Steps::Whole)?, tolerance: 0.0 };
        let rounds =
            |node: &Node| matches!(node.op, Op::MatMul { weight, .. } if self.rounds(weight));
        let mut products = self.graph.nodes()[nodes.clone()].iter();
        samples.tolerance = if products.any(rounds) { TOLERANCE_ROUNDED } else { TOLERANCE_FLOAT };
        if matches!(self.rounding, Some(ProductRounding::Fixed(_))) {
            samples.tolerance += 2.0 * self.loss(nodes, &samples)?;
        }
        let samples = Arc::new(samples);
        self.samples.insert(nodes.clone(), Arc::clone(&samples));
        Ok(samples)
    }

    /// Inputs and outputs of a graph.
    fn values(
        &self,
        nodes: &Range<usize>,
        steps: Steps,
    ) -> Result<HashMap<ValueId, Vec<f32>>, DeviceError> {
        let reads = self.graph.live_in(nodes.clone());
        let inputs = reads.iter().map(|value| (*value, self.sample(nodes, *value)));
        let mut values: HashMap<ValueId, Vec<f32>> = inputs.collect();
        for node in &self.graph.nodes()[nodes.clone()] {
            let output = self.compute(node, &values, steps)?;
            values.insert(node.output, output.into_iter().map(|v| v as f32).collect());
        }
        let writes = self.graph.writes(nodes.clone());
        values.retain(|value, _| reads.contains(value) || writes.contains(value));
        Ok(values)
    }

    /// The largest error that rounding to integers causes: half a step, or of that order after several products.
    /// A value near the middle between two integers may be rounded to either, which differ by twice as much.
    fn loss(&self, nodes: &Range<usize>, samples: &Samples) -> Result<f32, DeviceError> {
        let exact = Samples { values: self.values(nodes, Steps::None)?, tolerance: 0.0 };
        let writes = self.graph.writes(nodes.clone());
        let rows = writes.iter().flat_map(|id| (0..SAMPLES).map(move |sample| (*id, sample)));
        let errors = rows.map(|(id, sample)| {
            let want = samples.row(id, sample);
            error(exact.row(id, sample), want, root_mean_square(want))
        });
        Ok(errors.fold(0.0, f32::max))
    }

    /// The full output of a node.
    fn compute(
        &self,
        node: &Node,
        values: &HashMap<ValueId, Vec<f32>>,
        steps: Steps,
    ) -> Result<Vec<f64>, DeviceError> {
        let input = |at: usize| {
            let id = node.inputs[at];
            let missing = DeviceError::MissingValue { value: id.0, role: node.role };
            values.get(&id).ok_or(missing)
        };
        let wide = |v: &f32| f64::from(*v);
        Ok(match &node.op {
            Op::MatMul { weight, bias } => {
                let mut out = self.matmul(*weight, input(0)?, steps)?;
                if let Some(bias) = bias {
                    let bias = self.weights.vector(*bias)?;
                    let bias = bias.iter().map(wide).cycle();
                    out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
                }
                out
            }
            Op::RmsNorm { weight, group, eps } => {
                let gains = match weight {
                    Some(weight) => self.weights.vector(*weight)?,
                    None => vec![1.0; *group],
                };
                reference::rms_norm(input(0)?, &gains, *eps)
            }
            Op::Gated(activation) => {
                let gate = |x: &f32| reference::activation(*activation, wide(x));
                let pairs = input(0)?.iter().zip(input(1)?);
                pairs.map(|(a, b)| gate(a) * wide(b)).collect()
            }
            Op::Add => input(0)?.iter().zip(input(1)?).map(|(a, b)| wide(a) + wide(b)).collect(),
            Op::Scale { factor } => {
                input(0)?.iter().map(|x| wide(x) * f64::from(*factor)).collect()
            }
            Op::ScaleBy { weight } => {
                let factors = self.weights.vector(*weight)?;
                let factors = factors.iter().map(wide).cycle();
                input(0)?.iter().zip(factors).map(|(x, factor)| wide(x) * factor).collect()
            }
            Op::SoftCap { cap } => {
                let cap = f64::from(*cap);
                input(0)?.iter().map(|x| reference::soft_cap(wide(x), cap)).collect()
            }
            Op::Embed { .. }
            | Op::Lookup { .. }
            | Op::Columns { .. }
            | Op::JoinHeads { .. }
            | Op::Given
            | Op::LayerNorm { .. }
            | Op::AddRow { .. }
            | Op::Curve(_)
            | Op::Multiply
            | Op::ShortConv(_)
            | Op::LinearAttention(_)
            | Op::Temperature(_)
            | Op::Rope { .. }
            | Op::Attention(_)
            | Op::WeightedSum { .. }
            | Op::Excess { .. }
            | Op::WithLength
            | Op::Route(_)
            | Op::Experts(_)
            | Op::Mix { .. }
            | Op::SelectRows => {
                return Err(self
                    .weights
                    .failed(format!("the check has no reference for {}", node.op.name())));
            }
        })
    }

    /// Values of an input. Those of a product with a fixed scale are in its range.
    fn sample(&self, nodes: &Range<usize>, value: ValueId) -> Vec<f32> {
        let width = self.graph.value(value).width;
        let mut values = noise(value, SAMPLES * width);
        let matrix = self.graph.nodes()[nodes.clone()].iter().find_map(|node| match node.op {
            Op::MatMul { weight, .. } if node.inputs[0] == value => Some(weight),
            _ => None,
        });
        if let (Some(rounding), Some(matrix)) = (&self.rounding, matrix) {
            rounding.spread(matrix, &mut values, width);
        }
        values
    }

    fn rounds(&self, weight: WeightId) -> bool {
        let is_quantized = self.graph.weights()[weight.0].dtype.block_len() > 1;
        self.activations == Activations::Int8 && is_quantized
    }

    /// The product `[SAMPLES, n]`. The weight is dequantised once, [`WEIGHT_ROWS`] rows at a time.
    fn matmul(&self, weight: WeightId, x: &[f32], steps: Steps) -> Result<Vec<f64>, DeviceError> {
        let spec = &self.graph.weights()[weight.0];
        let (n, k) = (spec.rows, spec.cols);
        let mut out = vec![0.0; SAMPLES * n];
        let rounding = self.rounding.as_ref().filter(|rounding| rounding.has(weight));
        let scaled: Vec<f32> = rounding.map_or_else(Vec::new, |rounding| {
            x.iter().map(|x| rounding.input(weight, *x, steps) as f32).collect()
        });
        for (at, first) in (0..n).step_by(WEIGHT_ROWS).enumerate() {
            let width = WEIGHT_ROWS.min(n - first);
            let rows = first..first + width;
            let values = match self.rounds(weight) {
                _ if rounding.is_some() => {
                    reference::matmul_exact(&self.weights.values(weight, rows)?, k, &scaled)
                }
                true => reference::matmul(spec.dtype, &self.weights.rows(weight, rows)?, k, x),
                false => reference::matmul_exact(&self.weights.values(weight, rows)?, k, x),
            };
            for (sample, values) in values.chunks_exact(width).enumerate() {
                out[sample * n + at * WEIGHT_ROWS..][..width].copy_from_slice(values);
            }
        }
        if let Some(rounding) = rounding {
            out.iter_mut().for_each(|y| *y = rounding.output(weight, *y, steps));
        }
        Ok(out)
    }
}

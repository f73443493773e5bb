//! Single matmuls: their time in isolation, and what comes before them.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{DeviceKind, GraphKey, ModelId};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};
use lapwing_plan::Phase;
use lapwing_plan::soc::{Soc, SyncMode, WeightBits, Workload};
use lapwing_plan::strategy::ChunkShape;
use lapwing_plan::time::{Border, Job, TimeModel};

use super::error::SimulateError;
use super::published::{Product, Quantity};

/// The matmul's node; the node before it makes its input.
pub(super) const PRODUCT: usize = 1;
/// The processors; the first one has the values.
pub(super) const KINDS: [DeviceKind; 2] = [DeviceKind::Gpu, DeviceKind::Npu];

/// A graph of one matmul.
pub(super) fn graph(n: usize, k: usize) -> Arc<Graph> {
    let mut graph = Graph::default();
    let mut weight = |name: &str, rows, cols| {
        graph.add_weight(WeightSpec { name: name.to_owned(), rows, cols, dtype: DType::Q4_0 })
    };
    let (table, weight) = (weight("input", 1, k), weight("product", n, k));
    let mut push = |op, inputs: &[_], width| {
        graph.push(NewNode { op, inputs, width, layer: None, role: "product" })
    };
    let x = push(Op::Embed { table, scale: 1.0 }, &[], k);
    push(Op::MatMul { weight, bias: None }, &[x], n);
    Arc::new(graph)
}

pub(super) fn shape(m: usize) -> ChunkShape {
    let phase = if m == 1 { Phase::Decode } else { Phase::Prefill };
    ChunkShape { phase, rows: m, selected: 1, context: 0, prompt: m }
}

/// A quantity of a matmul.
///
/// # Errors
/// [`SimulateError::Published`] for another processor than the GPU and the NPU.
pub(super) fn quantity(
    soc: &Soc,
    product: &Product,
    quantity: Quantity,
) -> Result<f64, SimulateError> {
    let measured = Measured::new(soc, product)?;
    Ok(match quantity {
        Quantity::ProductGbPerS => measured.gb_per_s(),
        Quantity::LaunchUs => measured.before(false),
        Quantity::EntryUs => measured.before(true) - measured.before(false),
        _ => measured.alone_us(soc),
    })
}

/// A matmul on a processor.
struct Measured<'a> {
    product: &'a Product,
    kind: DeviceKind,
    time: Arc<dyn TimeModel>,
}

impl Measured<'_> {
    fn new<'a>(soc: &Soc, product: &'a Product) -> Result<Measured<'a>, SimulateError> {
        let Product { device, n, k, .. } = product;
        let kind = KINDS.into_iter().find(|kind| kind.name() == device);
        let kind = kind.ok_or_else(|| SimulateError::Published {
            reason: format!("matmuls cannot be measured on '{device}'; it must be gpu or npu"),
        })?;
        let workload = Workload { graph: graph(*n, *k), bits: WeightBits::default() };
        let time = Arc::clone(&soc.times(&[kind], &workload, SyncMode::Fast)[0]);
        Ok(Measured { product, kind, time })
    }

    /// The result of a law of time for the matmul, in µs.
    fn us(&self, crossed: bool, of: impl Fn(&dyn TimeModel, &Job<'_>) -> Duration) -> f64 {
        let Product { m, straight, .. } = self.product;
        let mut part = Part::WHOLE;
        if self.kind == DeviceKind::Npu {
            let order = if *straight { OperandOrder::Straight } else { OperandOrder::Swapped };
            part = Part { graphs: vec![*m], order, ..Part::WHOLE };
        }
        let batch = shape(*m).batch();
        let (first, end, part, border) = (PRODUCT, PRODUCT + 1, &part, Border::NONE);
        let job = Job { first, end, part, batch: &batch, crossed, border, queued: true };
        of(&*self.time, &job).as_secs_f64() * 1e6
    }

    /// Time in a running queue.
    fn queued(&self) -> f64 {
        self.us(false, |time, job| time.node_time(job, PRODUCT))
    }

    /// Time before the matmul in a running queue.
    fn before(&self, crossed: bool) -> f64 {
        self.us(crossed, |time, job| time.overhead(job))
    }

    /// Time measured as in HeteroInfer's Table 3, in isolation: on the GPU with a slow synchronisation, which ends with an empty
    /// queue.
    fn alone_us(&self, soc: &Soc) -> f64 {
        let sync = match self.kind {
            DeviceKind::Gpu => soc.at("sync.copy") + soc.at("gpu.submit_empty"),
            _ => 0.0,
        };
        self.queued() + sync + self.product.constant_us
    }

    /// Bandwidth in GB/s: bytes of the weights divided by the time in a running queue.
    fn gb_per_s(&self) -> f64 {
        let WeightBits::Fixed(bits) = WeightBits::default() else { return f64::NAN };
        let bytes = self.product.n as f64 * self.product.k as f64 * bits / 8.0;
        bytes / self.queued() / 1e3
    }
}

/// Time to prepare the graphs of one layer for a prompt of that many rows, in ms. Graphs have
/// multiples of [`Share::ALIGN`] rows.
pub(super) fn preparation_ms(soc: &Soc, graph: &Arc<Graph>, rows: usize) -> f64 {
    let workload = Workload { graph: Arc::clone(graph), bits: WeightBits::default() };
    let times = soc.times(&[DeviceKind::Npu], &workload, SyncMode::Fast);
    let layer = |node: &usize| graph.nodes()[*node].layer == Some(0);
    let nodes: Vec<usize> = (0..graph.nodes().len()).filter(layer).collect();
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return 0.0 };
    let (features, order) = (Share::WHOLE, OperandOrder::Swapped);
    let rows = rows.next_multiple_of(Share::ALIGN);
    let key =
        GraphKey { model: ModelId::default(), nodes: *first..last + 1, features, rows, order };
    times[0].prepare_time(&key).as_secs_f64() * 1e3
}

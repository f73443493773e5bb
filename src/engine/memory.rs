//! Checks that what a device computes with fits in its own memory.

use std::collections::BTreeSet;

use lapwing_kernels::graph::{Graph, WeightId};
use lapwing_kernels::op::Op;
use lapwing_plan::strategy::{ChunkShape, PromptRows};
use lapwing_plan::{DeviceId, Phase, PlanError, Route};

use crate::config::Chosen;
use crate::devices::build::Built;
use crate::error::Error;
use crate::placement::Explainer;

/// Part of a device's memory that weights, keys and values may take; the rest is for values between ops
/// and for the driver.
const SHARE: f64 = 0.9;

/// Bytes that a device needs for its part of the routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Need {
    weights: u64,
    kv: u64,
    /// Layers with attention, or with a matrix.
    layers: usize,
}

/// Checks each device that has memory of its own against the routes of a full chunk and of a decode step.
///
/// # Errors
/// With the sizes, and the number of layers that fit.
pub(super) fn check(
    devices: &[Built],
    explainer: &Explainer,
    chosen: &Chosen,
) -> Result<(), Error> {
    if devices.iter().all(|built| built.capacity.is_none()) {
        return Ok(());
    }
    let routes = routes(explainer, chosen)?;
    let graph = &explainer.parts.graph;
    let layer_kv = chosen.layout.page_bytes() / chosen.layout.layers.max(1);
    let layer_kv = (layer_kv * chosen.pages as usize) as u64;
    for (device, built) in devices.iter().enumerate() {
        let Some(capacity) = built.capacity else { continue };
        let need = need(graph, &routes, (DeviceId(device), layer_kv));
        let room = (capacity as f64 * SHARE) as u64;
        if need.weights + need.kv <= room {
            continue;
        }
        let each = (need.weights + need.kv) / need.layers.max(1) as u64;
        let fit = room / each.max(1);
        let expected = format!(
            "{} bytes of weights and {} bytes of keys and values within the {capacity} bytes of its \
             memory; run fewer layers on it (about {fit}: --gpu-layers {fit}, with a CPU beside it), \
             or make the context smaller",
            need.weights, need.kv
        );
        return Err(Error::config("device", &built.info.name, &expected));
    }
    Ok(())
}

fn routes(explainer: &Explainer, chosen: &Chosen) -> Result<[std::sync::Arc<Route>; 2], PlanError> {
    let parts = &explainer.parts;
    let input = parts.input();
    let most = chosen.context.min(parts.chunk_rows).max(1);
    let prompt = chosen.context;
    let rows = parts.strategy.chunk_rows(&input, PromptRows::new(prompt)).clamp(1, most);
    let prefill = ChunkShape { phase: Phase::Prefill, rows, selected: 1, context: 0, prompt };
    let decode =
        ChunkShape { phase: Phase::Decode, rows: 1, selected: 1, context: prompt - 1, prompt: 0 };
    Ok([parts.strategy.route(&input, &prefill)?, parts.strategy.route(&input, &decode)?])
}

/// Weights are counted once, whichever route and part reads them.
fn need(
    graph: &Graph,
    routes: &[std::sync::Arc<Route>],
    (device, layer_kv): (DeviceId, u64),
) -> Need {
    let stages = routes.iter().flat_map(|route| route.compute_stages());
    let own = stages.filter(|stage| stage.parts.iter().any(|part| part.device == device));
    let nodes: BTreeSet<usize> = own.flat_map(|stage| stage.nodes.clone()).collect();
    let nodes = || nodes.iter().map(|node| &graph.nodes()[*node]);
    let weights: BTreeSet<usize> = nodes()
        .filter_map(|node| match node.op {
            Op::MatMul { weight: WeightId(id), .. } | Op::Embed { table: WeightId(id), .. } => {
                Some(id)
            }
            _ => None,
        })
        .collect();
    let bytes = |id: &usize| {
        let spec = &graph.weights()[*id];
        (spec.rows * spec.dtype.row_bytes(spec.cols).unwrap_or(0)) as u64
    };
    let attention = nodes().filter(|node| matches!(node.op, Op::Attention(_))).count() as u64;
    let layers: BTreeSet<usize> = nodes().filter_map(|node| node.layer).collect();
    Need {
        weights: weights.iter().map(bytes).sum(),
        kv: attention * layer_kv,
        layers: layers.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId};
    use lapwing_kernels::model::Model;
    use lapwing_kernels::weights::WeightFile;
    use lapwing_plan::cost::Modelled;
    use lapwing_plan::planner::PlannerParts;
    use lapwing_plan::strategy::GpuLayers;

    use super::*;

    #[test]
    fn a_device_needs_the_weights_and_the_pages_of_its_layers_only() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
        let file = WeightFile::open(&path).expect("a weight file");
        let graph = Arc::new(Model::from_weights(&file).expect("a model").graph);
        let devices =
            vec![DeviceInfo::new("cpu", DeviceKind::Cpu), DeviceInfo::new("gpu", DeviceKind::Gpu)];
        let cost = Modelled { devices: Vec::new(), sync: Default::default(), copy_rate: 1e9 };
        let of = |layers: usize, device: usize| {
            let parts = PlannerParts {
                model: ModelId::default(),
                graph: Arc::clone(&graph),
                devices: devices.clone(),
                cost: Arc::new(cost.clone()),
                strategy: Arc::new(GpuLayers { layers }),
                chunk_rows: 64,
            };
            let phase = Phase::Prefill;
            let shape = ChunkShape { phase, rows: 4, selected: 1, context: 0, prompt: 4 };
            let route = parts.strategy.route(&parts.input(), &shape).expect("a route");
            need(&graph, &[Arc::clone(&route), route], (DeviceId(device), 1000))
        };
        // 64 wide, 288 tokens, 2 layers; all weights are f32.
        let (table, layer) = (4 * 64 * 288, 4 * (64 * 64 * 2 + 64 * 32 * 2 + 64 * 96 * 3));
        let (cpu, gpu) = (of(1, 0), of(1, 1));
        assert_eq!(cpu, Need { weights: table + layer, kv: 1000, layers: 1 });
        assert_eq!(gpu, Need { weights: table + layer, kv: 1000, layers: 1 });
        assert_eq!(of(2, 1), Need { weights: 2 * (table + layer), kv: 2000, layers: 2 });
        assert_eq!(of(2, 0), Need::default());
        assert_eq!(of(0, 1), Need::default());
    }
}

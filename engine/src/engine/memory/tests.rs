use std::path::Path;

use lapwing_kernels::device::{DeviceInfo, ModelId, Packing};
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::cost::Modelled;
use lapwing_plan::strategy::GpuOnly;

use super::*;

/// A model of two layers with keys and values of 1000 bytes per layer, on a CPU and a GPU.
fn parts(kinds: &[DeviceKind]) -> PlannerParts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny/llama.gguf");
    let file = WeightFile::open(&path).expect("a weight file");
    let graph = Arc::new(Model::from_weights(&file).expect("a model").graph);
    let cost = Modelled { devices: Vec::new(), sync: Default::default(), copy_rate: 1e9 };
    PlannerParts {
        model: ModelId::default(),
        graph,
        devices: kinds.iter().map(|kind| DeviceInfo::new(kind.name(), *kind)).collect(),
        cost: Arc::new(cost),
        strategy: Arc::new(GpuOnly),
        chunk_rows: 64,
    }
}

/// What the GPU needs with this many layers: 64 wide, 288 tokens, all weights are f32.
fn bytes(layers: u64) -> u64 {
    let (table, layer) = (4 * 64 * 288, 4 * (64 * 64 * 2 + 64 * 32 * 2 + 64 * 96 * 3));
    let tables = if layers == 2 { 2 } else { 1 };
    tables * table + layers * (layer + 1000)
}

fn sizes(layers: Vec<u64>) -> Sizes {
    let cache = CacheBytes { layers: layers.into(), states: Arc::default() };
    Sizes { context: 100, cache }
}

/// Bytes of a draft model on the GPU.
const DRAFT: u64 = 700;

#[test]
fn as_many_layers_run_on_the_gpu_as_fit_in_its_memory() {
    let sizes = sizes(vec![1000; 2]);
    let fitted = |room: u64, may_split: bool, kinds: &[DeviceKind]| {
        let mut parts = parts(kinds);
        let capacity = ((room + DRAFT) as f64 / 0.9).ceil() as u64;
        let memory = |info: &DeviceInfo| Memory {
            device: if info.kind == DeviceKind::Gpu { "gpu" } else { "cpu" },
            capacity: (info.kind == DeviceKind::Gpu).then_some(capacity),
            draft: if info.kind == DeviceKind::Gpu { DRAFT } else { 0 },
        };
        let memories: Vec<_> = parts.devices.iter().map(memory).collect();
        let note = fit_parts(&memories, &mut parts, &sizes, may_split)?;
        Ok::<_, Error>((note, parts.strategy.name().to_owned()))
    };
    let both = [DeviceKind::Cpu, DeviceKind::Gpu];
    let (note, strategy) = fitted(bytes(2), true, &both).expect("it fits");
    assert_eq!((note, &*strategy), (None, "gpu-only"));
    for (room, layers) in [(bytes(2) - 1, 1), (bytes(1), 1), (bytes(1) - 1, 0), (10, 0)] {
        let (note, strategy) = fitted(room, true, &both).expect("the CPU takes the rest");
        let note = note.expect("it is said");
        assert!(note.contains(&format!("the last {layers} of 2 layers")), "{room}: {note}");
        assert!(note.contains("of which the draft model takes 700"), "{note}");
        assert_eq!(strategy, "gpu-layers");
    }
    for (may_split, kinds) in [(false, &both[..]), (true, &both[1..])] {
        let error = fitted(bytes(2) - 1, may_split, kinds).expect_err("too large").to_string();
        assert!(error.contains("--gpu-layers 1"), "{error}");
        assert!(error.contains("700 bytes of the draft model"), "{error}");
    }
}

#[test]
fn a_draft_model_must_fit_beside_nothing_too() {
    let mut parts = parts(&[DeviceKind::Cpu, DeviceKind::Gpu]);
    parts.strategy = Arc::new(GpuLayers { layers: 0 });
    let sizes = sizes(vec![1000; 2]);
    let mut fits = |capacity: u64| {
        let cpu = Memory { device: "cpu", capacity: None, draft: 0 };
        let gpu = Memory { device: "gpu", capacity: Some(capacity), draft: DRAFT };
        fit_parts(&[cpu, gpu], &mut parts, &sizes, true)
    };
    assert!(matches!(fits(800), Ok(None)));
    let error = fits(700).expect_err("no room").to_string();
    assert!(error.contains("--draft-device"), "{error}");
}

#[test]
fn layers_that_share_keys_and_values_need_them_once() {
    let own = parts(&[DeviceKind::Gpu]);
    let graph = own.graph.share_kv(&"layers=2".parse().expect("a sharing"), 2).expect("it fits");
    let shared = PlannerParts { graph: Arc::new(graph), ..own.clone() };
    let needs = [&own, &shared].map(|parts| {
        let routes = routes(parts, 100).expect("routes");
        need(parts, &routes, DeviceId(0), &sizes(vec![1000, 3000]).cache)
    });
    assert_eq!(needs.map(|need| need.kv), [4000, 1000]);
    // The projections of keys and values of one layer: 64 × 32 in f32 each.
    assert_eq!(needs[0].weights - needs[1].weights, 2 * 4 * 64 * 32);
}

#[test]
fn a_device_needs_the_weights_and_the_pages_of_its_layers_only() {
    let of = |layers: usize, device: usize| {
        let strategy = Arc::new(GpuLayers { layers });
        let parts = PlannerParts { strategy, ..parts(&[DeviceKind::Cpu, DeviceKind::Gpu]) };
        let phase = Phase::Prefill;
        let shape = ChunkShape { phase, rows: 4, selected: 1, context: 0, prompt: 4 };
        let route = parts.strategy.route(&parts.input(), &shape).expect("a route");
        let cache = sizes(vec![1000, 3000]).cache;
        need(&parts, &[Arc::clone(&route), route], DeviceId(device), &cache)
    };
    // 64 wide, 288 tokens, 2 layers; all weights are f32.
    let (table, layer) = (4 * 64 * 288, 4 * (64 * 64 * 2 + 64 * 32 * 2 + 64 * 96 * 3));
    let (cpu, gpu) = (of(1, 0), of(1, 1));
    assert_eq!(cpu, Need { weights: table + layer, kv: 1000, layers: 1 });
    assert_eq!(gpu, Need { weights: table + layer, kv: 3000, layers: 1 });
    assert_eq!(of(2, 1), Need { weights: 2 * (table + layer), kv: 4000, layers: 2 });
    assert_eq!(of(2, 0), Need::default());
    assert_eq!(of(0, 1), Need::default());
}

/// A device whose packed weights are larger than those of the file needs as much more memory.
#[test]
fn weights_count_as_the_device_packs_them() {
    let mut parts = parts(&[DeviceKind::Gpu]);
    let of = |parts: &PlannerParts| {
        let routes = routes(parts, 100).expect("routes");
        need(parts, &routes, DeviceId(0), &sizes(vec![1000, 3000]).cache)
    };
    let as_stored = of(&parts);
    parts.devices[0].packing =
        Packing::new(|dtype, rows, cols| 3 * Packing::FILE.bytes(dtype, rows, cols));
    let packed = of(&parts);
    assert_eq!(packed, Need { weights: 3 * as_stored.weights, ..as_stored });
    let (sizes, capacity) = (sizes(vec![1000; 2]), as_stored.bytes() * 2);
    let memory = Memory { device: "gpu", capacity: Some(capacity), draft: 0 };
    assert!(too_small(&[memory], &parts, &sizes).expect("routes").is_some(), "{packed:?}");
    parts.devices[0].packing = Packing::FILE;
    assert!(too_small(&[memory], &parts, &sizes).expect("routes").is_none(), "{as_stored:?}");
}

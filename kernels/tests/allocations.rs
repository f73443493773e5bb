//! Attention, element-wise ops and whole steps of a model allocate nothing once they are warm.
#![expect(unsafe_code, reason = "an allocator that counts")]

use lapwing_kernels::cpu::{self, AttentionJob, AttentionSequence, Cpu, Isa};
use lapwing_kernels::cpu::{CpuDevice, CpuDeviceParts, KvRows, RopeFreqs, RopeShape};
use lapwing_kernels::cpu::{ExpertMatrices, Experts, Matrix, Mixture, PackedMatrix};
use lapwing_kernels::cpu::{PackCache, PackedMemory, keep_packed, limit_packed, pack_report};
use lapwing_kernels::device::{Batch, BlockingDevice, Prepare, SlotPool, StageRun, TensorSet};
use lapwing_kernels::formats::DType;
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvStore};
use lapwing_kernels::mask::Mask;
use lapwing_kernels::model::Model;
use lapwing_kernels::op::{Activation, ExpertForm, ExpertGroups, RopePairs, RopeScaling};
use lapwing_kernels::op::{RouteOp, RouterScore};
use lapwing_kernels::part::Part;
use lapwing_kernels::weights::WeightFile;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ROWS: usize = 40;
const HEADS: usize = 6;
const HEAD_DIM: usize = 32;

/// On one thread, so that the first call warms every thread.
fn attend(dtype: KvDtype, mask: &Mask) {
    let cpu = Cpu::new(1, Isa::best());
    let layout = KvLayout::uniform(1, KvHeads::new(2, HEAD_DIM), 32, dtype);
    let pages: Vec<u32> = (0..layout.pages_for(700) as u32).collect();
    let kv = KvStore::new(layout, pages.len() as u32).expect("memory");
    let k = vec![0.5; 700 * 2 * HEAD_DIM];
    let q = vec![0.25; ROWS * HEADS * HEAD_DIM];
    let mut out = vec![0.0; q.len()];
    let sequences = [
        AttentionSequence { rows: 0..ROWS - 1, start_pos: 600, pages: &pages },
        AttentionSequence { rows: ROWS - 1..ROWS, start_pos: 10, pages: &pages },
    ];
    let mut step = || {
        KvRows { pages: &pages, start_pos: 0, k: &k, v: &k }.write(&cpu, &mut kv.layer(0));
        let kv = kv.layer(0);
        let job = AttentionJob {
            kv: &kv,
            q: &q,
            sequences: &sequences,
            heads: HEADS,
            scale: 1.0,
            mask,
            slopes: None,
            sinks: None,
            soft_cap: Some(3.0),
        };
        cpu::attention(&cpu, &job, &mut out);
    };
    assert_silent(&mut step, &format!("{dtype:?} {mask:?}"));
}

/// Fails if most calls of `step` after the first allocate. A few may, because the test harness has
/// a thread of its own.
fn assert_silent(step: &mut dyn FnMut(), what: &str) {
    step();
    let counts = [(); 5].map(|()| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        step();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    });
    let silent = counts.iter().filter(|count| **count == 0).count();
    assert!(silent >= 3, "{what}: {counts:?} allocations");
}

/// A single test, because tests of one process run concurrently and share the count.
#[test]
fn a_warm_step_allocates_nothing() {
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::I8] {
        attend(dtype, &Mask::Causal);
        attend(dtype, &Mask::Window(70));
        attend(dtype, &Mask::Dilated { count: 9, stride: 50 });
    }
    let cpu = Cpu::new(2, Isa::best());
    let x = vec![0.5; 64 * 1024];
    let mut out = vec![0.0; x.len()];
    let freqs = RopeFreqs::new(10_000.0, 64, RopeScaling::None, None);
    let angles = freqs.angles(&[7; 64]);
    let shape = RopeShape { heads: 16, head_dim: 64, pairs: RopePairs::Halves };
    let mut step = || {
        cpu::add(&cpu, &x, &x, &mut out);
        cpu::rms_norm(&cpu, &x, &x[..1024], 1e-5, &mut out);
        cpu::gated(&cpu, Activation::Silu, &x, &x, &mut out);
        cpu::rope(&cpu, &x, shape, &angles, &mut out);
    };
    assert_silent(&mut step, "streaming ops");
    for dtype in [DType::Q4K, DType::Mxfp4, DType::F16] {
        for rows in [1, 9] {
            experts(dtype, rows);
        }
    }
    for name in [
        "llama",
        "qwen3",
        "gemma3",
        "minicpm3",
        "qwen35",
        "nemotron_h",
        "mamba",
        "format-q4_k",
        "format-f16",
    ] {
        model_steps(name, &|_| {});
    }
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["llama", "qwen3moe"] {
        let path = folder.path().join(name);
        let cache = PackCache { path, bytes_max: 1 << 30, memory: PackedMemory::Mapped };
        // Files that are mapped, and then weights of which each run looks whether they are in memory.
        let is_mapped = model_steps(name, &|file| keep_packed(file, cache.clone()));
        if is_mapped {
            model_steps(name, &|file| {
                keep_packed(file, cache.clone());
                limit_packed(file, || Some(1));
            });
        }
    }
}

/// A route of rows, its experts and what they make together, on one thread as in [`attend`].
fn experts(dtype: DType, rows: usize) {
    let (count, used, width) = (8, 3, 256);
    let cpu = Cpu::new(1, Isa::best());
    let bytes = vec![1; dtype.row_bytes(width).expect("whole blocks") * count * width];
    let matrix = Matrix::new(dtype, count * width, width, &bytes).expect("a matrix");
    let weight = PackedMatrix::new(&cpu, &matrix).expect("memory");
    let all = ExpertMatrices {
        weight: &weight,
        stride: width,
        first: 0,
        rows: width,
        bias: None,
        scale: None,
    };
    let experts = Experts {
        count,
        used,
        gate: Some(all),
        up: all,
        form: ExpertForm::ReluGated,
        down: all,
        weighs_input: false,
    };
    let op = RouteOp {
        used,
        score: RouterScore::Sigmoid,
        bias: None,
        groups: Some(ExpertGroups { count: 4, used: 2 }),
        is_normalised: true,
        scale: 1.0,
    };
    let logits: Vec<f32> = (0..rows * count).map(|i| (i * 5 % 23) as f32).collect();
    let (x, mut route) = (vec![0.5; rows * width], vec![0.0; rows * 2 * used]);
    let (mut made, mut out) = (vec![0.0; rows * used * width], vec![0.0; rows * width]);
    let mut step = || {
        cpu::route(&cpu, &op, &logits, None, &mut route);
        cpu::experts(&cpu, &experts, &x, &route, &mut made);
        let mixture = Mixture { made: &made, route: &route, used, is_weighted: true };
        cpu::mix(&cpu, &mixture, width, &mut out);
    };
    assert_silent(&mut step, &format!("experts of {dtype}, {rows} rows"));
}

/// A prompt, then one token after another, of a model whose file is `prepared`. Returns whether its weights are mapped.
fn model_steps(name: &str, prepared: &dyn Fn(&WeightFile)) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../tests/reference/tiny").join(format!("{name}.gguf"));
    let file = WeightFile::open(&path).expect("a weight file");
    prepared(&file);
    let model = Model::from_weights(&file).expect("a model");
    let graph = Arc::new(model.graph);
    let layout = model.config.kv_layout();
    let kv = Arc::new(KvStore::new(layout, 8).expect("memory"));
    // As in an engine: slots that hold any value of the graph.
    let widths = graph.nodes().iter().map(|node| graph.value(node.output).width);
    let slots = SlotPool::new(10, 20 * widths.max().expect("nodes"));
    let cpu = Cpu::new(1, Isa::best());
    let parts =
        CpuDeviceParts { name: "cpu".to_owned(), cpu, graph: Arc::clone(&graph), kv, slots };
    let mut device = CpuDevice::new(parts, &file).expect("bound weights");
    let pages: Vec<u32> = (0..8).collect();
    let inputs = TensorSet::default();
    let mut outputs = TensorSet::default();
    let nodes = 0..graph.nodes().len();
    let writes = graph.writes(nodes.clone());
    let mut step = |batch: &Batch| {
        let work = StageRun {
            nodes: nodes.clone(),
            part: &Part::WHOLE,
            prepare: Prepare::Ahead,
            batch,
            inputs: &inputs,
            writes: &writes,
            outputs: &mut outputs,
            observer: &mut (),
        };
        device.run(work).expect("a run");
    };
    let batch = |rows: std::ops::Range<usize>| {
        let mut batch = Batch::default();
        let ids: Vec<u32> = rows.clone().map(|row| row as u32 % 7).collect();
        batch.push(&ids, rows.start, pages.clone(), rows.len() - 1..rows.len());
        batch
    };
    let (prompt, tokens) = (batch(0..20), [20, 21, 22, 23, 24, 25, 26].map(|at| batch(at..at + 1)));
    assert_silent(&mut || step(&prompt), &format!("{name}: a prompt"));
    step(&tokens[0]);
    let mut at = 1;
    let mut next = || {
        step(&tokens[at]);
        at += 1;
    };
    assert_silent(&mut next, &format!("{name}: a token"));
    pack_report(&file).is_some_and(|report| report.mapped)
}

//! The queue with a small model, and what can go wrong with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::device::{Fault, OpenClDevice};
use super::model::OpenClDeviceParts;
use super::opencl_tests::{cases, driver_keeps_kernels, programs_of_all};
use super::*;
use lapwing_cpu::{Activations, Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_model::device::{
    Batch, Blocking, Device, DeviceError, DeviceInfo, DeviceKind, MemoryDomain, Payload, Prepare,
    RunId, Runs, SlotPool, SlotSource, Task, Tensor, TensorSet, Work,
};
use lapwing_model::graph::Graph;
use lapwing_model::kv::{KvDtype, KvLayout, KvStore};
use lapwing_model::model::Model as WeightModel;
use lapwing_model::part::Part;
use lapwing_model::weights::WeightFile;

mod branches;
mod faults;
mod fused;
mod persistent;
mod programs;
mod runs;
mod shared;
mod states;

const DOMAIN: MemoryDomain = MemoryDomain::Device(3);

thread_local! {
    /// The programs of all devices of a test, which is a thread: each is compiled once.
    static PROGRAMS: tempfile::TempDir = tempfile::tempdir().expect("a folder");
}

/// The small model, its keys and values, and its graph.
struct Case {
    file: WeightFile,
    graph: Arc<Graph>,
    layout: KvLayout,
    slots: SlotPool,
    /// How the device uses values and pages in place; `None` where they are copied.
    shared: Option<SharedKind>,
}

/// Small models: with plain norms, with a bias, with norms of heads, with norms after each part, with a layer without rotary
/// embedding, with scaled logits, with norms of whole queries, with layers that differ in their heads and share keys, with sinks, with
/// several streams, with gates of heads, with layers that run twice, and with keys that are longer than values.
const MODELS: [&str; 13] = [
    "llama",
    "qwen2",
    "qwen3",
    "gemma3",
    "smollm3",
    "granite",
    "olmo2",
    "gemma4",
    "granite_swa",
    "gemma3n",
    "spark2_5",
    "nanbeige",
    "minicpm3",
];

fn case() -> Case {
    case_of("llama")
}

fn case_of(model: &str) -> Case {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/reference/tiny");
    let path = folder.join(format!("{model}.gguf"));
    let file = WeightFile::open(&path).expect("a weight file");
    let model = WeightModel::from_weights(&file).expect("a model");
    let layout = KvLayout { dtype: KvDtype::F32, ..model.config.kv_layout() };
    let graph = Arc::new(model.graph.with_kv(layout.clone()));
    Case { file, graph, layout, slots: SlotPool::default(), shared: None }
}

/// Memory of the device that the host uses in place.
fn memory(kind: SharedKind) -> Arc<SharedMemory> {
    let device = find("").expect("an OpenCL device");
    let memory = SharedMemory::of_kind(&device, kind).expect("a device");
    memory.unwrap_or_else(|reason| panic!("{kind}: {reason}"))
}

/// The folder of compiled programs.
fn programs() -> Option<PathBuf> {
    let of_test = || PROGRAMS.with(|folder| folder.path().to_owned());
    (!driver_keeps_kernels()).then(|| programs_of_all().unwrap_or_else(of_test))
}

/// How the device may use memory of the host in place.
fn kinds() -> Vec<SharedKind> {
    let device = find("").expect("an OpenCL device");
    let fine_grain = device.has_fine_grain.then_some(SharedKind::FineGrain);
    let kinds = fine_grain.into_iter().chain(device.is_unified.then_some(SharedKind::Mapped));
    let kinds: Vec<SharedKind> = kinds.collect();
    assert!(!kinds.is_empty() || device.kind != OpenClKind::Cpu, "a CPU shares its memory");
    kinds
}

impl Case {
    fn queue(&self) -> OpenClDevice {
        OpenClDevice::new(self.parts(), &self.file).expect("a device")
    }

    /// The case on a device that uses values and pages in place.
    fn in_place(mut self, kind: SharedKind) -> Case {
        self.shared = Some(kind);
        self
    }

    fn parts(&self) -> OpenClDeviceParts {
        let shared = self.shared.map(memory);
        let source = shared.as_deref().map(|shared| shared as &dyn SlotSource);
        let kv = KvStore::in_memory_of(self.layout.clone(), 4.into(), source).expect("memory");
        let slots = shared.clone().map(|shared| SlotPool::mapped(2, 100, shared));
        OpenClDeviceParts {
            name: "gpu".to_owned(),
            device: find("").expect("an OpenCL device"),
            domain: if shared.is_some() { MemoryDomain::Host } else { DOMAIN },
            graph: Arc::clone(&self.graph),
            kv: Arc::new(kv),
            slots: slots.unwrap_or_else(|| self.slots.clone()),
            shared,
            persistent: true,
            programs: programs(),
        }
    }

    /// Rows `rows` of a sequence, all of whose logits are wanted.
    fn work(&self, rows: std::ops::Range<usize>, to: MemoryDomain) -> Work {
        let ids_count = self.graph.vocab().min(253) as u32 - 3;
        let ids: Vec<u32> = rows.clone().map(|at| 3 + (at as u32 * 7919) % ids_count).collect();
        let mut batch = Batch::default();
        batch.push(&ids, rows.start, [2, 0], 0..ids.len());
        let nodes = 0..self.graph.nodes().len();
        let writes: Arc<[_]> = self.graph.writes(nodes.clone()).into();
        let task = Task::Nodes { nodes, prepare: Prepare::Ahead, writes, to };
        let payload = Arc::new(Payload { batch, values: TensorSet::default() });
        Work { task, part: Part::WHOLE, payload }
    }

    /// The logits of `rows` rows, whose nodes are run in stages.
    fn run_stages(&self, device: &mut dyn Device, rows: usize, cuts: &[usize]) -> Vec<f32> {
        let mut values = TensorSet::default();
        let mut runs = Runs::start(device);
        for nodes in cuts.windows(2).map(|cut| cut[0]..cut[1]) {
            let mut work = self.work(0..rows, DOMAIN);
            let writes: Arc<[_]> = self.graph.writes(nodes.clone()).into();
            work.task = Task::Nodes { nodes, prepare: Prepare::Ahead, writes, to: DOMAIN };
            let batch = work.payload.batch.clone();
            let payload = Arc::new(Payload { batch, values });
            work.payload = Arc::clone(&payload);
            let written = runs.run(device, work, &mut ()).expect("a run");
            values = Arc::into_inner(payload).expect("the run has ended").values;
            values.append(written);
        }
        let logits = values.get(self.graph.output()).expect("logits");
        logits.host_view(&self.slots).expect("logits").to_vec()
    }

    fn run(&self, device: &mut dyn Device, work: Work) -> Result<Vec<f32>, DeviceError> {
        let outputs = Runs::start(device).run(device, work, &mut ())?;
        let logits = outputs.get(self.graph.output()).expect("logits");
        Ok(logits.host_view(&self.slots)?.to_vec())
    }

    /// Logits of rows `0..rows` from the CPU.
    fn wanted(&self, rows: usize) -> Vec<f32> {
        let cpu = Cpu::new(1, Isa::best()).with_activations(Activations::F32);
        let parts = CpuDeviceParts {
            name: "cpu".to_owned(),
            cpu,
            graph: Arc::clone(&self.graph),
            kv: Arc::new(KvStore::new(self.layout.clone(), 4).expect("memory")),
            slots: self.slots.clone(),
        };
        let device = CpuDevice::new(parts, &self.file).expect("a device");
        let mut device = Blocking::new(DeviceInfo::new("cpu", DeviceKind::Cpu), device);
        self.run(&mut device, self.work(0..rows, MemoryDomain::Host)).expect("logits")
    }
}

fn assert_close(got: &[f32], wanted: &[f32]) {
    assert_eq!(got.len(), wanted.len());
    let largest = wanted.iter().fold(1.0f32, |max, x| max.max(x.abs()));
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!((got - wanted).abs() <= 1e-4 * largest, "{at}: {got} for {wanted}");
    }
}

//! Test support: a tiny model, a stage of it, and devices to run it on.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use lapwing_kernels::cpu::{
    Activations, Cpu, CpuDevice, CpuDeviceParts, Isa, PackCache, PackReport, keep_packed,
    pack_report,
};
use lapwing_kernels::device::{
    Batch, BlockingDevice, DeviceError, GraphKey, Observer, Prepare, SlotPool, StageRun, Step,
    Tensor, TensorSet,
};
use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::kv::KvStore;
use lapwing_kernels::model::Model;
use lapwing_kernels::npu::array::Array;
use lapwing_kernels::npu::{
    ActivationRanges, NpuBackend, NpuDevice, NpuDeviceParts, RangeRecorder, Systolic,
};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::{OperandOrder, Part, Share};
use lapwing_kernels::requant::Requant;
use lapwing_kernels::weights::WeightFile;

use crate::support::noise;

/// The properties of a test's back end, which are those of the back end in its field `inner`.
macro_rules! properties_of_inner {
    () => {
        fn info(&self) -> &lapwing_kernels::npu::BackendInfo {
            self.inner.info()
        }

        fn supports(&self, node: &lapwing_kernels::npu::SpecNode) -> Result<(), String> {
            self.inner.supports(node)
        }

        fn shared_bytes(&self) -> u64 {
            self.inner.shared_bytes()
        }
    };
}
pub(crate) use properties_of_inner;

/// A tiny model.
pub(crate) struct Tiny {
    pub(crate) file: WeightFile,
    pub(crate) graph: Arc<Graph>,
}

/// Everything that a device has reported.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) nodes: Vec<usize>,
    pub(crate) prepared: Vec<usize>,
    pub(crate) converted: u64,
}

impl Observer for Report {
    fn nodes_done(&mut self, nodes: Range<usize>) {
        self.nodes.extend(nodes);
    }

    fn step_done(&mut self, step: Step) {
        match step {
            Step::Prepared { rows, .. } => self.prepared.push(rows),
            Step::Converted { bytes } => self.converted += bytes,
        }
    }
}

/// A part of a stage to run.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) nodes: Range<usize>,
    pub(crate) part: Part,
    pub(crate) prepare: Prepare,
    pub(crate) rows: usize,
    pub(crate) selected: Range<usize>,
}

impl Task {
    /// A whole stage with graphs prepared ahead and all rows selected.
    pub(crate) fn new(nodes: Range<usize>, rows: usize, graphs: &[usize]) -> Task {
        let part = Part { graphs: graphs.to_vec(), ..Part::WHOLE };
        Task { nodes, part, prepare: Prepare::Ahead, rows, selected: 0..rows }
    }

    /// The graphs that it needs.
    pub(crate) fn keys(&self) -> Vec<GraphKey> {
        let key = |rows: &usize| GraphKey {
            model: lapwing_kernels::device::ModelId::default(),
            nodes: self.nodes.clone(),
            features: self.part.features,
            rows: *rows,
            order: self.part.order,
        };
        self.part.graphs.iter().map(key).collect()
    }
}

impl Tiny {
    pub(crate) fn open(name: &str) -> Tiny {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
        Tiny::of(&folder.join(name).with_extension("gguf"))
    }

    pub(crate) fn of(path: &Path) -> Tiny {
        let file = WeightFile::open(path).expect("a file");
        let graph = Arc::new(Model::from_weights(&file).expect("a model").graph);
        Tiny { file, graph }
    }

    /// As [`of`](Tiny::of), with matrices requantised.
    pub(crate) fn requantized(path: &Path, format: Requant) -> Tiny {
        let file = WeightFile::open(path).expect("a file");
        let mut graph = Model::from_weights(&file).expect("a model").graph;
        graph.requantize(format);
        Tiny { file, graph: Arc::new(graph) }
    }

    /// Bits of a gated block on a CPU device that has just been created with that cache, and the
    /// report on the cache.
    pub(crate) fn start(&self, cache: Option<&PackCache>) -> (Vec<u32>, Option<Arc<PackReport>>) {
        cache.into_iter().for_each(|cache| keep_packed(&self.file, cache.clone()));
        let task = Task::new(self.gated(), 5, &[]);
        let values = self.run(&mut self.cpu(), &task, &mut ()).expect("values");
        let written = self.graph.writes(task.nodes.clone());
        let written = written
            .iter()
            .flat_map(|id| values.get(*id).expect("a value").host().expect("on the host").to_vec());
        (written.map(f32::to_bits).collect(), pack_report(&self.file))
    }

    pub(crate) fn cpu(&self) -> CpuDevice {
        self.cpu_with(Activations::default())
    }

    /// The CPU, with activations in f32.
    #[cfg(any(feature = "openvino", feature = "qnn"))]
    pub(crate) fn exact(&self) -> CpuDevice {
        self.cpu_with(Activations::F32)
    }

    pub(crate) fn cpu_with(&self, activations: Activations) -> CpuDevice {
        let parts = CpuDeviceParts {
            name: "cpu".to_owned(),
            cpu: Cpu::new(1, Isa::best()).with_activations(activations),
            graph: Arc::clone(&self.graph),
            kv: Arc::new(KvStore::none()),
            slots: SlotPool::default(),
        };
        CpuDevice::new(parts, &self.file).expect("bound weights")
    }

    pub(crate) fn systolic(&self) -> Systolic {
        let (cpu, array) = (Cpu::new(1, Isa::best()), Array::default());
        Systolic::new("npu", cpu, array, &self.graph, &self.file).expect("bound weights")
    }

    pub(crate) fn npu(&self, budget: u64) -> NpuDevice {
        self.npu_over(Box::new(self.systolic()), budget)
    }

    pub(crate) fn npu_over(&self, backend: Box<dyn NpuBackend>, budget: u64) -> NpuDevice {
        let parts = NpuDeviceParts {
            name: "npu".to_owned(),
            graph: Arc::clone(&self.graph),
            slots: SlotPool::default(),
            budget,
        };
        NpuDevice::new(parts, backend, &self.file)
    }

    /// The longest runs of nodes that a static graph can hold.
    pub(crate) fn runs(&self, npu: &NpuDevice) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (at, node) in self.graph.nodes().iter().enumerate() {
            match runs.last_mut().filter(|run| run.end == at) {
                _ if !npu.info().runs(&node.op) => {}
                Some(run) => run.end += 1,
                None => runs.push(at..at + 1),
            }
        }
        runs
    }

    /// Gate, up and activation nodes of a feed-forward block, which can be cut by output channels.
    pub(crate) fn gated(&self) -> Range<usize> {
        self.gated_if_any().expect("a gated block")
    }

    /// As [`gated`](Tiny::gated), if the model has three such nodes in a row.
    pub(crate) fn gated_if_any(&self) -> Option<Range<usize>> {
        let is_gated = |op: &Op| matches!(op, Op::Gated(_));
        let at = self.graph.nodes().iter().position(|node| is_gated(&node.op))?;
        let nodes = at.checked_sub(2)?..at + 1;
        self.graph.can_cut_features(nodes.clone()).then_some(nodes)
    }

    /// Inputs of a stage, with different values everywhere.
    pub(crate) fn inputs(&self, task: &Task) -> TensorSet {
        let mut inputs = TensorSet::default();
        for id in self.graph.live_in(task.nodes.clone()) {
            let spec = self.graph.value(id);
            let rows = match spec.rows {
                RowSet::All | RowSet::Passed => task.rows,
                RowSet::Selected => task.selected.len(),
            };
            inputs.put(id, Tensor::new(spec.width, noise(id.0 as u64 + 1, rows * spec.width)));
        }
        inputs
    }

    /// Ranges measured on windows of 24 tokens.
    pub(crate) fn ranges(&self, windows: u32) -> ActivationRanges {
        let config = Model::from_weights(&self.file).expect("a model").config;
        let layout = config.kv_layout();
        let graph = Arc::new((*self.graph).clone().with_kv(layout.clone()));
        let cpu = Cpu::new(1, Isa::best());
        let mut recorder =
            RangeRecorder::new(cpu, &graph, &self.file, layout, 24).expect("a recorder");
        for window in 0..windows {
            let ids: Vec<u32> = (0..24).map(|at| (at * 7 + window * 31) % 280 + 3).collect();
            recorder.add(&ids).expect("a window");
        }
        recorder.finish()
    }

    pub(crate) fn run(
        &self,
        device: &mut dyn BlockingDevice,
        task: &Task,
        observer: &mut dyn Observer,
    ) -> Result<TensorSet, DeviceError> {
        self.run_with(device, task, &self.inputs(task), observer)
    }

    /// As [`run`](Tiny::run), with these inputs.
    pub(crate) fn run_on(
        &self,
        device: &mut dyn BlockingDevice,
        task: &Task,
        inputs: &TensorSet,
    ) -> Result<TensorSet, DeviceError> {
        self.run_with(device, task, inputs, &mut ())
    }

    fn run_with(
        &self,
        device: &mut dyn BlockingDevice,
        task: &Task,
        inputs: &TensorSet,
        observer: &mut dyn Observer,
    ) -> Result<TensorSet, DeviceError> {
        let mut batch = Batch::default();
        batch.push(&vec![0; task.rows], 0, Vec::new(), task.selected.clone());
        let mut outputs = TensorSet::default();
        device.run(StageRun {
            nodes: task.nodes.clone(),
            part: &task.part,
            prepare: task.prepare,
            batch: &batch,
            inputs,
            writes: &self.graph.writes(task.nodes.clone()),
            outputs: &mut outputs,
            observer,
        })?;
        Ok(outputs)
    }

    /// Fails unless both outputs have the same bits.
    #[track_caller]
    pub(crate) fn assert_same(&self, task: &Task, npu: &TensorSet, cpu: &TensorSet, what: &str) {
        let writes = self.graph.writes(task.nodes.clone());
        assert_eq!((npu.len(), cpu.len()), (writes.len(), writes.len()), "{what}");
        for id in writes {
            let (npu, cpu) = (npu.get(id).expect("a value"), cpu.get(id).expect("a value"));
            assert_eq!(npu.width, cpu.width, "{what}: width of {id:?}");
            let (npu, cpu) = (npu.host().expect("values"), cpu.host().expect("values"));
            assert_eq!(npu.len(), cpu.len(), "{what}: rows of {id:?}");
            let same = npu.iter().zip(cpu.iter()).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{what}: {id:?} differs");
        }
    }
}

/// Each third of the output channels, and both halves.
pub(crate) const SHARES: [Share; 5] = [
    Share { from: 0, to: 1, of: 3 },
    Share { from: 1, to: 2, of: 3 },
    Share { from: 2, to: 3, of: 3 },
    Share { from: 0, to: 1, of: 2 },
    Share { from: 1, to: 2, of: 2 },
];

pub(crate) const ORDERS: [OperandOrder; 2] = [OperandOrder::Straight, OperandOrder::Swapped];

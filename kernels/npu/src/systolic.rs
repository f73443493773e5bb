//! A systolic array in software: it computes with the CPU kernels, so values match them bit for bit.

use std::sync::Arc;

use lapwing_cpu::{BindError, Cpu, CpuDevice, CpuDeviceParts};
use lapwing_model::device::{
    Arithmetic, Batch, BlockingDevice, DeviceError, GraphKey, Observer, OpSet, Prepare, SlotPool,
    StageRun, Tensor, TensorSet,
};
use lapwing_model::graph::{Graph, ValueId};
use lapwing_model::kv::KvStore;
use lapwing_model::part::Part;
use lapwing_model::quant::Activations;
use lapwing_model::weights::WeightFile;

use super::array::Array;
use super::backend::BUCKETS;
use super::backend::{BackendInfo, GraphMemory, NpuBackend, PreparedGraph};
use super::int8::{Int8Graph, Int8Parts, OutlierCounter, Scales};
use super::rounding::ProductRounding;
use super::spec::{GraphSpec, SpecNode};
use super::weight_form::WeightForm;

/// A back end whose graphs run the CPU kernels on all their rows, including padding. Each graph
/// has buffers for its inputs and outputs; weights and intermediate values are shared. It does not
/// model the time of the [`Array`].
#[derive(Debug)]
pub struct Systolic {
    info: BackendInfo,
    engine: Arc<CpuDevice>,
    /// Buffers of intermediate values.
    scratch: SlotPool,
    /// Set if products take int8 activations of fixed scales.
    int8: Option<Arc<Int8Parts>>,
}

impl Systolic {
    /// Opens the back end for a model. `name` is the device name for errors; `cpu` runs the
    /// kernels, one thread is enough.
    ///
    /// # Errors
    /// [`BindError`] if `graph` was not built from `file`.
    pub fn new(
        name: &str,
        cpu: Cpu,
        array: Array,
        graph: &Arc<Graph>,
        file: &WeightFile,
    ) -> Result<Systolic, BindError> {
        let scratch = SlotPool::default();
        let parts = CpuDeviceParts {
            name: name.to_owned(),
            cpu,
            graph: Arc::clone(graph),
            kv: Arc::new(KvStore::none()),
            slots: scratch.clone(),
        };
        let info = Systolic::backend_info(array, parts.cpu.pool().threads());
        let engine = Arc::new(CpuDevice::new(parts, file)?);
        Ok(Systolic { info, engine, scratch, int8: None })
    }

    /// The same back end, which rounds the inputs of products to int8 with these fixed scales, and where they say
    /// so computes outliers on another thread beside the array. `graph` is that of
    /// [`new`](Systolic::new).
    #[must_use]
    pub fn with_scales(self, graph: &Graph, scales: Arc<Scales>) -> Systolic {
        let parts = Int8Parts::new(self.engine.name(), &self.engine, graph, scales);
        let beside = usize::from(parts.scales().settings().outliers);
        let info = BackendInfo { own_threads: self.info.own_threads + beside, ..self.info };
        Systolic { info, int8: Some(Arc::new(parts)), ..self }
    }

    /// Counts its outliers, if it has fixed scales.
    pub fn outliers(&self) -> Option<OutlierCounter> {
        self.int8.as_ref().map(|parts| parts.counter().clone())
    }

    /// Properties of the back end with `threads` compute threads (at least 1), known before it is
    /// open.
    pub fn backend_info(array: Array, threads: usize) -> BackendInfo {
        let row_multiple = array.size.max(1);
        BackendInfo {
            name: "systolic".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            emulated: true,
            row_multiple,
            sizes: BUCKETS.into_iter().filter(|rows| fits(*rows, row_multiple)).collect(),
            checks_sizes: true,
            own_threads: threads - 1,
            activations: Activations::Int8,
            memory: GraphMemory::Buffers,
            weights: WeightForm::Stored,
            arithmetic: Arithmetic::Cpu,
        }
    }
}

/// Whether a graph can have that many rows: full tiles of the array, or fewer than one tile, as in
/// decode and verification.
fn fits(rows: usize, row_multiple: usize) -> bool {
    rows < row_multiple || rows.is_multiple_of(row_multiple)
}

impl NpuBackend for Systolic {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn supports(&self, node: &SpecNode) -> Result<(), String> {
        // The CPU has a kernel for every weight format of a model file.
        match OpSet::STATIC.contains(&node.op) {
            true => Ok(()),
            false => Err(format!(
                "{} depends on positions or on other rows, so no static graph can hold it",
                node.op.name()
            )),
        }
    }

    fn shared_bytes(&self) -> u64 {
        let columns = self.int8.as_ref().map_or(0, |parts| parts.bytes());
        self.scratch.stats().bytes as u64 + columns
    }

    fn rounding(&self) -> Option<ProductRounding> {
        self.int8.as_ref().map(|parts| ProductRounding::Int8(Arc::clone(parts.scales())))
    }

    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let GraphKey { features, rows, order, .. } = spec.key;
        if !fits(rows, self.info.row_multiple) {
            let what = format!(
                "a graph of {rows} rows, which is neither a multiple of {0} nor below {0}",
                self.info.row_multiple
            );
            return Err(DeviceError::Unsupported { device: self.engine.name().to_owned(), what });
        }
        if let Some(parts) = &self.int8 {
            return Ok(Box::new(Int8Graph::new(parts, spec)?));
        }
        let mut inputs = TensorSet::default();
        for port in &spec.inputs {
            inputs.put(port.value, Tensor::new(port.width, vec![0.0; rows * port.width]));
        }
        let outputs = spec.outputs.iter().map(|port| vec![0.0; rows * port.width]);
        Ok(Box::new(SystolicGraph {
            engine: Arc::clone(&self.engine),
            part: Part { features, order, ..Part::WHOLE },
            batch: Batch {
                model: spec.key.model,
                ids: vec![0; rows],
                positions: vec![0; rows],
                spans: Vec::new(),
                selected: (0..rows).collect(),
                passes_on: false,
                given: Vec::new(),
            },
            reads: spec.inputs.iter().map(|port| port.value).collect(),
            writes: spec.outputs.iter().map(|port| port.value).collect(),
            inputs,
            outputs: outputs.collect(),
            bytes: spec.buffer_bytes(),
            key: spec.key.clone(),
        }))
    }
}

/// A prepared graph: shapes and buffers.
#[derive(Debug)]
struct SystolicGraph {
    engine: Arc<CpuDevice>,
    key: GraphKey,
    part: Part,
    /// As many rows as the graph, selected ones included, so that either row set has that length.
    batch: Batch,
    reads: Vec<ValueId>,
    writes: Vec<ValueId>,
    inputs: TensorSet,
    outputs: Vec<Vec<f32>>,
    bytes: u64,
}

impl PreparedGraph for SystolicGraph {
    fn input(&mut self, port: usize) -> &mut [f32] {
        let tensor = self.inputs.get_mut(self.reads[port]);
        tensor.and_then(Tensor::host_mut).expect("a buffer for every input")
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        let mut written = TensorSet::default();
        self.engine.run_shared(StageRun {
            nodes: self.key.nodes.clone(),
            part: &self.part,
            prepare: Prepare::Ahead,
            batch: &self.batch,
            inputs: &self.inputs,
            writes: &self.writes,
            outputs: &mut written,
            observer,
        })?;
        for (buffer, id) in self.outputs.iter_mut().zip(&self.writes) {
            if let Some(tensor) = written.get(*id) {
                buffer.copy_from_slice(tensor.host().unwrap_or_default());
            }
        }
        Ok(())
    }

    fn output(&self, port: usize) -> &[f32] {
        &self.outputs[port]
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

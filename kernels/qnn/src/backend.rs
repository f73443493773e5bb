//! The back end.

use std::ops::Range;
use std::sync::Arc;

use super::constants::in_blocks;
use super::error::QnnError;
use super::graph::read;
use super::kept::{self, KeptGraph};
use super::lower::{Lowered, lower};
use super::session::Session;
use lapwing_model::binary16;
use lapwing_model::device::{DeviceError, Observer, OpSet};
use lapwing_model::graph::Graph;
use lapwing_model::op::Op;
use lapwing_model::weights::WeightFile;
use lapwing_npu::ActivationRanges;
use lapwing_npu::FixedProducts;
use lapwing_npu::ProductRounding;
use lapwing_npu::QnnSettings;
use lapwing_npu::WeightForm;
use lapwing_npu::empty_share::NoColumns;
use lapwing_npu::model_weights::ModelWeights;
use lapwing_npu::{BackendInfo, NpuBackend, PreparedGraph};
use lapwing_npu::{GraphSpec, SpecNode};

/// QNN with the weights of a model.
pub struct Qnn {
    info: BackendInfo,
    name: String,
    session: Arc<Session>,
    weights: ModelWeights,
    settings: QnnSettings,
    fixed: Option<Arc<FixedProducts>>,
}

impl Qnn {
    /// Opens the device. `name` is its name in the engine, for errors; `graph` was built from `file`. The measured
    /// `ranges` are used for activations in integers only.
    ///
    /// # Errors
    /// [`QnnError`] when there is no library or no such processor, when settings do not fit each other or the model,
    /// and when a product was not measured.
    pub fn open(
        name: &str,
        settings: &QnnSettings,
        graph: &Arc<Graph>,
        file: &WeightFile,
        ranges: &ActivationRanges,
    ) -> Result<Qnn, QnnError> {
        settings.check().map_err(|reason| QnnError::Settings { reason })?;
        check_blocks(graph, settings.weights)?;
        let bits = settings.activations.bits();
        let fixed = bits.map(|bits| FixedProducts::new(graph, ranges, bits)).transpose()?;
        let session = Session::shared(settings)?;
        let mut info = BackendInfo::half_library("qnn", settings.weights);
        info.version = session.info.build.clone();
        info.emulated = session.info.emulated;
        Ok(Qnn {
            info,
            name: name.to_owned(),
            session,
            weights: ModelWeights::new(name, graph, file),
            settings: settings.clone(),
            fixed: fixed.map(Arc::new),
        })
    }

    /// One line on the processor and the library.
    pub fn describe(&self) -> String {
        let (info, settings) = (&self.session.info, &self.settings);
        let emulated = match info.emulated {
            true => ", emulated on the CPU with threads of its own: values are true, times are not",
            false => "",
        };
        format!(
            "QNN {} on {} (soc {}, arch {}), activations in {}, weights in {}{emulated}",
            info.build,
            info.processor,
            settings.soc,
            settings.arch,
            settings.activations.name(),
            settings.weights.name()
        )
    }
}

/// Checks that blocks divide all matrices of a model.
fn check_blocks(graph: &Graph, form: WeightForm) -> Result<(), QnnError> {
    let Some(block) = form.block() else { return Ok(()) };
    let matrices = graph.nodes().iter().filter_map(|node| match node.op {
        Op::MatMul { weight, .. } => Some(&graph.weights()[weight.0]),
        _ => None,
    });
    match matrices.into_iter().find(|matrix| !matrix.cols.is_multiple_of(block)) {
        None => Ok(()),
        Some(matrix) => {
            let (matrix, columns) = (matrix.name.clone(), matrix.cols);
            Err(QnnError::Blocks { matrix, columns, block })
        }
    }
}

impl NpuBackend for Qnn {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn supports(&self, node: &SpecNode) -> Result<(), String> {
        match OpSet::STATIC.contains(&node.op) {
            true => Ok(()),
            false => Err(format!("no op of QNN is used for {}", node.op.name())),
        }
    }

    fn estimate_bytes(&self, spec: &GraphSpec) -> u64 {
        self.info.memory.bytes(&self.weights.graph, &spec.key)
    }

    fn shared_bytes(&self) -> u64 {
        0
    }

    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        if let Some(graph) = NoColumns::of(spec) {
            return Ok(Box::new(graph));
        }
        let (form, fixed) = (self.settings.weights, self.fixed.as_deref());
        let graph = lower(spec, &self.session, &self.weights, form, fixed)?;
        Ok(self.graph(spec, graph))
    }

    fn rounding(&self) -> Option<ProductRounding> {
        self.fixed.as_ref().map(|fixed| ProductRounding::Fixed(Arc::clone(fixed)))
    }

    /// The library's build, the processor, the form of weights, and the integers of activations.
    fn export_key(&self) -> Option<String> {
        // The emulator crashes in some graphs with matrices in blocks that it has read.
        if in_blocks(self.settings.weights, self.fixed.is_some()) {
            return None;
        }
        let (info, settings) = (&self.session.info, &self.settings);
        let QnnSettings { soc, arch, weights, .. } = settings;
        let activations = self.fixed.as_ref().map_or_else(String::new, |fixed| fixed.key());
        let weights = weights.name();
        Some(format!("{} {} {soc} {arch} {weights} {activations}", info.build, info.processor))
    }

    fn import(
        &mut self,
        spec: &GraphSpec,
        content: &[u8],
    ) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let other = || self.weights.failed("a kept graph of another specification".to_owned());
        let kept = kept::read(content, spec).ok_or_else(other)?;
        let KeptGraph { ports, inputs, output_ports, outputs, binary } = kept;
        let executable = read(&self.session, binary, inputs, outputs);
        let executable = executable.map_err(|error| self.weights.failed(error.to_string()))?;
        Ok(self.graph(spec, Lowered { executable, inputs: ports, outputs: output_ports }))
    }
}

impl Qnn {
    /// A graph that is ready, with its buffers in f32.
    fn graph(&self, spec: &GraphSpec, graph: Lowered) -> Box<dyn PreparedGraph> {
        let buffer = |width: usize| vec![0.0; spec.key.rows * width];
        Box::new(QnnGraph {
            graph,
            widths: spec.inputs.iter().map(|port| port.width).collect(),
            inputs: spec.inputs.iter().map(|port| buffer(port.width)).collect(),
            outputs: spec.outputs.iter().map(|port| buffer(port.width)).collect(),
            device: self.name.clone(),
            nodes: spec.key.nodes.clone(),
            bytes: self.estimate_bytes(spec),
        })
    }
}

/// A prepared graph, with its buffers in f32.
struct QnnGraph {
    graph: Lowered,
    /// Of the inputs.
    widths: Vec<usize>,
    inputs: Vec<Vec<f32>>,
    outputs: Vec<Vec<f32>>,
    device: String,
    nodes: Range<usize>,
    bytes: u64,
}

impl QnnGraph {
    fn failed(&self, reason: String) -> DeviceError {
        DeviceError::Failed { device: self.device.clone(), reason }
    }

    /// The error of a value that binary16 cannot represent: it would be infinite.
    fn too_large(&self, what: &str) -> DeviceError {
        self.failed(format!(
            "{what} of nodes {:?} is not finite in binary16, which QNN computes in and which ends at 65504; \
             run this model without the device",
            self.nodes
        ))
    }

    /// Copies the inputs to the library's buffers.
    fn load(&mut self) -> Result<(), DeviceError> {
        for (at, (port, columns)) in self.graph.inputs.iter().enumerate() {
            let to = self.graph.executable.input(at).chunks_exact_mut(columns.len().max(1));
            let rows = self.inputs[*port].chunks_exact(self.widths[*port].max(1));
            let mut finite = true;
            for (to, row) in to.zip(rows) {
                for (to, x) in to.iter_mut().zip(&row[columns.clone()]) {
                    *to = binary16::from_f32(*x);
                    finite &= *to & 0x7c00 != 0x7c00;
                }
            }
            if !finite {
                return Err(self.too_large("an input"));
            }
        }
        Ok(())
    }

    /// Copies the outputs from the library's buffers.
    fn store(&mut self) -> Result<(), DeviceError> {
        for (at, port) in self.graph.outputs.iter().enumerate() {
            let mut finite = true;
            for (to, half) in self.outputs[*port].iter_mut().zip(self.graph.executable.output(at)) {
                *to = binary16::to_f32(*half);
                finite &= half & 0x7c00 != 0x7c00;
            }
            if !finite {
                return Err(self.too_large("an output"));
            }
        }
        Ok(())
    }
}

impl PreparedGraph for QnnGraph {
    fn input(&mut self, port: usize) -> &mut [f32] {
        &mut self.inputs[port]
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        self.load()?;
        let ran = self.graph.executable.run();
        ran.map_err(|error| self.failed(error.to_string()))?;
        self.store()?;
        observer.nodes_done(self.nodes.clone());
        Ok(())
    }

    fn output(&self, port: usize) -> &[f32] {
        &self.outputs[port]
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&mut self) -> Option<Vec<u8>> {
        kept::write(&mut self.graph)
    }
}

//! The back end.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use super::error::OpenVinoError;
use super::lower::{Lowered, lower};
use super::ports::Ports;
use super::request::Request;
use super::session::Session;
use lapwing_cpu::{CoreSet, CoresError, PinnedThread};
use lapwing_model::device::{DeviceError, GraphKey, Notify, Observer, OpSet};
use lapwing_model::graph::Graph;
use lapwing_model::part::Share;
use lapwing_model::weights::WeightFile;
use lapwing_npu::empty_share::NoColumns;
use lapwing_npu::model_weights::ModelWeights;
use lapwing_npu::{BackendInfo, NpuBackend, PreparedGraph, Started};
use lapwing_npu::{GraphSpec, SpecNode};

/// What an OpenVINO device runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenVinoSettings {
    /// The device's name in OpenVINO; without one, the NPU if there is one, or else the CPU.
    pub device: Option<String>,
    /// Threads of the CPU plug-in, at least 1. Processors other than the CPU have none.
    pub threads: usize,
    /// The cores that the threads of the CPU plug-in are pinned to; `None` for any.
    pub cores: Option<CoreSet>,
}

/// OpenVINO with the weights of a model.
pub struct OpenVino {
    info: BackendInfo,
    name: String,
    session: Arc<Session>,
    weights: ModelWeights,
    cores: Option<CoreSet>,
    /// Constants of graphs in use, by nodes and output channels.
    constants: HashMap<(Range<usize>, Share), Weak<[u8]>>,
}

impl OpenVino {
    /// Opens the device. `name` is its name in the engine, for errors; `graph` was built from `file`.
    ///
    /// # Errors
    /// [`OpenVinoError`] when there is no library or no such device.
    pub fn open(
        name: &str,
        settings: &OpenVinoSettings,
        graph: &Arc<Graph>,
        file: &WeightFile,
    ) -> Result<OpenVino, OpenVinoError> {
        let threads = settings.threads.max(1);
        let session = Arc::new(Session::open(settings.device.as_deref(), threads)?);
        let mut info = BackendInfo::float_library("openvino");
        info.version = session.info.version.clone();
        info.own_threads = if session.is_cpu() { threads } else { 0 };
        Ok(OpenVino {
            info,
            name: name.to_owned(),
            weights: ModelWeights::new(name, graph, file),
            cores: settings.cores.clone().filter(|_| session.is_cpu()),
            session,
            constants: HashMap::new(),
        })
    }

    /// One line on the processor and the library.
    pub fn describe(&self) -> String {
        let info = &self.session.info;
        let stand_in = match self.session.is_cpu() {
            true => {
                let cores = self.cores.as_ref().map(|cores| format!(" on cores {cores}"));
                let (threads, cores) = (self.info.own_threads, cores.unwrap_or_default());
                format!(", a stand-in for an NPU with {threads} threads of its own{cores}")
            }
            false => String::new(),
        };
        format!("OpenVINO {} on {} ({}){stand_in}", info.version, info.device, info.processor)
    }

    /// Pins the calling thread to the device's cores until the guard is dropped, and thereby the threads that the
    /// library starts meanwhile: it starts those of a graph while it compiles or imports it.
    fn pin(&self) -> Result<Option<PinnedThread>, DeviceError> {
        let pinned = self.cores.as_ref().map(CoreSet::pin_this_thread).transpose();
        pinned.map_err(|error: CoresError| self.weights.failed(error.to_string()))
    }

    fn graph(
        &self,
        spec: &GraphSpec,
        request: Result<Request, OpenVinoError>,
    ) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let request = request.map_err(|error| self.weights.failed(error.to_string()))?;
        let (device, nodes) = (self.name.clone(), spec.key.nodes.clone());
        let bytes = self.estimate_bytes(spec);
        Ok(Box::new(OpenVinoGraph { request, device, nodes, bytes }))
    }
}

impl NpuBackend for OpenVino {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn supports(&self, node: &SpecNode) -> Result<(), String> {
        match OpSet::STATIC.contains(&node.op) {
            true => Ok(()),
            false => Err(format!("no layer of OpenVINO computes {}", node.op.name())),
        }
    }

    fn estimate_bytes(&self, spec: &GraphSpec) -> u64 {
        self.info.memory.bytes(&self.weights.graph, &spec.key)
    }

    fn shared_bytes(&self) -> u64 {
        let constants = self.constants.values().filter_map(Weak::upgrade);
        constants.map(|constants| constants.len() as u64).sum()
    }

    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let GraphKey { nodes, features, .. } = spec.key.clone();
        if let Some(graph) = NoColumns::of(spec) {
            return Ok(Box::new(graph));
        }
        self.constants.retain(|_, constants| constants.strong_count() > 0);
        let known = self.constants.get(&(nodes.clone(), features)).and_then(Weak::upgrade);
        let Lowered { text, constants } = lower(spec, &self.weights, known)?;
        let _pinned = self.pin()?;
        let request = self.session.compile(&text, &constants, &Ports::of(spec));
        let graph = self.graph(spec, request)?;
        self.constants.insert((nodes, features), Arc::downgrade(&constants));
        Ok(graph)
    }

    /// The library, its version, the processor and the threads; also whether it is the CPU's, whose settings are ours.
    fn export_key(&self) -> Option<String> {
        let info = &self.session.info;
        let threads = self.info.own_threads;
        Some(format!("{} {} {} {threads}", info.version, info.device, info.processor))
    }

    fn import(
        &mut self,
        spec: &GraphSpec,
        content: &[u8],
    ) -> Result<Box<dyn PreparedGraph>, DeviceError> {
        let _pinned = self.pin()?;
        let request = self.session.import(content.into(), &Ports::of(spec));
        self.graph(spec, request)
    }
}

/// A compiled graph.
struct OpenVinoGraph {
    request: Request,
    device: String,
    nodes: Range<usize>,
    bytes: u64,
}

impl OpenVinoGraph {
    fn failed(&self, error: &OpenVinoError) -> DeviceError {
        DeviceError::Failed { device: self.device.clone(), reason: error.to_string() }
    }
}

impl PreparedGraph for OpenVinoGraph {
    fn input(&mut self, port: usize) -> &mut [f32] {
        self.request.input(port)
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError> {
        self.request.run().map_err(|error| self.failed(&error))?;
        observer.nodes_done(self.nodes.clone());
        Ok(())
    }

    fn start(
        &mut self,
        notify: &Notify,
        _observer: &mut dyn Observer,
    ) -> Result<Started, DeviceError> {
        self.request.start(notify).map_err(|error| self.failed(&error))?;
        Ok(Started::Running)
    }

    fn finish(&mut self, observer: &mut dyn Observer) -> Option<Result<(), DeviceError>> {
        let result = self.request.finish()?.map_err(|error| self.failed(&error));
        if result.is_ok() {
            observer.nodes_done(self.nodes.clone());
        }
        Some(result)
    }

    fn output(&self, port: usize) -> &[f32] {
        self.request.output(port)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&mut self) -> Option<Vec<u8>> {
        self.request.export()
    }
}

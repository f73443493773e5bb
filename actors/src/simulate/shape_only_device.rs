//! Devices that know shapes only: they compute no values, and report the same steps as live devices.

use std::sync::Arc;

use lapwing_kernels::device::{
    BlockingDevice, DeviceError, DeviceInfo, GraphKey, Observer, Prepare, Prepared, Preparer,
    StageRun, Step,
};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::npu::array::graph_bytes;
use lapwing_kernels::npu::{Ensured, GraphCache, Requester};

use crate::simulate::tokens::Tokens;
use lapwing_plan::shape::{convert_bytes, rows_of};

/// A stand-in for a live device that computes no values: its only outputs are logits, by default of a single token.
/// As an NPU it prepares graphs within its budget, caches them between runs, and converts inputs and
/// outputs like the live device. Its time model gives the time of each step.
#[derive(Debug)]
pub struct ShapeOnlyDevice {
    info: DeviceInfo,
    graph: Arc<Graph>,
    graphs: Graphs,
    tokens: Tokens,
    has_graphs: bool,
}

impl ShapeOnlyDevice {
    /// A device like `info` that has prepared nothing yet.
    pub fn new(info: &DeviceInfo, graph: &Arc<Graph>) -> ShapeOnlyDevice {
        let cache = GraphCache::new(
            &info.name,
            info.budget.as_ref().map_or(u64::MAX, |budget| budget.bytes),
        );
        let graphs = Graphs { graph: Arc::clone(graph), cache };
        let (info, graph, tokens) = (info.clone(), Arc::clone(graph), Tokens::default());
        ShapeOnlyDevice { info, graph, graphs, tokens, has_graphs: false }
    }

    /// With other tokens than token 0.
    #[must_use]
    pub fn yielding(mut self, tokens: &Tokens) -> ShapeOnlyDevice {
        self.tokens = tokens.clone();
        self
    }

    /// With all graphs that are asked for ahead, whatever their bytes.
    #[must_use]
    pub fn prepared(mut self, has_graphs: bool) -> ShapeOnlyDevice {
        self.has_graphs = has_graphs;
        self
    }

    /// The steps of an NPU apart from computing: prepares the part's graphs, and converts the inputs and
    /// outputs of each.
    fn run_graphs(&mut self, work: &mut StageRun<'_>) -> Result<(), DeviceError> {
        let StageRun { nodes, part, batch, .. } = work;
        let rows = rows_of(&self.graph, nodes.start, part, batch);
        let (mut keys, mut covered) = (Vec::new(), 0);
        for &size in &part.graphs {
            if covered < rows {
                let (nodes, features, order) = (nodes.clone(), part.features, part.order);
                let model = batch.model;
                keys.push(GraphKey { model, nodes, features, rows: size, order });
                covered += size;
            }
        }
        if covered < rows {
            let what = format!("{rows} rows with graphs of {:?}", part.graphs);
            return Err(DeviceError::Unsupported { device: self.info.name.clone(), what });
        }
        let Some(first) = keys.first().map(|key| key.rows) else { return Ok(()) };
        match work.prepare {
            Prepare::OnTheSpot => {
                self.graphs.ensure(&keys, Requester::Device, work.observer)?;
            }
            Prepare::Ahead if self.has_graphs => {}
            Prepare::Ahead => keys.iter().try_for_each(|key| self.ready(key))?,
        }
        let inputs = self.graph.live_in(work.nodes.clone()).into_iter();
        let inputs: usize = inputs.map(|value| self.graph.value(value).width).sum();
        let loaded = ((rows.min(first) + first) * inputs * size_of::<f32>()) as u64;
        let all = convert_bytes(&self.graph, work.nodes.clone(), work.part, work.batch);
        // The first graph's load is reported first; the rest when all graphs have run.
        for bytes in [loaded, all.saturating_sub(loaded)] {
            work.observer.step_done(Step::Converted { bytes });
        }
        Ok(())
    }

    /// Uses a graph that must be ready.
    fn ready(&self, key: &GraphKey) -> Result<(), DeviceError> {
        match self.graphs.cache.get(key, Requester::Device) {
            Some(_) => Ok(()),
            None => Err(DeviceError::NotPrepared {
                device: self.info.name.clone(),
                nodes: key.nodes.clone(),
                rows: key.rows,
            }),
        }
    }
}

impl BlockingDevice for ShapeOnlyDevice {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn run(&mut self, mut work: StageRun<'_>) -> Result<(), DeviceError> {
        if self.info.is_static() {
            self.run_graphs(&mut work)?;
        }
        self.tokens.put_logits(&self.graph, &mut work);
        Ok(())
    }

    fn preparer(&self) -> Option<Box<dyn Preparer>> {
        let preparer = || Box::new(self.graphs.clone()) as Box<dyn Preparer>;
        (self.info.is_static()).then(preparer)
    }
}

/// A graph cache that holds sizes only. Clones share it.
#[derive(Clone, Debug)]
struct Graphs {
    graph: Arc<Graph>,
    cache: GraphCache<()>,
}

impl Graphs {
    fn ensure(
        &self,
        keys: &[GraphKey],
        requester: Requester<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        let bytes_of = |key: &GraphKey| graph_bytes(&self.graph, key);
        let make = |key: &GraphKey, _: &[_]| {
            let bytes = bytes_of(key);
            self.cache.check_budget(keys, bytes_of)?;
            let room = self.cache.make_room(key, bytes, keys, requester)?;
            let graph = self.cache.track(key, (), bytes);
            let (graph, evicted) = match room {
                Some(evicted) => (self.cache.insert(graph, requester), evicted),
                None => (self.cache.count_uncached(graph), Vec::new()),
            };
            Ok(Ensured::Prepared(graph, evicted))
        };
        self.cache.ensure(keys, requester, observer, make).map(|(prepared, _)| prepared)
    }
}

impl Preparer for Graphs {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        self.ensure(keys, Requester::Preparer(keep), observer)
    }
}

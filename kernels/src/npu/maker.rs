//! Makes graphs ready, one at a time, for a device and for the preparer beside it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::{DeviceError, GraphKey, Observer, Prepared, Preparer, Step};
use crate::graph::Graph;
use crate::sync::{Mutex, lock};

use super::backend::NpuBackend;
use super::cache::{GraphCache, Served};
use super::check::Checker;
use super::spec::GraphSpec;

/// What a device and its preparers share. Clones are the same.
#[derive(Clone)]
pub(super) struct Graphs {
    pub(super) cache: GraphCache,
    pub(super) device: Arc<str>,
    maker: Arc<Mutex<Maker>>,
}

pub(super) struct Maker {
    pub(super) graph: Arc<Graph>,
    pub(super) backend: Box<dyn NpuBackend>,
    pub(super) checker: Checker,
    /// Graphs that cannot be had, and why: asking again would only take time.
    pub(super) refused: HashMap<GraphKey, DeviceError>,
}

impl Graphs {
    pub(super) fn new(device: &str, cache: GraphCache, maker: Maker) -> Graphs {
        Graphs { cache, device: device.into(), maker: Arc::new(Mutex::new(maker)) }
    }

    /// Makes every graph of `keys` ready that is not. Evicts neither these nor what `keep` says.
    /// Returns the graphs too, in the order of `keys`.
    pub(super) fn ensure(
        &self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<(Prepared, Vec<Arc<Served>>), DeviceError> {
        let mut prepared = Prepared::default();
        let mut graphs = Vec::with_capacity(keys.len());
        for key in keys {
            // Whoever else prepares may be at this very graph.
            let mut maker = lock(&self.maker);
            if let Some(graph) = self.cache.get(key) {
                graphs.push(graph);
                continue;
            }
            let (graph, evicted) = self.make(&mut maker, key, (keys, keep))?;
            drop(maker);
            let (first, end) = (key.nodes.start, key.nodes.end);
            let (rows, bytes) = (key.rows, graph.bytes());
            observer.step_done(Step::Prepared { first, end, rows, bytes });
            prepared.made.push(key.clone());
            prepared.evicted.extend(evicted);
            graphs.push(graph);
        }
        prepared.bytes = self.cache.stats().bytes;
        Ok((prepared, graphs))
    }

    fn make(
        &self,
        maker: &mut Maker,
        key: &GraphKey,
        (with, keep): (&[GraphKey], &[GraphKey]),
    ) -> Result<(Arc<Served>, Vec<GraphKey>), DeviceError> {
        if let Some(error) = maker.refused.get(key) {
            return Err(error.clone());
        }
        let result = self.try_make(maker, key, (with, keep));
        if let Err(error @ (DeviceError::Unsupported { .. } | DeviceError::WrongResult { .. })) =
            &result
        {
            maker.refused.insert(key.clone(), error.clone());
        }
        result
    }

    fn try_make(
        &self,
        maker: &mut Maker,
        key: &GraphKey,
        (with, keep): (&[GraphKey], &[GraphKey]),
    ) -> Result<(Arc<Served>, Vec<GraphKey>), DeviceError> {
        let spec = GraphSpec::new(&maker.graph, key, &self.device)?;
        for node in &spec.nodes {
            maker.backend.supports(node).map_err(|why| DeviceError::Unsupported {
                device: self.device.to_string(),
                what: format!("'{}': {why}", node.name),
            })?;
        }
        // Room first, so that the old graphs and the new one never lie beside each other.
        let estimate = maker.backend.estimate_bytes(&spec);
        let mut evicted = self.cache.make_room((key, estimate), with, keep)?;
        let mut graph = maker.backend.prepare(&spec)?;
        let checked = maker.checker.check(&spec, graph.as_mut());
        let served = self.cache.serve(spec, graph);
        self.cache.set_shared_bytes(maker.backend.shared_bytes());
        checked?;
        let bytes = served.bytes();
        evicted.extend(self.cache.make_room((key, bytes), with, keep)?);
        Ok((self.cache.insert(served), evicted))
    }
}

impl Preparer for Graphs {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        self.ensure(keys, keep, observer).map(|(prepared, _)| prepared)
    }
}

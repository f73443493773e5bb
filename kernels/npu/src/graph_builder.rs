//! Prepares graphs, one at a time, for a device and for its preparer on another thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lapwing_model::device::{DeviceError, GraphKey, Observer, Prepared, Preparer};
use lapwing_model::graph::Graph;
use lapwing_model::signals;
use lapwing_model::sync::{Mutex, lock};

use super::backend::{NpuBackend, PreparedGraph};
use super::cache::{CachedGraph, Ensured, GraphCache, Requester};
use super::check::Checker;
use super::graph_folder::{Found, GraphFolder};
use super::pacer::Pacer;
use super::spec::GraphSpec;

/// A checked graph with its specification. One run at a time.
pub struct CheckedGraph {
    pub(super) spec: GraphSpec,
    pub(super) graph: Mutex<Box<dyn PreparedGraph>>,
}

pub(super) type NpuGraph = CachedGraph<CheckedGraph>;

/// State that a device shares with its preparers. Clones share it.
#[derive(Clone)]
pub(super) struct Graphs {
    pub(super) cache: GraphCache<CheckedGraph>,
    pub(super) device: Arc<str>,
    pacer: Pacer,
    maker: Arc<Mutex<Maker>>,
}

pub(super) struct Maker {
    pub(super) graph: Arc<Graph>,
    pub(super) backend: Box<dyn NpuBackend>,
    pub(super) checker: Checker,
    /// Where checked graphs are kept.
    pub(super) kept: Option<GraphFolder>,
    /// Graphs that cannot be prepared, with the error: another attempt would only take time.
    pub(super) refused: HashMap<GraphKey, DeviceError>,
}

/// Graphs that are requested together.
#[derive(Clone, Copy)]
struct Request<'a> {
    keys: &'a [GraphKey],
    /// Graphs of `keys` that are ready so far.
    ready: &'a [Arc<NpuGraph>],
    requester: Requester<'a>,
}

impl Graphs {
    pub(super) fn new(device: &str, cache: GraphCache<CheckedGraph>, maker: Maker) -> Graphs {
        let device: Arc<str> = device.into();
        let pacer = Pacer::new(&device, &maker.graph, maker.backend.info().memory);
        Graphs { cache, device, pacer, maker: Arc::new(Mutex::new(maker)) }
    }

    /// Prepares every graph of `keys` that is not ready, and returns all of them in the order of
    /// `keys`. Only evicts what `requester` may evict, and none of these graphs. A graph that the
    /// device requests and for which there is no room is returned without being cached.
    pub(super) fn ensure(
        &self,
        keys: &[GraphKey],
        requester: Requester<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Prepared, Vec<Arc<NpuGraph>>), DeviceError> {
        self.cache.ensure(keys, requester, observer, |key, ready| {
            // Another thread may have prepared this graph while this one waited for the lock.
            let mut maker = lock(&self.maker);
            if let Some(graph) = self.cache.get(key, requester) {
                return Ok(Ensured::Ready(graph));
            }
            let (graph, evicted) =
                self.make(&mut maker, key, Request { keys, ready, requester })?;
            Ok(Ensured::Prepared(graph, evicted))
        })
    }

    fn make(
        &self,
        maker: &mut Maker,
        key: &GraphKey,
        request: Request<'_>,
    ) -> Result<(Arc<NpuGraph>, Vec<GraphKey>), DeviceError> {
        if let Some(error) = maker.refused.get(key) {
            return Err(error.clone());
        }
        let result = self.try_make(maker, key, request);
        if let Err(error @ (DeviceError::Unsupported { .. } | DeviceError::WrongResult { .. })) =
            &result
        {
            maker.refused.insert(key.clone(), error.clone());
        }
        result
    }

    /// Prepares a graph; returns it with the keys of the graphs that were evicted for it.
    fn try_make(
        &self,
        maker: &mut Maker,
        key: &GraphKey,
        request: Request<'_>,
    ) -> Result<(Arc<NpuGraph>, Vec<GraphKey>), DeviceError> {
        let Request { keys: with, requester, .. } = request;
        let spec = GraphSpec::new(&maker.graph, key, &self.device)?;
        for node in &spec.nodes {
            maker.backend.supports(node).map_err(|why| DeviceError::Unsupported {
                device: self.device.to_string(),
                what: format!("'{}': {why}", node.name),
            })?;
        }
        // Evicts before preparing, so that old graphs and the new one are never in memory together.
        let estimate = maker.backend.estimate_bytes(&spec);
        self.check_budget(maker, key, estimate, request)?;
        let room = self.cache.make_room(key, estimate, with, requester)?;
        let mut evicted = room.unwrap_or_default();
        // Libraries compile it, and run it for the first time.
        let (mut graph, is_kept, checked) = signals::keep(|| {
            let (mut graph, is_kept) = self.take_or_prepare(maker, &spec)?;
            let checked = match is_kept {
                true => Ok(()),
                false => maker.checker.check(&spec, graph.as_mut()),
            };
            Ok((graph, is_kept, checked))
        })?;
        if let (Ok(()), false, Some(folder)) = (&checked, is_kept, &maker.kept) {
            folder.save(&spec, graph.as_mut());
        }
        let bytes = graph.bytes();
        let graph = CheckedGraph { spec, graph: Mutex::new(graph) };
        let graph = self.cache.track(key, graph, bytes);
        self.cache.set_shared_bytes(maker.backend.shared_bytes());
        checked?;
        self.check_budget(maker, key, bytes, request)?;
        let Some(more) = self.cache.make_room(key, bytes, with, requester)? else {
            return Ok((self.cache.count_uncached(graph), evicted));
        };
        evicted.extend(more);
        Ok((self.cache.insert(graph, requester), evicted))
    }

    /// A graph that was kept, and has been checked; or one that is prepared.
    fn take_or_prepare(
        &self,
        maker: &mut Maker,
        spec: &GraphSpec,
    ) -> Result<(Box<dyn PreparedGraph>, bool), DeviceError> {
        let found = match &maker.kept {
            Some(folder) => folder.load(spec, maker.backend.as_mut()),
            None => Found::Absent,
        };
        match found {
            Found::Graph(graph) => {
                self.cache.count_kept(true);
                return Ok((graph, true));
            }
            Found::Refused => self.cache.count_kept(false),
            Found::Absent => {}
        }
        Ok((maker.backend.prepare(spec)?, false))
    }

    /// Keeps graphs in a folder from now on.
    pub(super) fn keep(
        &self,
        folder: std::path::PathBuf,
        file: &lapwing_model::weights::WeightFile,
    ) {
        let mut maker = lock(&self.maker);
        maker.kept = GraphFolder::new(folder, maker.backend.as_ref(), file);
        self.pacer.keep(maker.kept.clone());
    }

    /// Fails if the graphs of a request together exceed the budget. The graph `key` takes `bytes`;
    /// graphs that are not prepared yet count with the estimate of the back end.
    fn check_budget(
        &self,
        maker: &Maker,
        key: &GraphKey,
        bytes: u64,
        request: Request<'_>,
    ) -> Result<(), DeviceError> {
        let Request { keys, ready, .. } = request;
        let bytes_of = |other: &GraphKey| {
            let made = || ready.iter().find(|graph| graph.key() == other).map(|g| g.bytes());
            let known = if other == key { Some(bytes) } else { made() };
            let known = known.or_else(|| self.cache.bytes_of(other)).or_else(|| {
                // A graph without a specification fails when it is prepared itself.
                let spec = GraphSpec::new(&maker.graph, other, &self.device).ok()?;
                Some(maker.backend.estimate_bytes(&spec))
            });
            known.unwrap_or(0)
        };
        self.cache.check_budget(keys, bytes_of)
    }
}

impl Preparer for Graphs {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        let before = self.cache.stats().kept;
        let (prepared, _) = self.ensure(keys, Requester::Preparer(keep), observer)?;
        let read = self.cache.stats().kept.saturating_sub(before) as usize;
        Ok(Prepared { read: read.min(prepared.made.len()), ..prepared })
    }

    /// Records graphs that were all made, or all read.
    fn took(&mut self, prepared: &Prepared, time: Duration) {
        let Prepared { made, read, .. } = prepared;
        if made.is_empty() || (*read > 0 && *read < made.len()) {
            return;
        }
        let bytes = made.iter().filter_map(|key| self.cache.bytes_of(key)).sum();
        self.pacer.record(*read > 0, bytes, time);
    }

    fn predict(&self, key: &GraphKey) -> Option<Duration> {
        match self.cache.contains(key) {
            true => Some(Duration::ZERO),
            false => self.pacer.predict(key),
        }
    }

    fn keeps_graphs(&self) -> bool {
        lock(&self.maker).kept.is_some()
    }

    fn is_kept(&self, key: &GraphKey) -> bool {
        let maker = lock(&self.maker);
        let spec = GraphSpec::new(&maker.graph, key, &self.device);
        maker.kept.as_ref().zip(spec.ok()).is_some_and(|(folder, spec)| folder.has(&spec))
    }
}

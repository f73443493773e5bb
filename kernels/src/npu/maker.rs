//! Prepares graphs, one at a time, for a device and for its preparer on another thread.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::{DeviceError, GraphKey, Observer, Prepared, Preparer, Step};
use crate::graph::Graph;
use crate::sync::{Mutex, lock};

use super::backend::NpuBackend;
use super::cache::{CachedGraph, Full, GraphCache, Requester};
use super::check::Checker;
use super::spec::GraphSpec;

/// State that a device shares with its preparers. Clones share it.
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
    /// Graphs that cannot be prepared, with the error: another attempt would only take time.
    pub(super) refused: HashMap<GraphKey, DeviceError>,
}

/// Graphs that are requested together.
#[derive(Clone, Copy)]
struct Request<'a> {
    keys: &'a [GraphKey],
    /// Graphs of `keys` that are ready so far.
    ready: &'a [Arc<CachedGraph>],
    requester: Requester<'a>,
}

impl Graphs {
    pub(super) fn new(device: &str, cache: GraphCache, maker: Maker) -> Graphs {
        Graphs { cache, device: device.into(), maker: Arc::new(Mutex::new(maker)) }
    }

    /// Prepares every graph of `keys` that is not ready, and returns all of them in the order of
    /// `keys`. Only evicts what `requester` may evict, and none of these graphs. A graph that the
    /// device requests and for which there is no room is returned without being cached.
    pub(super) fn ensure(
        &self,
        keys: &[GraphKey],
        requester: Requester<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Prepared, Vec<Arc<CachedGraph>>), DeviceError> {
        let mut prepared = Prepared::default();
        let mut graphs: Vec<Arc<CachedGraph>> = Vec::with_capacity(keys.len());
        for key in keys {
            let repeated = graphs.iter().find(|graph| graph.spec.key == *key).cloned();
            if let Some(graph) = repeated.or_else(|| self.cache.get(key, requester)) {
                graphs.push(graph);
                continue;
            }
            // Another thread may have prepared this graph while this one waited for the lock.
            let mut maker = lock(&self.maker);
            if let Some(graph) = self.cache.get(key, requester) {
                graphs.push(graph);
                continue;
            }
            let request = Request { keys, ready: &graphs, requester };
            let (graph, evicted) = self.make(&mut maker, key, request)?;
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
        request: Request<'_>,
    ) -> Result<(Arc<CachedGraph>, Vec<GraphKey>), DeviceError> {
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
    ) -> Result<(Arc<CachedGraph>, Vec<GraphKey>), DeviceError> {
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
        self.check_budget(maker, (key, estimate), request)?;
        let room = self.cache.make_room(estimate, with, requester);
        let mut evicted = self.or_uncached(room, (key, estimate), requester)?.unwrap_or_default();
        let mut graph = maker.backend.prepare(&spec)?;
        let checked = maker.checker.check(&spec, graph.as_mut());
        let graph = self.cache.track(spec, graph);
        self.cache.set_shared_bytes(maker.backend.shared_bytes());
        checked?;
        let bytes = graph.bytes();
        self.check_budget(maker, (key, bytes), request)?;
        let room = self.cache.make_room(bytes, with, requester);
        let Some(more) = self.or_uncached(room, (key, bytes), requester)? else {
            return Ok((self.cache.count_uncached(graph), evicted));
        };
        evicted.extend(more);
        Ok((self.cache.insert(graph, requester), evicted))
    }

    /// Fails if the graphs of a request together exceed the budget. The graph `key` takes `bytes`;
    /// graphs that are not prepared yet count with the estimate of the back end.
    fn check_budget(
        &self,
        maker: &Maker,
        (key, bytes): (&GraphKey, u64),
        request: Request<'_>,
    ) -> Result<(), DeviceError> {
        let Request { keys, ready, .. } = request;
        let bytes_of = |other: &GraphKey| {
            let made = || ready.iter().find(|graph| graph.spec.key == *other).map(|g| g.bytes());
            let known = if other == key { Some(bytes) } else { made() };
            known.or_else(|| self.cache.bytes_of(other)).or_else(|| {
                // A graph without a specification fails when it is prepared itself.
                let spec = GraphSpec::new(&maker.graph, other, &self.device).ok()?;
                Some(maker.backend.estimate_bytes(&spec))
            })
        };
        let different = keys.iter().enumerate().filter(|(at, other)| !keys[..*at].contains(other));
        let sizes: Vec<(u64, &GraphKey)> =
            different.map(|(_, other)| (bytes_of(other).unwrap_or(0), other)).collect();
        let sum = sizes.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        let largest = sizes.iter().max_by_key(|(bytes, _)| bytes);
        let Some((largest, GraphKey { nodes, rows, .. })) =
            largest.filter(|_| sum > self.cache.budget())
        else {
            return Ok(());
        };
        Err(DeviceError::GraphTooLarge {
            device: self.device.to_string(),
            graphs: sizes.len(),
            bytes: sum,
            nodes: nodes.clone(),
            rows: *rows,
            largest: *largest,
            budget: self.cache.budget(),
        })
    }

    /// The evicted keys, or `None` if there is no room and the device runs the graph uncached.
    fn or_uncached(
        &self,
        room: Result<Vec<GraphKey>, Full>,
        (key, bytes): (&GraphKey, u64),
        requester: Requester<'_>,
    ) -> Result<Option<Vec<GraphKey>>, DeviceError> {
        match (room, requester) {
            (Ok(evicted), _) => Ok(Some(evicted)),
            (Err(_), Requester::Device) => Ok(None),
            (Err(Full { retained }), Requester::Preparer(_)) => Err(DeviceError::NoRoom {
                device: self.device.to_string(),
                nodes: key.nodes.clone(),
                rows: key.rows,
                bytes,
                kept: retained,
                budget: self.cache.budget(),
            }),
        }
    }
}

impl Preparer for Graphs {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        self.ensure(keys, Requester::Preparer(keep), observer).map(|(prepared, _)| prepared)
    }
}

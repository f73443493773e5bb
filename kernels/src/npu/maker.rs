//! Makes graphs ready, one at a time, for a device and for the preparer beside it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::{DeviceError, GraphKey, Observer, Prepared, Preparer, Step};
use crate::graph::Graph;
use crate::sync::{Mutex, lock};

use super::backend::NpuBackend;
use super::cache::{Asker, Full, GraphCache, Served};
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

    /// Makes every graph of `keys` ready that is not, and returns them in the order of `keys`.
    /// Evicts none of these, and what `asker` may evict otherwise. A graph that the device asks for
    /// and for which there is no room is returned too, but not kept.
    pub(super) fn ensure(
        &self,
        keys: &[GraphKey],
        asker: Asker<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Prepared, Vec<Arc<Served>>), DeviceError> {
        let mut prepared = Prepared::default();
        let mut graphs: Vec<Arc<Served>> = Vec::with_capacity(keys.len());
        for key in keys {
            let had = graphs.iter().find(|graph| graph.spec.key == *key).cloned();
            if let Some(graph) = had.or_else(|| self.cache.get(key, asker)) {
                graphs.push(graph);
                continue;
            }
            // Whoever else prepares may be at this very graph.
            let mut maker = lock(&self.maker);
            if let Some(graph) = self.cache.get(key, asker) {
                graphs.push(graph);
                continue;
            }
            let (graph, evicted) = self.make(&mut maker, key, (keys, &graphs, asker))?;
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
        set: Set<'_>,
    ) -> Result<(Arc<Served>, Vec<GraphKey>), DeviceError> {
        if let Some(error) = maker.refused.get(key) {
            return Err(error.clone());
        }
        let result = self.try_make(maker, key, set);
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
        set: Set<'_>,
    ) -> Result<(Arc<Served>, Vec<GraphKey>), DeviceError> {
        let (with, _, asker) = set;
        let spec = GraphSpec::new(&maker.graph, key, &self.device)?;
        for node in &spec.nodes {
            maker.backend.supports(node).map_err(|why| DeviceError::Unsupported {
                device: self.device.to_string(),
                what: format!("'{}': {why}", node.name),
            })?;
        }
        // Room first, so that the old graphs and the new one never lie beside each other.
        let estimate = maker.backend.estimate_bytes(&spec);
        self.fits(maker, (key, estimate), set)?;
        let room = self.cache.make_room(estimate, with, asker);
        let mut evicted = self.or_unkept(room, (key, estimate), asker)?.unwrap_or_default();
        let mut graph = maker.backend.prepare(&spec)?;
        let checked = maker.checker.check(&spec, graph.as_mut());
        let served = self.cache.serve(spec, graph);
        self.cache.set_shared_bytes(maker.backend.shared_bytes());
        checked?;
        let bytes = served.bytes();
        self.fits(maker, (key, bytes), set)?;
        let room = self.cache.make_room(bytes, with, asker);
        let Some(more) = self.or_unkept(room, (key, bytes), asker)? else {
            return Ok((self.cache.pass(served), evicted));
        };
        evicted.extend(more);
        Ok((self.cache.insert(served, asker), evicted))
    }

    /// Fails when all graphs that are asked for together are larger than what may be kept. One of
    /// them takes so many bytes; others that are not there yet take what the back end says.
    fn fits(
        &self,
        maker: &Maker,
        (key, bytes): (&GraphKey, u64),
        (with, made, _): Set<'_>,
    ) -> Result<(), DeviceError> {
        let bytes_of = |other: &GraphKey| {
            let made = || made.iter().find(|graph| graph.spec.key == *other).map(|g| g.bytes());
            let known = if other == key { Some(bytes) } else { made() };
            known.or_else(|| self.cache.bytes_of(other)).or_else(|| {
                // What cannot be had at all is refused when its turn comes.
                let spec = GraphSpec::new(&maker.graph, other, &self.device).ok()?;
                Some(maker.backend.estimate_bytes(&spec))
            })
        };
        let different = with.iter().enumerate().filter(|(at, other)| !with[..*at].contains(other));
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

    /// What has been evicted, or `None` when a graph of the device has to do without a place.
    fn or_unkept(
        &self,
        room: Result<Vec<GraphKey>, Full>,
        (key, bytes): (&GraphKey, u64),
        asker: Asker<'_>,
    ) -> Result<Option<Vec<GraphKey>>, DeviceError> {
        match (room, asker) {
            (Ok(evicted), _) => Ok(Some(evicted)),
            (Err(_), Asker::Device) => Ok(None),
            (Err(Full { kept }), Asker::Preparer(_)) => Err(DeviceError::NoRoom {
                device: self.device.to_string(),
                nodes: key.nodes.clone(),
                rows: key.rows,
                bytes,
                kept,
                budget: self.cache.budget(),
            }),
        }
    }
}

/// Graphs that are asked for together, those of them that are there, and who asks.
type Set<'a> = (&'a [GraphKey], &'a [Arc<Served>], Asker<'a>);

impl Preparer for Graphs {
    fn prepare(
        &mut self,
        keys: &[GraphKey],
        keep: &[GraphKey],
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        self.ensure(keys, Asker::Preparer(keep), observer).map(|(prepared, _)| prepared)
    }
}

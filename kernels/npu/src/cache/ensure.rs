//! Requests for graphs: ready ones are found, others are prepared, within the budget.

use std::sync::Arc;

use lapwing_model::device::{DeviceError, GraphKey, Observer, Prepared, Step};
use lapwing_model::sync::lock;

use super::{CachedGraph, Full, GraphCache, Requester};

/// A graph for [`GraphCache::ensure`].
pub enum Ensured<T> {
    /// It was ready after all: another thread has prepared it meanwhile.
    Ready(Arc<CachedGraph<T>>),
    /// It was prepared, and these were evicted for it.
    Prepared(Arc<CachedGraph<T>>, Vec<GraphKey>),
}

/// The graphs that were prepared for a request, and all graphs of the request.
pub type EnsuredAll<T> = (Prepared, Vec<Arc<CachedGraph<T>>>);

impl<T> GraphCache<T> {
    /// Gives every graph of `keys` in this order. `make` prepares one that is not ready; the
    /// graphs before it are handed to it.
    ///
    /// # Errors
    /// The first error of `make`; graphs that were prepared before it stay.
    pub fn ensure(
        &self,
        keys: &[GraphKey],
        requester: Requester<'_>,
        observer: &mut dyn Observer,
        mut make: impl FnMut(&GraphKey, &[Arc<CachedGraph<T>>]) -> Result<Ensured<T>, DeviceError>,
    ) -> Result<EnsuredAll<T>, DeviceError> {
        let mut prepared = Prepared::default();
        let mut graphs: Vec<Arc<CachedGraph<T>>> = Vec::with_capacity(keys.len());
        for key in keys {
            let repeated = graphs.iter().find(|graph| graph.key == *key).cloned();
            if let Some(graph) = repeated.or_else(|| self.get(key, requester)) {
                graphs.push(graph);
                continue;
            }
            match make(key, &graphs)? {
                Ensured::Ready(graph) => graphs.push(graph),
                Ensured::Prepared(graph, evicted) => {
                    let (first, end) = (key.nodes.start, key.nodes.end);
                    let (rows, bytes) = (key.rows, graph.bytes);
                    observer.step_done(Step::Prepared { first, end, rows, bytes });
                    prepared.made.push(key.clone());
                    prepared.evicted.extend(evicted);
                    graphs.push(graph);
                }
            }
        }
        prepared.bytes = lock(&self.ready).bytes;
        Ok((prepared, graphs))
    }

    /// Fails if the graphs of a request together exceed the budget.
    ///
    /// # Errors
    /// [`DeviceError::GraphTooLarge`].
    pub fn check_budget(
        &self,
        keys: &[GraphKey],
        bytes_of: impl Fn(&GraphKey) -> u64,
    ) -> Result<(), DeviceError> {
        let different = keys.iter().enumerate().filter(|(at, other)| !keys[..*at].contains(other));
        let sizes: Vec<(u64, &GraphKey)> =
            different.map(|(_, other)| (bytes_of(other), other)).collect();
        let sum = sizes.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        let largest = sizes.iter().max_by_key(|(bytes, _)| bytes);
        let Some((largest, GraphKey { nodes, rows, .. })) = largest.filter(|_| sum > self.budget)
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
            budget: self.budget,
        })
    }

    /// Evicts graphs, the least recently used first, until `bytes` more fit for the graph `key`;
    /// returns the evicted keys, or `None` if there is no room and the device runs it uncached.
    /// Graphs of the same request, `with`, are not evicted.
    ///
    /// # Errors
    /// [`DeviceError::NoRoom`] if evicting everything that a preparer may evict is not enough;
    /// nothing is then evicted.
    pub fn make_room(
        &self,
        key: &GraphKey,
        bytes: u64,
        with: &[GraphKey],
        requester: Requester<'_>,
    ) -> Result<Option<Vec<GraphKey>>, DeviceError> {
        match (self.evict(bytes, with, requester), requester) {
            (Ok(evicted), _) => Ok(Some(evicted)),
            (Err(_), Requester::Device) => Ok(None),
            (Err(Full { retained }), Requester::Preparer(_)) => Err(DeviceError::NoRoom {
                device: self.device.to_string(),
                nodes: key.nodes.clone(),
                rows: key.rows,
                bytes,
                kept: retained,
                budget: self.budget,
            }),
        }
    }
}

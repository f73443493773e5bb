//! The graphs that a twin has: which are ready, and which go for others, by the rules of the live
//! device's cache.

use std::collections::HashMap;
use std::sync::Arc;

use lapwing_kernels::device::{DeviceError, DeviceInfo, GraphKey, Observer, Prepared, Step};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::npu::array::graph_bytes;

/// Graphs of a device within its budget.
#[derive(Debug)]
pub(super) struct Kept {
    device: String,
    graph: Arc<Graph>,
    budget: u64,
    bytes: u64,
    uses: u64,
    ready: HashMap<GraphKey, Entry>,
}

#[derive(Debug)]
struct Entry {
    bytes: u64,
    used: u64,
    /// A preparer has asked for it.
    ahead: bool,
}

/// Who asks, and with it what may go.
#[derive(Clone, Copy)]
pub(super) enum Asker<'a> {
    /// A preparer: anything but these may.
    Preparer(&'a [GraphKey]),
    /// The device, on the spot: what no preparer has asked for may.
    Device,
}

impl Kept {
    pub(super) fn new(info: &DeviceInfo, graph: &Arc<Graph>) -> Kept {
        Kept {
            device: info.name.clone(),
            graph: Arc::clone(graph),
            budget: info.budget.unwrap_or(u64::MAX),
            bytes: 0,
            uses: 0,
            ready: HashMap::new(),
        }
    }

    /// Uses a graph that must be ready.
    pub(super) fn get(&mut self, key: &GraphKey) -> Result<(), DeviceError> {
        if self.touch(key, false) {
            return Ok(());
        }
        let (device, nodes, rows) = (self.device.clone(), key.nodes.clone(), key.rows);
        Err(DeviceError::NotPrepared { device, nodes, rows })
    }

    fn touch(&mut self, key: &GraphKey, ahead: bool) -> bool {
        self.uses += 1;
        let Some(entry) = self.ready.get_mut(key) else { return false };
        entry.used = self.uses;
        entry.ahead |= ahead;
        true
    }

    /// Makes every graph ready that is not, and reports each that is made.
    pub(super) fn ensure(
        &mut self,
        keys: &[GraphKey],
        asker: Asker<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Prepared, DeviceError> {
        let ahead = matches!(asker, Asker::Preparer(_));
        let mut prepared = Prepared::default();
        for key in keys {
            if self.touch(key, ahead) || prepared.made.contains(key) {
                continue;
            }
            self.fits(keys)?;
            let bytes = graph_bytes(&self.graph, key);
            let room = self.make_room(bytes, keys, asker);
            match (room, asker) {
                (Ok(evicted), _) => {
                    prepared.evicted.extend(evicted);
                    self.bytes += bytes;
                    self.ready.insert(key.clone(), Entry { bytes, used: self.uses, ahead });
                }
                // It runs without being kept.
                (Err(_), Asker::Device) => {}
                (Err(kept), Asker::Preparer(_)) => return Err(self.no_room(key, bytes, kept)),
            }
            let (first, end, rows) = (key.nodes.start, key.nodes.end, key.rows);
            observer.step_done(Step::Prepared { first, end, rows, bytes });
            prepared.made.push(key.clone());
        }
        prepared.bytes = self.bytes;
        Ok(prepared)
    }

    fn no_room(&self, key: &GraphKey, bytes: u64, kept: u64) -> DeviceError {
        DeviceError::NoRoom {
            device: self.device.clone(),
            nodes: key.nodes.clone(),
            rows: key.rows,
            bytes,
            kept,
            budget: self.budget,
        }
    }

    /// Evicts what was used least recently until there is room, and says what went; fails with
    /// the bytes that must stay.
    fn make_room(
        &mut self,
        bytes: u64,
        with: &[GraphKey],
        asker: Asker<'_>,
    ) -> Result<Vec<GraphKey>, u64> {
        let goes = |(key, entry): &(&GraphKey, &Entry)| {
            let held = match asker {
                Asker::Preparer(keep) => keep.contains(key),
                Asker::Device => entry.ahead,
            };
            !held && !with.contains(key)
        };
        let mut may_go: Vec<(u64, u64, GraphKey)> = self
            .ready
            .iter()
            .filter(goes)
            .map(|(key, entry)| (entry.used, entry.bytes, key.clone()))
            .collect();
        may_go.sort_unstable_by_key(|(used, ..)| *used);
        let stays = self.bytes - may_go.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        if stays.saturating_add(bytes) > self.budget {
            return Err(stays);
        }
        let mut evicted = Vec::new();
        for (_, freed, key) in may_go {
            if self.bytes.saturating_add(bytes) <= self.budget {
                break;
            }
            self.bytes -= freed;
            self.ready.remove(&key);
            evicted.push(key);
        }
        Ok(evicted)
    }

    /// Fails when all graphs that are asked for together take more than the budget.
    fn fits(&self, keys: &[GraphKey]) -> Result<(), DeviceError> {
        let different = keys.iter().enumerate().filter(|(at, key)| !keys[..*at].contains(key));
        let sizes: Vec<(u64, &GraphKey)> =
            different.map(|(_, key)| (graph_bytes(&self.graph, key), key)).collect();
        let bytes = sizes.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        let largest = sizes.iter().max_by_key(|(bytes, _)| *bytes);
        match largest.filter(|_| bytes > self.budget) {
            None => Ok(()),
            Some((largest, key)) => Err(DeviceError::GraphTooLarge {
                device: self.device.clone(),
                graphs: sizes.len(),
                bytes,
                nodes: key.nodes.clone(),
                rows: key.rows,
                largest: *largest,
                budget: self.budget,
            }),
        }
    }
}

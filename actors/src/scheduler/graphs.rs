//! Which static graphs are ready, which are being prepared, and which cannot be had.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use lapwing_kernels::device::{DeviceError, GraphKey};

use crate::message::{GraphsPrepared, PrepareGraphs};
use lapwing_plan::{DeviceId, Route};

/// Most sets of graphs that are remembered as refused.
const REFUSED_MAX: usize = 1024;

/// The scheduler's knowledge of every device's graphs.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    ready: HashSet<(DeviceId, GraphKey)>,
    /// Sets of graphs that a device could not have together; the oldest first.
    refused: VecDeque<Refused>,
    /// What each device's lane is making, one request at a time. It may evict any graph that the
    /// request does not tell it to keep.
    preparing: HashMap<DeviceId, Pending>,
    /// Devices without room beside all that is ready: next time only what is in use is kept.
    over_budget: HashSet<DeviceId>,
    /// Devices without room beside what is in use; asked again when a chunk is through.
    saturated: HashSet<DeviceId>,
    /// Routes of the chunks in flight that use graphs.
    in_flight: HashMap<u64, Arc<Route>>,
}

#[derive(Debug)]
struct Pending {
    retained: HashSet<GraphKey>,
    /// Only what is in use is kept.
    over_budget: bool,
}

#[derive(Debug)]
struct Refused {
    device: DeviceId,
    keys: Vec<GraphKey>,
    error: DeviceError,
    /// The same would come of asking again.
    lasting: bool,
}

/// Whether a route can be taken now.
pub(super) enum Readiness {
    /// All of its graphs are there, and will be when a chunk comes.
    Ready,
    /// Some are missing.
    Missing,
    /// Some cannot be had.
    Refused(DeviceId, DeviceError),
}

impl Graphs {
    /// Looks whether a route's graphs are there.
    pub(super) fn readiness(&self, route: &Route) -> Readiness {
        let retained = |device: &DeviceId, key: &GraphKey| {
            self.preparing.get(device).is_none_or(|pending| pending.retained.contains(key))
        };
        let there = |graph: &&(DeviceId, GraphKey)| {
            self.ready.contains(*graph) && retained(&graph.0, &graph.1)
        };
        if route.graphs.iter().all(|graph| there(&graph)) {
            return Readiness::Ready;
        }
        for device in self.missing(route) {
            let keys = graphs_of(route, device);
            let refused = |r: &&Refused| r.device == device && r.keys == keys;
            if let Some(refused) = self.refused.iter().find(refused) {
                return Readiness::Refused(device, refused.error.clone());
            }
        }
        Readiness::Missing
    }

    /// Devices that miss a graph of a route.
    fn missing(&self, route: &Route) -> Vec<DeviceId> {
        let mut devices = Vec::new();
        for graph in route.graphs.iter().filter(|graph| !self.ready.contains(*graph)) {
            if !devices.contains(&graph.0) {
                devices.push(graph.0);
            }
        }
        devices
    }

    /// What to ask for so that a route can be taken: nothing while the lanes are at work.
    pub(super) fn ask(&mut self, route: &Route) -> Vec<PrepareGraphs> {
        let mut requests = Vec::new();
        for device in self.missing(route) {
            if self.preparing.contains_key(&device) || self.saturated.contains(&device) {
                continue;
            }
            let keys = graphs_of(route, device);
            let over_budget = self.over_budget.remove(&device);
            let keep: HashSet<GraphKey> = if over_budget {
                self.in_flight.values().flat_map(|route| graphs_of(route, device)).collect()
            } else {
                self.ready
                    .iter()
                    .filter(|(d, _)| *d == device)
                    .map(|(_, key)| key.clone())
                    .collect()
            };
            let retained = keep.iter().chain(&keys).cloned().collect();
            self.preparing.insert(device, Pending { retained, over_budget });
            requests.push(PrepareGraphs { device, keys, keep: keep.into_iter().collect() });
        }
        requests
    }

    /// A chunk takes that route.
    pub(super) fn on_dispatch(&mut self, chunk: u64, route: &Arc<Route>) {
        if !route.graphs.is_empty() {
            self.in_flight.insert(chunk, Arc::clone(route));
        }
    }

    /// A chunk is through, or lost.
    pub(super) fn on_progress(&mut self, chunk: u64) {
        if self.in_flight.remove(&chunk).is_some() {
            self.saturated.clear();
        }
    }

    /// A lane has answered.
    pub(super) fn on_prepared(&mut self, prepared: GraphsPrepared) {
        let GraphsPrepared { asked: PrepareGraphs { device, keys, keep }, result } = prepared;
        let over_budget = self.preparing.remove(&device).is_some_and(|pending| pending.over_budget);
        let error = match result {
            Ok(prepared) => {
                for key in prepared.evicted {
                    self.ready.remove(&(device, key));
                }
                self.ready.extend(keys.into_iter().map(|key| (device, key)));
                return;
            }
            Err(error) => error,
        };
        // Others may have been evicted before it failed.
        self.ready.retain(|(d, key)| *d != device || keep.contains(key));
        match error {
            DeviceError::NoRoom { .. } if !over_budget => {
                self.over_budget.insert(device);
            }
            // Unless what it had to keep is out of use by now.
            DeviceError::NoRoom { .. } if !self.in_flight.is_empty() => {
                self.saturated.insert(device);
                self.over_budget.insert(device);
            }
            DeviceError::NoRoom { .. } => {
                self.over_budget.insert(device);
            }
            error => {
                let lasting = matches!(
                    error,
                    DeviceError::Unsupported { .. }
                        | DeviceError::WrongResult { .. }
                        | DeviceError::GraphTooLarge { .. }
                );
                if self.refused.len() == REFUSED_MAX {
                    self.refused.pop_front();
                }
                self.refused.push_back(Refused { device, keys, error, lasting });
            }
        }
    }

    /// Forgets refusals that may not last: the requests that needed the graphs have failed, and later
    /// ones try again.
    pub(super) fn clear_transient_refusals(&mut self) {
        self.refused.retain(|refused| refused.lasting);
    }
}

/// A device's graphs of a route.
fn graphs_of(route: &Route, device: DeviceId) -> Vec<GraphKey> {
    let of_device = route.graphs.iter().filter(|(d, _)| *d == device);
    of_device.map(|(_, key)| key.clone()).collect()
}

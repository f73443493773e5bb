//! State of every device's static graphs: ready, in preparation, or refused.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use lapwing_kernels::device::{DeviceError, GraphKey};

use crate::message::{GraphsPrepared, PrepareGraphs};
use lapwing_plan::{DeviceId, Route};

mod wanted;

use wanted::{Wanted, WantedRoute};

/// Maximum number of remembered refusals.
const REFUSED_MAX: usize = 1024;

/// The scheduler's view of every device's graphs.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    /// Whether all graphs count as ready.
    pub(super) has_all: bool,
    ready: HashSet<(DeviceId, GraphKey)>,
    /// Sets of graphs that a device could not prepare together, the oldest first.
    refused: VecDeque<Refused>,
    /// The request that each device's lane is serving, at most one at a time. The lane may evict any
    /// graph that the request does not list as kept.
    preparing: HashMap<DeviceId, Pending>,
    /// Devices whose budget cannot hold more than the ready graphs: the next request keeps only the
    /// graphs in use.
    over_budget: HashSet<DeviceId>,
    /// Devices whose budget cannot hold more than the graphs in use. They are tried again when a chunk
    /// ends.
    saturated: HashSet<DeviceId>,
    /// Routes of the chunks in flight that use graphs.
    in_flight: HashMap<u64, Arc<Route>>,
    /// Graphs that chunks have lacked, for chunks that do not wait.
    wanted: Wanted,
}

#[derive(Debug)]
struct Pending {
    retained: HashSet<GraphKey>,
    /// Whether only graphs in use are kept.
    over_budget: bool,
    /// The route that lacks the graph, if no chunk waits for it.
    wanted_by: Option<WantedRoute>,
}

#[derive(Debug)]
struct Refused {
    device: DeviceId,
    keys: Vec<GraphKey>,
    error: DeviceError,
    /// Whether another attempt would fail in the same way.
    lasting: bool,
}

/// Whether a route can be used now.
pub(super) enum Readiness {
    /// All of its graphs are ready, and stay so until a chunk arrives.
    Ready,
    /// Some of its graphs are missing.
    Missing,
    /// Some of its graphs cannot be prepared.
    Refused(DeviceId, DeviceError),
}

impl Graphs {
    /// Whether a route's graphs are ready.
    pub(super) fn readiness(&self, route: &Route) -> Readiness {
        if self.has_all {
            return Readiness::Ready;
        }
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
            let refused =
                |r: &&Refused| r.device == device && r.keys.iter().all(|key| keys.contains(key));
            if let Some(refused) = self.refused.iter().find(refused) {
                return Readiness::Refused(device, refused.error.clone());
            }
        }
        Readiness::Missing
    }

    /// Devices on which a graph of the route is missing.
    fn missing(&self, route: &Route) -> Vec<DeviceId> {
        let mut devices = Vec::new();
        for graph in route.graphs.iter().filter(|graph| !self.ready.contains(*graph)) {
            if !devices.contains(&graph.0) {
                devices.push(graph.0);
            }
        }
        devices
    }

    /// Requests for the missing graphs of a route; none for a device whose lane is busy or whose budget
    /// is exhausted.
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
            self.preparing.insert(device, Pending { retained, over_budget, wanted_by: None });
            requests.push(PrepareGraphs { device, keys, keep: keep.into_iter().collect() });
        }
        requests
    }

    /// Records that a chunk uses the route.
    pub(super) fn on_dispatch(&mut self, chunk: u64, route: &Arc<Route>) {
        if !route.graphs.is_empty() {
            self.in_flight.insert(chunk, Arc::clone(route));
        }
    }

    /// Records that a chunk has ended.
    pub(super) fn on_progress(&mut self, chunk: u64) {
        if self.in_flight.remove(&chunk).is_some() {
            self.saturated.clear();
        }
    }

    /// Handles a lane's answer.
    pub(super) fn on_prepared(&mut self, prepared: GraphsPrepared) {
        let GraphsPrepared { asked: PrepareGraphs { device, keys, keep }, result } = prepared;
        let (over_budget, wanted_by) = match self.preparing.remove(&device) {
            Some(pending) => (pending.over_budget, pending.wanted_by),
            None => (false, None),
        };
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
        // The lane may have evicted graphs before it failed.
        self.ready.retain(|(d, key)| *d != device || keep.contains(key));
        match error {
            DeviceError::NoRoom { .. } if wanted_by.as_ref().is_some_and(WantedRoute::is_spare) => {
                wanted_by.into_iter().for_each(|route| self.give_up(route));
            }
            DeviceError::NoRoom { .. } if !over_budget => {
                self.over_budget.insert(device);
            }
            DeviceError::NoRoom { .. } if self.in_flight.is_empty() && wanted_by.is_some() => {
                wanted_by.into_iter().for_each(|route| self.give_up(route));
            }
            // If no chunk is in flight, the kept graphs are no longer in use.
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

    /// Forgets refusals that may be transient: the requests that needed the graphs have failed, and
    /// later requests try again.
    pub(super) fn clear_transient_refusals(&mut self) {
        self.refused.retain(|refused| refused.lasting);
    }
}

/// The graphs of a route on one device.
fn graphs_of(route: &Route, device: DeviceId) -> Vec<GraphKey> {
    let of_device = route.graphs.iter().filter(|(d, _)| *d == device);
    of_device.map(|(_, key)| key.clone()).collect()
}

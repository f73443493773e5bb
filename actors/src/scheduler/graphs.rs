//! Which static graphs are ready, which are being prepared, and which cannot be had.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lapwing_kernels::device::{DeviceError, GraphKey};

use crate::message::{GraphsPrepared, PrepareGraphs};
use crate::plan::{DeviceId, Route};

/// The scheduler's knowledge of every device's graphs.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    ready: HashSet<(DeviceId, GraphKey)>,
    /// Sets of graphs that a device could not have together.
    refused: Vec<(DeviceId, Vec<GraphKey>, DeviceError)>,
    /// What each device's lane is making, one request at a time. It may evict any graph that the
    /// request does not tell it to keep.
    preparing: HashMap<DeviceId, PrepareGraphs>,
    /// Devices whose graphs in use leave no room; asked again when a chunk is through.
    full: HashSet<DeviceId>,
    /// Routes of the chunks in flight that use graphs.
    in_flight: HashMap<u64, Arc<Route>>,
}

/// Whether a route can be taken now.
pub(super) enum Readiness {
    /// All of its graphs are there.
    Ready,
    /// Some are missing; these requests are to be sent now.
    Missing(Vec<PrepareGraphs>),
    /// One cannot be had.
    Refused(DeviceId, DeviceError),
}

impl Graphs {
    /// Looks whether a route's graphs are there, and asks for those that are not.
    pub(super) fn readiness(&mut self, route: &Route) -> Readiness {
        let mut missing: Vec<DeviceId> = Vec::new();
        let mut at_risk = false;
        for graph in &route.graphs {
            let (device, key) = graph;
            if !self.ready.contains(graph) {
                if !missing.contains(device) {
                    missing.push(*device);
                }
            } else if let Some(asked) = self.preparing.get(device) {
                at_risk |= !asked.keep.contains(key) && !asked.keys.contains(key);
            }
        }
        let mut requests = Vec::new();
        for device in &missing {
            let keys = graphs_of(route, *device);
            if let Some(refused) = self.refused.iter().find(|(d, k, _)| (d, k) == (device, &keys)) {
                return Readiness::Refused(*device, refused.2.clone());
            }
            if !self.preparing.contains_key(device) && !self.full.contains(device) {
                let keep = self.in_flight.values().flat_map(|route| graphs_of(route, *device));
                let asked = PrepareGraphs { device: *device, keys, keep: keep.collect() };
                self.preparing.insert(*device, asked.clone());
                requests.push(asked);
            }
        }
        if missing.is_empty() && !at_risk {
            return Readiness::Ready;
        }
        Readiness::Missing(requests)
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
            self.full.clear();
        }
    }

    /// A lane has answered.
    pub(super) fn on_prepared(&mut self, prepared: GraphsPrepared) {
        let GraphsPrepared { asked: PrepareGraphs { device, keys, keep }, result } = prepared;
        self.preparing.remove(&device);
        match result {
            Ok(prepared) => {
                for key in prepared.evicted {
                    self.ready.remove(&(device, key));
                }
                self.ready.extend(keys.into_iter().map(|key| (device, key)));
            }
            Err(error) => {
                // Others may have been evicted before it failed.
                self.ready.retain(|(d, key)| *d != device || keep.contains(key));
                match error {
                    // Unless what it had to keep is out of use by now.
                    DeviceError::NoRoom { .. } if !self.in_flight.is_empty() => {
                        self.full.insert(device);
                    }
                    DeviceError::NoRoom { .. } => {}
                    error => self.refused.push((device, keys, error)),
                }
            }
        }
    }
}

/// A device's graphs of a route.
fn graphs_of(route: &Route, device: DeviceId) -> Vec<GraphKey> {
    let of_device = route.graphs.iter().filter(|(d, _)| *d == device);
    of_device.map(|(_, key)| key.clone()).collect()
}

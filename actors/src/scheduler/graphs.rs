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
    /// Devices whose lane is preparing. One request at a time for each: what to keep is then
    /// known.
    preparing: HashSet<DeviceId>,
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
        for (device, key) in &route.graphs {
            if !missing.contains(device) && !self.ready.contains(&(*device, key.clone())) {
                missing.push(*device);
            }
        }
        let mut requests = Vec::new();
        for device in missing {
            let keys = graphs_of(route, device);
            if let Some(refused) = self.refused.iter().find(|(d, k, _)| (*d, k) == (device, &keys))
            {
                return Readiness::Refused(device, refused.2.clone());
            }
            requests.push((device, keys));
        }
        if requests.is_empty() {
            return Readiness::Ready;
        }
        requests.retain(|(device, _)| self.preparing.insert(*device));
        let requests = requests.into_iter().map(|(device, keys)| {
            let keep = self.in_flight.values().flat_map(|route| graphs_of(route, device));
            PrepareGraphs { device, keys, keep: keep.collect() }
        });
        Readiness::Missing(requests.collect())
    }

    /// A chunk takes that route.
    pub(super) fn on_dispatch(&mut self, chunk: u64, route: &Arc<Route>) {
        if !route.graphs.is_empty() {
            self.in_flight.insert(chunk, Arc::clone(route));
        }
    }

    /// A chunk is through, or lost.
    pub(super) fn on_progress(&mut self, chunk: u64) {
        self.in_flight.remove(&chunk);
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
                self.refused.push((device, keys, error));
            }
        }
    }
}

/// A device's graphs of a route.
fn graphs_of(route: &Route, device: DeviceId) -> Vec<GraphKey> {
    let of_device = route.graphs.iter().filter(|(d, _)| *d == device);
    of_device.map(|(_, key)| key.clone()).collect()
}

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
    refused: HashMap<(DeviceId, GraphKey), DeviceError>,
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
        let missing: Vec<_> = route.graphs.iter().filter(|g| !self.ready.contains(*g)).collect();
        if missing.is_empty() {
            return Readiness::Ready;
        }
        if let Some((graph, error)) =
            missing.iter().find_map(|g| self.refused.get(*g).map(|error| (*g, error)))
        {
            return Readiness::Refused(graph.0, error.clone());
        }
        let mut requests = Vec::new();
        for (device, _) in &missing {
            if !self.preparing.insert(*device) {
                continue;
            }
            let of = |graphs: &[(DeviceId, GraphKey)]| -> Vec<GraphKey> {
                graphs.iter().filter(|(d, _)| d == device).map(|(_, key)| key.clone()).collect()
            };
            let keep = self.in_flight.values().flat_map(|route| of(&route.graphs)).collect();
            requests.push(PrepareGraphs { device: *device, keys: of(&route.graphs), keep });
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
        self.in_flight.remove(&chunk);
    }

    /// A lane has answered.
    pub(super) fn on_prepared(&mut self, prepared: GraphsPrepared) {
        let GraphsPrepared { asked: PrepareGraphs { device, keys, .. }, result } = prepared;
        self.preparing.remove(&device);
        match result {
            Ok(prepared) => {
                for key in prepared.evicted {
                    self.ready.remove(&(device, key));
                }
                self.ready.extend(keys.into_iter().map(|key| (device, key)));
            }
            Err(error) => {
                let missing = keys.into_iter().map(|key| (device, key));
                let missing = missing.filter(|graph| !self.ready.contains(graph));
                self.refused.extend(missing.map(|graph| (graph, error.clone())));
            }
        }
    }
}

//! Graphs that chunks have lacked while other devices computed them.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use lapwing_kernels::device::GraphKey;
use lapwing_plan::{DeviceId, Route};

use super::{Graphs, Pending, graphs_of};
use crate::message::PrepareGraphs;
use crate::stats::GraphStats;

/// Most routes whose graphs are remembered.
const ROUTES_MAX: usize = 32;

/// Routes whose graphs chunks have lacked.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The latest first, and after them those on which chunks would only have ended earlier.
    routes: VecDeque<WantedRoute>,
    /// Routes whose graphs do not fit into the budget together, although their estimates do. They are not tried again.
    given_up: VecDeque<Arc<Route>>,
    /// Chunks that other devices have computed.
    chunks: u64,
}

/// A route whose graphs are missing.
#[derive(Clone, Debug)]
pub(super) struct WantedRoute {
    route: Arc<Route>,
    /// Whether chunks have another route with all of its graphs: then no graph is evicted for this one.
    is_spare: bool,
}

impl WantedRoute {
    pub(super) fn is_spare(&self) -> bool {
        self.is_spare
    }

    fn is(&self, route: &Arc<Route>) -> bool {
        Arc::ptr_eq(&self.route, route)
    }
}

impl Wanted {
    fn is_given_up(&self, route: &Arc<Route>) -> bool {
        self.given_up.iter().any(|other| Arc::ptr_eq(other, route))
    }
}

impl Graphs {
    /// Remembers that graphs of a route are missing.
    pub(in super::super) fn want(&mut self, route: &Arc<Route>) {
        let is_known = |first: &WantedRoute| first.is(route) && !first.is_spare;
        if self.wanted.is_given_up(route) || self.wanted.routes.front().is_some_and(is_known) {
            return;
        }
        let routes = &mut self.wanted.routes;
        routes.retain(|other| !other.is(route));
        routes.push_front(WantedRoute { route: Arc::clone(route), is_spare: false });
        routes.truncate(ROUTES_MAX);
    }

    /// Remembers that graphs are missing of a route on which a chunk would have ended earlier than on the one that it has taken.
    pub(in super::super) fn want_too(&mut self, route: &Arc<Route>) {
        let is_known = self.wanted.routes.iter().any(|other| other.is(route));
        if !is_known && !self.wanted.is_given_up(route) && self.wanted.routes.len() < ROUTES_MAX {
            let route = Arc::clone(route);
            self.wanted.routes.push_back(WantedRoute { route, is_spare: true });
        }
    }

    /// Counts a chunk that other devices compute because its graphs are missing.
    pub(in super::super) fn on_meanwhile(&mut self) {
        self.wanted.chunks += 1;
    }

    /// Records that graphs are ready.
    pub(in super::super) fn are_ready(
        &mut self,
        device: DeviceId,
        keys: impl IntoIterator<Item = GraphKey>,
    ) {
        self.ready.extend(keys.into_iter().map(|key| (device, key)));
    }

    /// The device of the next graph to prepare; `None` if there is none, or if one is being prepared.
    pub(in super::super) fn next_wanted(&mut self) -> Option<DeviceId> {
        if !self.preparing.is_empty() {
            return None;
        }
        while let Some(WantedRoute { route, .. }) = self.wanted.routes.front() {
            match self.first_missing(route) {
                Some((device, _)) if self.saturated.contains(device) => return None,
                Some((device, _)) => return Some(*device),
                None => _ = self.wanted.routes.pop_front(),
            }
        }
        None
    }

    /// The first missing graph of a route that no device has refused.
    fn first_missing<'a>(&self, route: &'a Route) -> Option<&'a (DeviceId, GraphKey)> {
        let refused = |graph: &(DeviceId, GraphKey)| {
            self.refused.iter().any(|it| it.device == graph.0 && it.keys.contains(&graph.1))
        };
        let missing = |graph: &&(DeviceId, GraphKey)| !self.ready.contains(*graph);
        let first = route.graphs.iter().find(missing)?;
        (!refused(first)).then_some(first)
    }

    /// Requests the graph of [`next_wanted`](Graphs::next_wanted).
    pub(in super::super) fn ask_for_wanted(&mut self) -> Option<PrepareGraphs> {
        self.next_wanted()?;
        let wanted = self.wanted.routes.front()?.clone();
        let route = Arc::clone(&wanted.route);
        let (device, key) = self.first_missing(&route)?.clone();
        let over_budget = self.over_budget.remove(&device);
        let of_ready = self.ready.iter().filter(|(d, _)| *d == device).map(|(_, key)| key);
        let used: Vec<GraphKey> = match over_budget {
            // The other graphs may go.
            true => {
                let routes = self.in_flight.values().chain([&route]);
                routes.flat_map(|route| graphs_of(route, device)).collect()
            }
            false => Vec::new(),
        };
        let keep = of_ready.filter(|key| !over_budget || used.contains(key)).cloned();
        let keep: Vec<GraphKey> = keep.collect();
        let retained = keep.iter().chain([&key]).cloned().collect();
        self.preparing.insert(device, Pending { retained, over_budget, wanted_by: Some(wanted) });
        Some(PrepareGraphs { device, keys: vec![key], keep })
    }

    /// Stops preparing the graphs of a route, which do not fit into the budget, or not beside those of other routes.
    pub(super) fn give_up(&mut self, wanted: WantedRoute) {
        let WantedRoute { route, is_spare } = wanted;
        if !is_spare {
            tracing::warn!(
                "the graphs of a route exceed their budget; other devices compute its chunks"
            );
        }
        self.wanted.routes.retain(|other| !other.is(&route));
        self.wanted.given_up.push_front(route);
        self.wanted.given_up.truncate(ROUTES_MAX);
    }

    /// Numbers for the engine's state.
    pub(in super::super) fn stats(&self) -> GraphStats {
        let all = self.wanted.routes.iter().flat_map(|wanted| &wanted.route.graphs);
        let wanted: HashSet<_> = all.filter(|graph| !self.ready.contains(*graph)).collect();
        let is_possible = |(device, _): &(DeviceId, GraphKey)| !self.saturated.contains(device);
        let mut missing = self.wanted.routes.iter().map(|it| self.first_missing(&it.route));
        let is_pending =
            !self.preparing.is_empty() || missing.any(|first| first.is_some_and(is_possible));
        GraphStats {
            ready: self.ready.len(),
            wanted: wanted.len(),
            is_pending,
            chunks_elsewhere: self.wanted.chunks,
        }
    }
}

//! Routes by which chunks beside each other keep all devices busy.
//!
//! The fastest route of a chunk alone divides its blocks, and each device waits for the others at the borders. Of many chunks, those on
//! different devices at a time need no cut: what counts is the work that their routes have in all on the busiest device. The least mean
//! time is that of the best mix of routes, a linear program over all chains of undivided blocks. It is solved by column generation
//! (Dantzig and Wolfe, 1960): the prices of the devices' time at which the known routes are cheapest, then the cheapest chain at these
//! prices, which is a further route, until there is no cheaper one.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::{Arithmetic, MemoryDomain};
use lapwing_kernels::op::Op;
use lapwing_traces::division::{Division, least_mix, priced};

use super::super::auto_place::{Chain, Kept};
use super::super::interface::PlanInput;
use super::super::options::OrderSwap;
use super::super::route_builder::RouteBuilder;
use crate::chunk::ChunkShape;
use crate::device::DeviceId;
use crate::predict::alone;
use crate::predict::prediction::Prediction;
use crate::route::Route;

/// Further routes of a shape at most.
const ROUTES_MAX: usize = 6;

/// A further route must be cheaper than the known ones by this share.
const GAIN: f64 = 0.01;

/// Share of the mean price that even a device with time to spare has, so that no chain crosses to it for nothing.
const LEAST_PRICE: f64 = 0.05;

/// What further routes are for.
pub(super) struct Mix<'a> {
    pub(super) input: &'a PlanInput<'a>,
    pub(super) shape: &'a ChunkShape,
    pub(super) order_swap: OrderSwap,
    /// Whether devices with other arithmetic than those of the first route may compute.
    pub(super) is_any: bool,
}

impl Mix<'_> {
    /// Further routes, with their predicted times alone. `known` are the routes that a chunk may take so far, that of a chunk alone first.
    pub(super) fn routes(
        &self,
        known: &[(Prediction, Arc<Route>)],
    ) -> Vec<(Prediction, Arc<Route>)> {
        let Some((_, first)) = known.first() else { return Vec::new() };
        let (chain, kept) =
            (Chain::new(self.input, self.shape, self.order_swap), Kept::of(self.input));
        let allowed: Vec<Vec<bool>> = (0..chain.len())
            .map(|block| {
                let nodes = chain.nodes(block);
                let is_kept = |device| kept.as_ref().is_none_or(|kept| kept.allows(block, device));
                let devices = 0..self.input.devices.len();
                devices
                    .map(|device| is_kept(device) && self.allows(first, &nodes, device))
                    .collect()
            })
            .collect();
        let table = chain.table();
        let mut ways: Vec<Vec<f64>> = known.iter().map(|(prediction, _)| way(prediction)).collect();
        let mut found: Vec<(Prediction, Arc<Route>)> = Vec::new();
        while found.len() < ROUTES_MAX {
            let Division { time, prices } = least_mix(&ways);
            let least = LEAST_PRICE / prices.len().max(1) as f64;
            let cost = |device: usize, time: Duration| time.mul_f64(prices[device] + least);
            let cheapest = table.solve_priced(cost, |block, device| allowed[block][device]);
            let Some(route) = cheapest.and_then(|(_, devices)| self.route(&chain, &devices)) else {
                break;
            };
            let prediction = alone(self.input, self.shape, &route);
            let way = way(&prediction);
            if priced(&way, &prices) > time * (1.0 - GAIN) {
                break;
            }
            ways.push(way);
            let predicted = Some(prediction.makespan);
            found.push((prediction, Arc::new(Route { predicted, ..Route::clone(&route) })));
        }
        found
    }

    /// Whether a block may run on a device beside those of the first route: with the same bits, and where keys and values stay in one memory.
    fn allows(&self, first: &Route, nodes: &Range<usize>, device: usize) -> bool {
        let devices = self.input.devices;
        let own = |id: DeviceId| (devices[id.0].arithmetic, devices[id.0].memory);
        let mut stages = first.compute_stages();
        let home = stages
            .find(|stage| stage.nodes.contains(&nodes.start))
            .and_then(|stage| stage.parts.first());
        let Some((arithmetic, memory)) = home.map(|part| own(part.device)) else { return false };
        let is_same = home.is_some_and(|part| part.device.0 == device);
        let other = &devices[device];
        let is_alike = arithmetic == Arithmetic::Cpu && other.arithmetic == arithmetic;
        let mut ops = self.input.graph.nodes()[nodes.clone()].iter().map(|node| &node.op);
        let stays = ops.any(|op| matches!(op, Op::Attention(_)) || op.state().is_some())
            && (memory != MemoryDomain::Host || other.memory != MemoryDomain::Host);
        is_same || (is_alike || self.is_any) && !stays
    }

    /// The route of a chain with each block on a device; `None` if it is not one.
    fn route(&self, chain: &Chain<'_>, devices: &[usize]) -> Option<Arc<Route>> {
        let mut stages = RouteBuilder::new(self.input, self.shape).order_swap(self.order_swap);
        for (block, device) in devices.iter().enumerate() {
            stages.push(chain.stage(block, *device)?);
        }
        let stages = stages.into_list();
        let reason = format!(
            "mix (predicted to keep all devices busy beside other prompts): {} stages of undivided blocks, by {}",
            stages.len(),
            self.input.cost.source()
        );
        Route::new(stages, reason, None, self.input.route_for(self.shape)).ok()
    }
}

/// Work of a route on each device, in ns.
fn way(prediction: &Prediction) -> Vec<f64> {
    prediction.lanes.iter().map(|lane| lane.time.as_nanos() as f64).collect()
}

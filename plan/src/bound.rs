//! A lower bound of the time in which a set of devices can compute prompts, whatever the routes, cuts and order.
//!
//! Each block of ops may be divided between all devices that run it, which bounds the time of all work ([`least_time`]). No request takes
//! less than its arrival and the work of its last row, either, which passes the blocks one after another.
//!
//! The bound has the best rate of every device: no submission, no padding, no copy, no synchronisation. A simulated or real makespan that is
//! divided by it says how much a route and an order lose, which the busy time of a timeline, whose routes are given, cannot.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_traces::division::{Blocks, Division, divided_time, least_time, time_at};

mod prompts;

pub use prompts::work_of_prompts;

/// The work of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestWork {
    /// When it arrives.
    pub arrival: Duration,
    /// Of each block of ops, its time in ns on each device, by number; infinite where it cannot run.
    pub blocks: Vec<Vec<f64>>,
    /// The same of the request's last row alone.
    pub last_row: Vec<Vec<f64>>,
}

/// A lower bound of a makespan, from time 0 on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bound {
    /// By the work of all requests.
    pub area: Duration,
    /// By the last row of a request.
    pub path: Duration,
    /// Price of the time of each device, by number, for which the bound by work is highest; they sum to 1. A device whose time has no
    /// price has time to spare.
    pub prices: Vec<f64>,
}

impl Bound {
    /// The bound.
    pub fn time(&self) -> Duration {
        self.area.max(self.path)
    }
}

/// A lower bound of the time until all of these requests are computed.
pub fn lower_bound(requests: &[RequestWork]) -> Bound {
    let Division { time, prices } = least_time(&blocks(requests));
    let earliest = requests.iter().map(|request| request.arrival).min().unwrap_or_default();
    let path = requests.iter().map(|request| request.arrival + path_of(&request.last_row));
    Bound { area: earliest + nanos(time), path: path.max().unwrap_or_default(), prices }
}

/// The bound in ns by the work of requests that have all arrived, for these prices of the devices' time, of which only the proportions
/// count. It holds for any prices.
pub fn area_at(requests: &[RequestWork], prices: &[f64]) -> f64 {
    let sum: f64 = prices.iter().sum();
    let prices: Vec<f64> = prices.iter().map(|price| price / sum).collect();
    time_at(&blocks(requests), &prices)
}

fn nanos(time: f64) -> Duration {
    Duration::from_nanos(time as u64)
}

/// Time of a row on devices that divide every block so that all of them end together.
fn path_of(blocks: &[Vec<f64>]) -> Duration {
    nanos(blocks.iter().map(|times| divided_time(times.iter().copied())).sum())
}

/// Blocks of requests. Layers are alike, so few of them differ.
fn blocks(requests: &[RequestWork]) -> Vec<Blocks> {
    let (mut places, mut kinds) = (HashMap::new(), Vec::new());
    for times in requests.iter().flat_map(|request| &request.blocks) {
        let bits: Vec<u64> = times.iter().map(|time| time.to_bits()).collect();
        let place = *places.entry(bits).or_insert_with(|| {
            kinds.push(Blocks { count: 0.0, times: times.clone() });
            kinds.len() - 1
        });
        kinds[place].count += 1.0;
    }
    kinds
}

#[cfg(test)]
mod tests;

//! A lower bound of the time in which a set of devices can compute prompts, whatever the routes, cuts and order.
//!
//! Each block of ops may be divided between all devices that run it, so the least time is that of a linear program: shares of blocks on
//! devices, and the load of the busiest device. Its dual has a price of the time of each device, and prices that sum to 1 make a bound of
//! their own: every block costs at least its cheapest device. So no search can make the bound too high, only too low. No request takes
//! less than its arrival and the work of its last row, either, which passes the blocks one after another.
//!
//! The bound has the best rate of every device: no submission, no padding, no copy, no synchronisation. A simulated or real makespan that is
//! divided by it says how much a route and an order lose, which the busy time of a timeline, whose routes are given, cannot.

use std::collections::HashMap;
use std::time::Duration;

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

/// Prices of up to so many devices are first tried on a grid.
const GRID_DEVICES: usize = 4;

/// Steps of the grid from no price to 1.
const GRID_STEPS: usize = 12;

/// Prices are improved down to this step.
const STEP_LEAST: f64 = 1.0 / 2048.0;

/// A lower bound of the time until all of these requests are computed.
pub fn lower_bound(requests: &[RequestWork]) -> Bound {
    let blocks = Blocks::of(requests);
    let mut prices = vec![1.0 / blocks.devices.max(1) as f64; blocks.devices];
    let mut best = blocks.cost(&prices);
    if blocks.devices <= GRID_DEVICES {
        let mut point = Vec::new();
        grid(blocks.devices, GRID_STEPS, &mut point, &mut |point| {
            let cost = blocks.cost(point);
            if cost > best {
                (best, prices) = (cost, point.to_vec());
            }
        });
    }
    let mut step = 1.0 / GRID_STEPS as f64;
    while step >= STEP_LEAST {
        match blocks.better(&prices, best, step) {
            Some((cost, moved)) => (best, prices) = (cost, moved),
            None => step /= 2.0,
        }
    }
    let earliest = requests.iter().map(|request| request.arrival).min().unwrap_or_default();
    let path = requests.iter().map(|request| request.arrival + path_of(&request.last_row));
    Bound { area: earliest + nanos(best), path: path.max().unwrap_or_default(), prices }
}

/// The bound in ns by the work of requests that have all arrived, for these prices of the devices' time, of which only the proportions
/// count. It holds for any prices.
pub fn area_at(requests: &[RequestWork], prices: &[f64]) -> f64 {
    let sum: f64 = prices.iter().sum();
    let prices: Vec<f64> = prices.iter().map(|price| price / sum).collect();
    Blocks::of(requests).cost(&prices)
}

fn nanos(time: f64) -> Duration {
    Duration::from_nanos(time as u64)
}

/// Time of a row on devices that divide every block so that all of them end together.
fn path_of(blocks: &[Vec<f64>]) -> Duration {
    let time = |lanes: &Vec<f64>| {
        let rate: f64 = lanes.iter().map(|time| 1.0 / time.max(f64::MIN_POSITIVE)).sum();
        if rate > 0.0 { 1.0 / rate } else { 0.0 }
    };
    nanos(blocks.iter().map(time).sum())
}

/// Blocks of requests. Layers are alike, so few of them differ.
struct Blocks {
    devices: usize,
    /// Times in ns on each device, and how many blocks have them.
    kinds: Vec<(Vec<f64>, f64)>,
}

impl Blocks {
    fn of(requests: &[RequestWork]) -> Blocks {
        let all = || requests.iter().flat_map(|request| &request.blocks);
        let devices = all().map(Vec::len).max().unwrap_or(0);
        let (mut places, mut kinds) = (HashMap::new(), Vec::new());
        for block in all() {
            let bits: Vec<u64> = block.iter().map(|time| time.to_bits()).collect();
            let place = *places.entry(bits).or_insert_with(|| {
                kinds.push((block.clone(), 0.0));
                kinds.len() - 1
            });
            kinds[place].1 += 1.0;
        }
        Blocks { devices, kinds }
    }

    /// What all blocks cost at least: each on the device on which it is cheapest.
    fn cost(&self, prices: &[f64]) -> f64 {
        let cheapest = |lanes: &[f64]| {
            let costs = lanes.iter().zip(prices).filter(|(time, _)| time.is_finite());
            let least = costs.map(|(time, price)| time * price).fold(f64::INFINITY, f64::min);
            if least.is_finite() { least } else { 0.0 }
        };
        self.kinds.iter().map(|(lanes, count)| count * cheapest(lanes)).sum()
    }

    /// Prices of a higher cost, of which a step was moved from one device to another.
    fn better(&self, prices: &[f64], cost: f64, step: f64) -> Option<(f64, Vec<f64>)> {
        let pairs = (0..prices.len()).flat_map(|from| (0..prices.len()).map(move |to| (from, to)));
        let moved = pairs.filter(|(from, to)| from != to).map(|(from, to)| {
            let mut moved = prices.to_vec();
            let step = step.min(moved[from]);
            moved[from] -= step;
            moved[to] += step;
            (self.cost(&moved), moved)
        });
        let best = moved.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        (best.0 > cost * (1.0 + 1e-9)).then_some(best)
    }
}

/// Calls `visit` with all prices in steps of a grid that sum to 1.
fn grid(devices: usize, left: usize, point: &mut Vec<f64>, visit: &mut impl FnMut(&[f64])) {
    let price = |steps: usize| steps as f64 / GRID_STEPS as f64;
    match devices {
        0 => {}
        1 => {
            point.push(price(left));
            visit(point);
            point.pop();
        }
        _ => {
            for steps in 0..=left {
                point.push(price(steps));
                grid(devices - 1, left - steps, point, visit);
                point.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! How long many chunks take that may take any of their routes: the least time of their mixes on all devices.

use lapwing_traces::division::{least_mix, priced};

use super::{CANDIDATES_MAX, Candidate, LaneWork, Moment};

/// Candidates of the best mix that are kept at most: more than devices, which a best mix needs at most.
const MIXED_MAX: usize = 4;

/// Those whose work costs more than the least by this share are in no good mix.
const NEAR: f64 = 0.03;

/// Grids have about so many points.
const POINTS: usize = 100;

/// The places of the candidates of the best mix for many chunks, cheapest first.
pub(super) fn of(candidates: &[Candidate]) -> Vec<usize> {
    let work = |it: &Candidate| -> Vec<f64> {
        it.lanes.iter().map(|lane| lane.time.as_nanos() as f64).collect()
    };
    let ways: Vec<Vec<f64>> = candidates.iter().map(work).collect();
    let best = least_mix(&ways);
    let costs = ways.iter().map(|way| priced(way, &best.prices)).enumerate();
    let mut near: Vec<(usize, f64)> =
        costs.filter(|(_, cost)| *cost <= best.time * (1.0 + NEAR)).collect();
    near.sort_by(|a, b| a.1.total_cmp(&b.1));
    near.into_iter().take(MIXED_MAX).map(|(at, _)| at).collect()
}

/// Prices of the time of devices, in a grid. Each point's prices sum to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    devices: usize,
    points: Vec<f64>,
}

impl Prices {
    /// A grid for so many devices.
    pub fn of(devices: usize) -> Prices {
        let mut prices = Prices::default();
        prices.fit(devices);
        prices
    }

    /// Makes it a grid for so many devices.
    pub fn fit(&mut self, devices: usize) {
        if self.devices == devices {
            return;
        }
        (self.devices, self.points) = (devices, Vec::new());
        let steps = (1..=POINTS).take_while(|steps| points(devices, *steps) <= POINTS).last();
        let steps = steps.unwrap_or(1);
        let mut point = vec![0; devices];
        self.add(&mut point, 0, steps, steps);
    }

    /// Adds all points whose steps from a device on sum to `left`.
    fn add(&mut self, point: &mut [usize], device: usize, left: usize, steps: usize) {
        if device + 1 >= point.len() {
            point.iter_mut().skip(device).for_each(|last| *last = left);
            self.points.extend(point.iter().map(|own| *own as f64 / steps as f64));
            return;
        }
        for own in 0..=left {
            point[device] = own;
            self.add(point, device + 1, left - own, steps);
        }
    }

    /// The points.
    pub fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.points.chunks_exact(self.devices.max(1))
    }
}

/// Points of a grid with so many steps: the ways to divide these between devices.
fn points(devices: usize, steps: usize) -> usize {
    (1..devices).fold(1, |all, device| all * (steps + device) / device)
}

/// The choice looks at chunks behind only with so many devices at most.
const DEVICES_MAX: usize = 8;

/// So many of the chunks behind count at most: the routes of later ones are chosen when they come, and what only they would balance leaves
/// devices idle until then.
const BEHIND_MOST: f64 = 2.0;

/// Most of the time of a device that steps of streams may take, so that prompts have some.
const SHARE_MOST: f64 = 0.75;

impl Moment {
    /// In ns, when a chunk on each candidate and the next chunks behind it have ended at the earliest, if these take the best mix of the
    /// candidates: a lower bound for each price of the devices' time, of which the highest counts. Of more than [`DEVICES_MAX`] devices nothing is known.
    pub(super) fn end_of_all(&self, candidates: &[Candidate], ends: &mut [f64]) {
        if self.lanes.len() > DEVICES_MAX {
            return;
        }
        let candidates = &candidates[..ends.len()];
        // What work takes of a device, which others slow down and streams use.
        let mut factors = [1.0; DEVICES_MAX];
        for (at, factor) in factors.iter_mut().enumerate() {
            let slow = self.slow.get(at).copied().unwrap_or(1.0);
            let share = self.steps.get(at).map_or(0.0, |step| step.share.min(SHARE_MOST));
            *factor = slow / (1.0 - share);
        }
        let times = |lanes: &[LaneWork]| {
            let mut times = [0.0; DEVICES_MAX];
            for ((time, lane), factor) in times.iter_mut().zip(lanes).zip(factors) {
                *time = lane.time.as_nanos() as f64 * factor;
            }
            times
        };
        let busy = times(&self.lanes);
        // Of each device, the work of all candidates side by side, so that a price is taken of all of them at once. Those that are not there
        // are never the cheapest.
        let mut ways = [[f64::MAX; CANDIDATES_MAX]; DEVICES_MAX];
        for (at, candidate) in candidates.iter().enumerate() {
            ways.iter_mut().zip(times(&candidate.lanes)).for_each(|(way, time)| way[at] = time);
        }
        let behind = self.behind.min(BEHIND_MOST);
        let mut all = [0.0; CANDIDATES_MAX];
        for prices in self.prices.iter() {
            let mut costs = [0.0; CANDIDATES_MAX];
            for (way, price) in ways.iter().zip(prices) {
                costs.iter_mut().zip(way).for_each(|(cost, time)| *cost += time * price);
            }
            let least = costs.iter().copied().fold(f64::MAX, lower);
            let rest = priced(&busy, prices) + behind * least;
            all.iter_mut().zip(costs).for_each(|(end, cost)| *end = higher(*end, rest + cost));
        }
        ends.copy_from_slice(&all[..ends.len()]);
    }
}

/// The lower of two numbers, neither of which is NaN: an instruction, which `f64::min` is not.
fn lower(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The higher one.
fn higher(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

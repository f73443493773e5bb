//! The least time in which devices do work that may be divided between them in any way.
//!
//! Each block of work may be divided between all devices that can do it, so the least time is that of a linear program: shares of blocks on
//! devices, and the load of the busiest device. Its dual has a price of the time of each device, and prices that sum to 1 make a bound of
//! their own: every block costs at least its cheapest device. So no search can make the bound too high, only too low.

/// Blocks of work that take the same times.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// Number of these blocks.
    pub count: f64,
    /// Time in ns of one of them on each device, by number; infinite where it cannot be done.
    pub times: Vec<f64>,
}

/// A bound of the time of work, and its prices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Division {
    /// Least time in ns.
    pub time: f64,
    /// Price of the time of each device, by number, for which the bound is highest; they sum to 1. A device whose time has no price has
    /// time to spare.
    pub prices: Vec<f64>,
}

/// Time in ns of a block that devices with these times divide so that all of them end together; 0 if none can do it.
pub fn divided_time(times: impl IntoIterator<Item = f64>) -> f64 {
    let rate: f64 = times.into_iter().map(|time| 1.0 / time.max(f64::MIN_POSITIVE)).sum();
    if rate > 0.0 { 1.0 / rate } else { 0.0 }
}

/// The bound in ns for these prices of the devices' time, by number: each block on the device on which it is cheapest. It holds for any
/// prices that sum to 1. A block that no device can do adds nothing.
pub fn time_at(blocks: &[Blocks], prices: &[f64]) -> f64 {
    let costs = blocks.iter().filter_map(|of| Some(of.count * of.cheapest(prices)?.cost));
    costs.sum()
}

/// The least time of all blocks, to about 1 %, and never more.
pub fn least_time(blocks: &[Blocks]) -> Division {
    let devices = blocks.iter().map(|of| of.times.len()).max().unwrap_or(0);
    let does = |device: usize| {
        let mut times = blocks.iter().filter_map(|of| of.times.get(device));
        times.any(|time| time.is_finite())
    };
    let able: Vec<usize> = (0..devices).filter(|device| does(*device)).collect();
    let mut search = Search { blocks, best: Division::default() };
    search.best.prices = vec![1.0 / devices.max(1) as f64; devices];
    search.best.time = time_at(blocks, &search.best.prices);
    if able.len() <= GRID_DEVICES {
        let mut point = vec![0.0; devices];
        grid(&able, GRID_STEPS, &mut point, &mut |point| search.offer(point));
    }
    search.follow_loads(&able);
    search.refine(&able);
    search.best
}

/// Prices of up to so many devices are tried on a grid.
const GRID_DEVICES: usize = 4;

/// Steps of the grid from no price to 1.
const GRID_STEPS: usize = 12;

/// Rounds in which prices follow the loads.
const ROUNDS: u32 = 600;

/// Prices are improved down to this step.
const STEP_LEAST: f64 = 1.0 / 2048.0;

/// A device for a block.
struct Cheapest {
    device: usize,
    /// Time of the block there, in ns.
    time: f64,
    /// The time, priced.
    cost: f64,
}

impl Blocks {
    fn cheapest(&self, prices: &[f64]) -> Option<Cheapest> {
        let times = self.times.iter().zip(prices).enumerate();
        let able = times.filter(|(_, (time, _))| time.is_finite());
        let costs = able.map(|(device, (time, price))| Cheapest {
            device,
            time: *time,
            cost: time * price,
        });
        costs.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }
}

/// A search for the best prices.
struct Search<'a> {
    blocks: &'a [Blocks],
    best: Division,
}

impl Search<'_> {
    fn offer(&mut self, prices: &[f64]) {
        let time = time_at(self.blocks, prices);
        if time > self.best.time {
            self.best = Division { time, prices: prices.to_vec() };
        }
    }

    /// Raises the price of each device with what the cheapest choices put on it: multiplicative weights, whose steps become smaller.
    fn follow_loads(&mut self, able: &[usize]) {
        let mut prices = vec![0.0; self.best.prices.len()];
        able.iter().for_each(|device| prices[*device] = 1.0);
        for round in 0..ROUNDS {
            let sum: f64 = prices.iter().sum();
            prices.iter_mut().for_each(|price| *price /= sum);
            self.offer(&prices);
            let mut loads = vec![0.0; prices.len()];
            for of in self.blocks {
                if let Some(cheapest) = of.cheapest(&prices) {
                    loads[cheapest.device] += of.count * cheapest.time;
                }
            }
            let most = loads.iter().copied().fold(0.0, f64::max);
            if most <= 0.0 {
                return;
            }
            let step = 0.5 / (1.0 + f64::from(round)).sqrt();
            for (price, load) in prices.iter_mut().zip(loads) {
                *price *= (step * load / most).exp();
            }
        }
    }

    /// Moves steps of price from one device to another while that makes the bound higher, then smaller steps.
    fn refine(&mut self, able: &[usize]) {
        let mut step = 1.0 / GRID_STEPS as f64;
        while step >= STEP_LEAST {
            let before = self.best.clone();
            for from in able {
                for to in able.iter().filter(|to| *to != from) {
                    let mut moved = before.prices.clone();
                    let step = step.min(moved[*from]);
                    moved[*from] -= step;
                    moved[*to] += step;
                    self.offer(&moved);
                }
            }
            if self.best.time <= before.time * (1.0 + 1e-9) {
                step /= 2.0;
            }
        }
    }
}

/// Calls `visit` with all prices of these devices in steps of a grid that sum to 1.
fn grid(devices: &[usize], left: usize, point: &mut [f64], visit: &mut impl FnMut(&[f64])) {
    let price = |steps: usize| steps as f64 / GRID_STEPS as f64;
    match devices {
        [] => {}
        [last] => {
            point[*last] = price(left);
            visit(point);
        }
        [first, others @ ..] => {
            for steps in 0..=left {
                point[*first] = price(steps);
                grid(others, left - steps, point, visit);
            }
        }
    }
}

#[cfg(test)]
mod tests;

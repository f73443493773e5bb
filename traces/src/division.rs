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
    let able = (0..devices).filter(|device| does(*device)).collect();
    let loads = |prices: &[f64], loads: &mut [f64]| {
        for of in blocks {
            if let Some(cheapest) = of.cheapest(prices) {
                loads[cheapest.device] += of.count * cheapest.time;
            }
        }
    };
    Search { time: &|prices| time_at(blocks, prices), loads: &loads, able }.best(devices)
}

/// The time in ns of a unit of work at these prices of the devices' time, which takes the alternative with the least priced work.
fn mixed_at<T: AsRef<[f64]>>(ways: &[T], prices: &[f64]) -> f64 {
    ways.iter().map(|way| priced(way.as_ref(), prices)).fold(f64::INFINITY, f64::min)
}

/// Work on each device, in ns, at these prices.
pub fn priced(work: &[f64], prices: &[f64]) -> f64 {
    work.iter().zip(prices).map(|(time, price)| time * price).sum()
}

/// The least mean time of much work of one kind, each unit of which may be done in any of these ways: their times in ns on each device. To
/// about 1 %, and never more. A way that costs more than this at its prices is in no best mix.
pub fn least_mix<T: AsRef<[f64]>>(ways: &[T]) -> Division {
    let devices = ways.iter().map(|way| way.as_ref().len()).max().unwrap_or(0);
    let loads = |prices: &[f64], loads: &mut [f64]| {
        let costs = ways.iter().map(|way| (priced(way.as_ref(), prices), way.as_ref()));
        if let Some((_, way)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) {
            loads.iter_mut().zip(way).for_each(|(load, time)| *load += time);
        }
    };
    let able = (0..devices).collect();
    match ways {
        [] => Division::default(),
        _ => Search { time: &|prices| mixed_at(ways, prices), loads: &loads, able }.best(devices),
    }
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

/// A search for the prices at which a bound is highest.
struct Search<'a> {
    /// The bound in ns for prices that sum to 1.
    time: &'a dyn Fn(&[f64]) -> f64,
    /// Adds what the cheapest choices at these prices take of each device.
    loads: &'a dyn Fn(&[f64], &mut [f64]),
    /// The devices that can do any work.
    able: Vec<usize>,
}

impl Search<'_> {
    /// The highest bound of so many devices.
    fn best(&self, devices: usize) -> Division {
        let prices = vec![1.0 / devices.max(1) as f64; devices];
        let mut best = Division { time: (self.time)(&prices), prices };
        if self.able.len() <= GRID_DEVICES {
            let mut point = vec![0.0; devices];
            grid(&self.able, GRID_STEPS, &mut point, &mut |point| self.offer(point, &mut best));
        }
        self.follow_loads(&mut best);
        self.refine(&mut best);
        best
    }

    fn offer(&self, prices: &[f64], best: &mut Division) {
        let time = (self.time)(prices);
        if time > best.time {
            *best = Division { time, prices: prices.to_vec() };
        }
    }

    /// Raises the price of each device with what the cheapest choices put on it: multiplicative weights, whose steps become smaller.
    fn follow_loads(&self, best: &mut Division) {
        let mut prices = vec![0.0; best.prices.len()];
        self.able.iter().for_each(|device| prices[*device] = 1.0);
        let mut loads = vec![0.0; prices.len()];
        for round in 0..ROUNDS {
            let sum: f64 = prices.iter().sum();
            prices.iter_mut().for_each(|price| *price /= sum);
            self.offer(&prices, best);
            loads.fill(0.0);
            (self.loads)(&prices, &mut loads);
            let most = loads.iter().copied().fold(0.0, f64::max);
            if most <= 0.0 {
                return;
            }
            let step = 0.5 / (1.0 + f64::from(round)).sqrt();
            for (price, load) in prices.iter_mut().zip(&loads) {
                *price *= (step * load / most).exp();
            }
        }
    }

    /// Moves steps of price from one device to another while that makes the bound higher, then smaller steps.
    fn refine(&self, best: &mut Division) {
        let mut step = 1.0 / GRID_STEPS as f64;
        while step >= STEP_LEAST {
            let before = best.clone();
            for from in &self.able {
                for to in self.able.iter().filter(|to| *to != from) {
                    let mut moved = before.prices.clone();
                    let step = step.min(moved[*from]);
                    moved[*from] -= step;
                    moved[*to] += step;
                    self.offer(&moved, best);
                }
            }
            if best.time <= before.time * (1.0 + 1e-9) {
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

//! The least time in which devices can compute the chunks of a run, whatever routes these take.

use std::collections::BTreeMap;

use crate::event::{ChunkPhase, Milestone, Need};
use crate::timeline::Timeline;

/// A lower bound of the makespan of a run's chunks on its devices: of any routes, cuts and order. It is computed from predicted times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    /// Time in ns if all devices share all work, as it suits them best, and never wait.
    pub area: f64,
    /// Time in ns that the longest request takes if all devices share in each of its blocks.
    pub path: f64,
}

impl Bound {
    /// The bound of a timeline; `None` if it has no predicted times, as with one device.
    pub fn new(timeline: &Timeline) -> Option<Bound> {
        let chunks = chunks(timeline);
        let needs = chunks.keys().flat_map(|chunk| &timeline.needs[chunk]);
        let mut blocks: BTreeMap<[u64; Need::DEVICES], f64> = BTreeMap::new();
        for need in needs.filter(|need| need.times.iter().any(|time| *time < Need::NEVER)) {
            *blocks.entry(need.times).or_default() += f64::from(need.count);
        }
        let blocks: Vec<Blocks> =
            blocks.into_iter().map(|(times, count)| Blocks::new(times, count)).collect();
        (!blocks.is_empty()).then(|| Bound { area: area(&blocks), path: path(timeline, &chunks) })
    }

    /// The greater one of both bounds, in ns.
    pub fn least(&self) -> f64 {
        self.area.max(self.path)
    }
}

/// What is known about a chunk of which all stages have ended and none was discarded.
#[derive(Clone, Copy, Default)]
struct Chunk {
    request: Option<u64>,
    /// Whether it is a step without drafts.
    is_step: bool,
    /// Whether it belongs to speculative decoding.
    is_draft: bool,
}

/// The chunks with predicted times that were computed, by number.
fn chunks(timeline: &Timeline) -> BTreeMap<u64, Chunk> {
    let mut chunks: BTreeMap<u64, Option<Chunk>> = BTreeMap::new();
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        let Some(chunk) = span.tags.chunk.filter(|chunk| timeline.needs.contains_key(chunk)) else {
            continue;
        };
        let tags = &span.tags;
        let own = chunks.entry(chunk).or_insert(Some(Chunk::default()));
        if span.discarded || !span.finished {
            *own = None;
        }
        if let Some(own) = own {
            own.request = own.request.or(tags.request);
            own.is_step |= tags.phase == Some(ChunkPhase::Decode) && tags.role.is_none();
            own.is_draft |= tags.role.is_some();
        }
    }
    chunks.into_iter().filter_map(|(number, chunk)| Some((number, chunk?))).collect()
}

/// Blocks that take the same times.
struct Blocks {
    count: f64,
    /// Devices that can run them, with the time of one block.
    devices: Vec<(usize, f64)>,
}

impl Blocks {
    fn new(times: [u64; Need::DEVICES], count: f64) -> Blocks {
        let devices = times.iter().enumerate().filter(|(_, time)| **time < Need::NEVER);
        let devices = devices.map(|(device, time)| (device, *time as f64)).collect();
        Blocks { count, devices }
    }
}

/// Rounds of the search for the best prices.
const ROUNDS: u32 = 600;

/// max over prices λ ≥ 0, Σλ = 1 of Σ over blocks of the least λ_k · t_k: the dual of the best division of all work. Every λ
/// gives a valid bound, so that it is enough to come close to the best one: the price of a device rises with what the cheapest
/// choices put on it.
fn area(blocks: &[Blocks]) -> f64 {
    let mut prices = [0.0; Need::DEVICES];
    let used = blocks.iter().flat_map(|block| &block.devices);
    used.for_each(|(device, _)| prices[*device] = 1.0);
    let mut best: f64 = 0.0;
    for round in 0..ROUNDS {
        let sum: f64 = prices.iter().sum();
        prices.iter_mut().for_each(|price| *price /= sum);
        let mut loads = [0.0; Need::DEVICES];
        let mut value = 0.0;
        for Blocks { count, devices } in blocks {
            let priced =
                devices.iter().map(|(device, time)| (*device, *time, prices[*device] * time));
            let Some((device, time, least)) = priced.min_by(|a, b| a.2.total_cmp(&b.2)) else {
                continue;
            };
            value += count * least;
            loads[device] += count * time;
        }
        best = best.max(value);
        let most = loads.iter().copied().fold(0.0, f64::max);
        if most <= 0.0 {
            break;
        }
        let step = 0.5 / (1.0 + f64::from(round)).sqrt();
        for (price, load) in prices.iter_mut().zip(loads) {
            *price *= (step * load / most).exp();
        }
    }
    best
}

/// max over requests of the time until it arrives, and of its chunks one after another. Only steps without drafts are known to follow each
/// other; of other chunks, of which several may be in flight, the longest one counts. A chunk of several requests counts for none.
fn path(timeline: &Timeline, chunks: &BTreeMap<u64, Chunk>) -> f64 {
    let begin = timeline.extent().0;
    let mut requests: BTreeMap<u64, Chain> = BTreeMap::new();
    for (number, chunk) in chunks {
        let Some(request) = chunk.request else { continue };
        let least = timeline.needs[number].iter().map(|need| need.path as f64).fold(0.0, f64::max);
        requests.entry(request).or_default().add(chunk, least);
    }
    let mut arrivals: BTreeMap<u64, u64> = BTreeMap::new();
    for of in timeline.milestones.iter().filter(|of| of.milestone == Milestone::Submitted) {
        arrivals.entry(of.request).or_insert(of.at.0.saturating_sub(begin.0));
    }
    let arrival = |request: &u64| arrivals.get(request).map_or(0.0, |arrival| *arrival as f64);
    requests.iter().map(|(request, chain)| arrival(request) + chain.least()).fold(0.0, f64::max)
}

/// Chunks of a request.
#[derive(Default)]
struct Chain {
    steps: f64,
    step_longest: f64,
    other_longest: f64,
    drafts: bool,
}

impl Chain {
    fn add(&mut self, chunk: &Chunk, least: f64) {
        self.drafts |= chunk.is_draft;
        if chunk.is_step {
            self.steps += least;
            self.step_longest = self.step_longest.max(least);
        } else {
            self.other_longest = self.other_longest.max(least);
        }
    }

    fn least(&self) -> f64 {
        match self.drafts {
            true => self.step_longest.max(self.other_longest),
            false => self.steps + self.other_longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The least time of two devices that share all blocks: each takes those that suit it best, and one block is divided.
    fn divided(blocks: &[[u64; 2]]) -> f64 {
        let mut blocks = blocks.to_vec();
        blocks.sort_by(|a, b| (a[0] * b[1]).cmp(&(b[0] * a[1])));
        let mut first = 0.0;
        let mut second: f64 = blocks.iter().map(|block| block[1] as f64).sum();
        for [a, b] in blocks {
            let [a, b] = [a as f64, b as f64];
            if first + a >= second - b {
                let share = ((second - first) / (a + b)).clamp(0.0, 1.0);
                return first + share * a;
            }
            (first, second) = (first + a, second - b);
        }
        first
    }

    fn of_two(blocks: &[[u64; 2]]) -> f64 {
        let never = Need::NEVER;
        let blocks = blocks.iter().map(|[a, b]| Blocks::new([*a, *b, never, never, never], 1.0));
        area(&blocks.collect::<Vec<_>>())
    }

    #[test]
    fn devices_share_work_as_it_suits_them() {
        assert!((of_two(&[[10, 10]]) - 5.0).abs() < 1e-9);
        assert!((of_two(&[[10, Need::NEVER], [Need::NEVER, 20]]) / 20.0 - 1.0).abs() < 0.01);
        assert!((of_two(&[[1, 2]; 6]) / 4.0 - 1.0).abs() < 0.01);
        // Three devices of 8, 10 and 40 GFLOP/s do as much as one of 58.
        let times = [8.0, 10.0, 40.0].map(|rate| (1e9_f64 / rate).round() as u64);
        let times = [times[0], times[1], times[2], Need::NEVER, Need::NEVER];
        assert!((area(&[Blocks::new(times, 1.0)]) * 58.0 / 1e9 - 1.0).abs() < 0.01);
    }

    proptest! {
        #[test]
        fn the_bound_is_close_to_the_best_division_and_never_above(
            blocks in proptest::collection::vec([1..1000u64, 1..1000u64], 1..20)
        ) {
            let (bound, best) = (of_two(&blocks), divided(&blocks));
            prop_assert!(bound <= best * (1.0 + 1e-9), "{bound} {best}");
            prop_assert!(bound >= best * 0.97, "{bound} {best}");
        }
    }
}

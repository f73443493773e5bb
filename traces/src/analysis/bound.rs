//! The least time in which devices can compute the chunks of a run, whatever routes these take.

use std::collections::BTreeMap;

use crate::division::{Blocks, least_time};
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
        let blocks: Vec<Blocks> = blocks
            .into_iter()
            .map(|(times, count)| Blocks { count, times: in_ns(times) })
            .collect();
        (!blocks.is_empty())
            .then(|| Bound { area: least_time(&blocks).time, path: path(timeline, &chunks) })
    }

    /// The greater one of both bounds, in ns.
    pub fn least(&self) -> f64 {
        self.area.max(self.path)
    }
}

fn in_ns(times: [u64; Need::DEVICES]) -> Vec<f64> {
    let in_ns = |time: u64| if time < Need::NEVER { time as f64 } else { f64::INFINITY };
    times.map(in_ns).to_vec()
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

//! Prefixes of overloaded workers that others take over.

use std::collections::VecDeque;
use std::time::Duration;

use foldhash::HashMap;
use lapwing_traces::Nanos;

use super::loads::Loads;
use crate::routing::tree::WINDOW;
use crate::routing::worker::WorkerId;

/// Requests of a prefix at a worker after which it may count as overloaded.
const LEAST: usize = 50;

/// By how much the time to first token has grown if it does.
const GROWTH: f64 = 2.0;

/// Ratio of loads from which on prefixes move.
const RATIO: f64 = 1.5;

/// A prefix that another worker is to have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The worker that gives it up; `None` if it keeps it, too.
    pub(super) from: Option<WorkerId>,
    pub(super) to: WorkerId,
}

/// A prefix at a worker.
type Place = (u64, WorkerId);

/// Finds overloaded workers by their times to first token.
#[derive(Debug, Default)]
pub(super) struct Rebalance {
    /// Times to first token of the last three minutes, and when they were known.
    waits: HashMap<Place, VecDeque<(Nanos, f64)>>,
    overloaded: Vec<Place>,
    moves: HashMap<u64, Move>,
}

impl Rebalance {
    /// A request of a prefix had its first token after so many seconds.
    pub(super) fn on_first_token(&mut self, place: Place, now: Nanos, seconds: f64) {
        let waits = self.waits.entry(place).or_default();
        waits.push_back((now, seconds));
        let since = |window: Duration| Nanos(now.0.saturating_sub(window.as_nanos() as u64));
        let (begin, middle) = (since(WINDOW), since(WINDOW / 2));
        while waits.front().is_some_and(|(at, _)| *at < begin) {
            waits.pop_front();
        }
        if waits.len() < LEAST {
            return;
        }
        let first = waits.partition_point(|(at, _)| *at < middle);
        let mean = |range: std::ops::Range<usize>| {
            let count = range.len() as f64;
            waits.range(range).map(|(_, seconds)| seconds).sum::<f64>() / count
        };
        if first > 0 && first < waits.len() && mean(first..waits.len()) >= GROWTH * mean(0..first) {
            self.overloaded.push(place);
            waits.clear();
        }
    }

    /// Decides what overloaded workers give to the one with the least load.
    pub(super) fn plan(&mut self, loads: &Loads) {
        for (prefix, heavy) in self.overloaded.drain(..) {
            let (light, _) = loads.extremes();
            let (mut most, mut least) = (loads.seconds(heavy), loads.seconds(light));
            if light == heavy || most < RATIO * least {
                continue;
            }
            let prefixes = loads.prefixes(heavy);
            if prefixes.len() <= 1 {
                self.moves.insert(prefix, Move { from: None, to: light });
                continue;
            }
            for (ns, prefix) in prefixes {
                let seconds = ns as f64 / 1e9;
                if most - seconds < least + seconds {
                    break;
                }
                (most, least) = (most - seconds, least + seconds);
                self.moves.insert(prefix, Move { from: Some(heavy), to: light });
            }
        }
    }

    /// Where the next request of a prefix goes, if it moves.
    pub(super) fn take(&mut self, prefix: u64) -> Option<Move> {
        self.moves.remove(&prefix)
    }

    /// Forgets a prefix at a worker if it has had no first token since a time.
    pub(super) fn expire(&mut self, prefix: u64, worker: WorkerId, before: Nanos) {
        let waits = self.waits.get(&(prefix, worker));
        if waits.is_some_and(|waits| waits.back().is_none_or(|(at, _)| *at < before)) {
            self.waits.remove(&(prefix, worker));
        }
    }
}

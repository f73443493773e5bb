//! What workers have to do: L.

use std::collections::VecDeque;

use foldhash::HashMap;
use lapwing_traces::Nanos;

use crate::routing::worker::WorkerId;

/// Times per token that are remembered of a worker.
const SAMPLES: usize = 200;

/// Seconds per token of a worker of which none is known.
const FIRST: f64 = 0.15;

/// The loads of all workers, in whole nanoseconds, so that what is added and taken away leaves nothing.
#[derive(Debug, Default)]
pub(super) struct Loads {
    workers: Vec<OfWorker>,
    spent: VecDeque<Spent>,
}

#[derive(Clone, Debug, Default)]
struct OfWorker {
    /// Prefill time of what it was sent lately.
    prefill: u64,
    /// Decode time of its requests.
    decode: u64,
    /// The part of `prefill` of each prefix.
    prefixes: HashMap<u64, u64>,
    samples: VecDeque<f64>,
    median: Option<f64>,
}

/// Prefill time that a request takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    pub(super) at: Nanos,
    pub(super) worker: WorkerId,
    pub(super) prefix: u64,
    /// In ns.
    pub(super) prefill: u64,
}

/// Seconds in ns.
pub(super) fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl Loads {
    /// There are so many workers.
    pub(super) fn resize(&mut self, workers: usize) {
        self.workers.resize(workers, OfWorker::default());
    }

    /// L of a worker, in seconds.
    pub(super) fn seconds(&self, worker: WorkerId) -> f64 {
        let of = &self.workers[worker.index()];
        (of.prefill + of.decode) as f64 / 1e9
    }

    /// The first workers of those with the least and with the most load.
    pub(super) fn extremes(&self) -> (WorkerId, WorkerId) {
        let (mut least, mut most) = ((u64::MAX, 0), (0, 0));
        for (at, of) in self.workers.iter().enumerate() {
            let load = of.prefill + of.decode;
            if load < least.0 {
                least = (load, at);
            }
            if load > most.0 {
                most = (load, at);
            }
        }
        (WorkerId(least.1 as u32), WorkerId(most.1 as u32))
    }

    /// Decode time for each second of prefill.
    pub(super) fn decode_ratio(&self, worker: WorkerId) -> f64 {
        let of = &self.workers[worker.index()];
        match of.decode {
            0 => 0.0,
            decode => decode as f64 / of.prefill as f64,
        }
    }

    /// Seconds per generated token at a worker.
    pub(super) fn time_per_token(&self, worker: WorkerId) -> f64 {
        self.workers[worker.index()].median.unwrap_or(FIRST)
    }

    /// The prefixes that a worker was sent lately with the prefill time that they took, the least first.
    pub(super) fn prefixes(&self, worker: WorkerId) -> Vec<(u64, u64)> {
        let of = &self.workers[worker.index()];
        let mut prefixes: Vec<_> = of.prefixes.iter().map(|(prefix, ns)| (*ns, *prefix)).collect();
        prefixes.sort_unstable();
        prefixes
    }

    /// A request is sent to a worker.
    pub(super) fn spend(&mut self, spent: Spent) {
        let of = &mut self.workers[spent.worker.index()];
        of.prefill += spent.prefill;
        *of.prefixes.entry(spent.prefix).or_default() += spent.prefill;
        self.spent.push_back(spent);
    }

    /// A worker has a request of so much decode time.
    pub(super) fn begin(&mut self, worker: WorkerId, decode: u64) {
        self.workers[worker.index()].decode += decode;
    }

    /// A request has ended.
    pub(super) fn end(&mut self, worker: WorkerId, decode: u64) {
        self.workers[worker.index()].decode -= decode;
    }

    /// A request of a worker took so many seconds for each token after the first.
    pub(super) fn on_time_per_token(&mut self, worker: WorkerId, seconds: f64) {
        let of = &mut self.workers[worker.index()];
        if of.samples.len() == SAMPLES {
            of.samples.pop_front();
        }
        of.samples.push_back(seconds);
        let mut samples: Vec<f64> = of.samples.iter().copied().collect();
        let middle = samples.len() / 2;
        of.median = Some(*samples.select_nth_unstable_by(middle, f64::total_cmp).1);
    }

    /// Forgets what was sent before a time.
    pub(super) fn expire(&mut self, before: Nanos) {
        while let Some(Spent { worker, prefix, prefill, .. }) =
            self.spent.front().copied().filter(|spent| spent.at < before)
        {
            self.spent.pop_front();
            let of = &mut self.workers[worker.index()];
            of.prefill -= prefill;
            if let Some(left) = of.prefixes.get_mut(&prefix) {
                *left -= prefill;
                if *left == 0 {
                    of.prefixes.remove(&prefix);
                }
            }
        }
    }
}

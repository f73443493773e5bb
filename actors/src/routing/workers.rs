//! All workers, in order of their load.

use std::collections::BTreeSet;

use super::worker::{WorkerId, WorkerLoad, WorkerSpec};

/// The workers of a router, with their loads. The sender of requests must report each request that it sends and each one that ends.
#[derive(Clone, Debug)]
pub struct Workers {
    specs: Vec<WorkerSpec>,
    loads: Vec<WorkerLoad>,
    /// By requests in flight, then requests sent, then number.
    order: BTreeSet<(usize, u64, WorkerId)>,
}

impl Workers {
    /// Workers without requests.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(specs: Vec<WorkerSpec>) -> Workers {
        assert!(!specs.is_empty(), "there is at least one worker");
        let loads = vec![WorkerLoad::default(); specs.len()];
        let order = (0..specs.len() as u32).map(|at| (0, 0, WorkerId(at))).collect();
        Workers { specs, loads, order }
    }

    /// Number of workers, at least 1.
    pub fn count(&self) -> usize {
        self.specs.len()
    }

    /// All of them, by number.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = WorkerId> + use<> {
        (0..self.specs.len() as u32).map(WorkerId)
    }

    /// What a worker announces.
    pub fn spec(&self, worker: WorkerId) -> &WorkerSpec {
        &self.specs[worker.index()]
    }

    /// What a worker has to do.
    pub fn load(&self, worker: WorkerId) -> WorkerLoad {
        self.loads[worker.index()]
    }

    /// The worker with the fewest requests in flight; of several, the one that was sent the fewest, then the first.
    pub fn least(&self) -> WorkerId {
        self.by_load().next().unwrap_or_default()
    }

    /// All workers, the one with the fewest requests in flight first.
    pub fn by_load(&self) -> impl DoubleEndedIterator<Item = WorkerId> + '_ {
        self.order.iter().map(|(_, _, worker)| *worker)
    }

    /// Fewest and most requests in flight of a worker.
    pub fn extremes(&self) -> (usize, usize) {
        let least = self.order.first().map_or(0, |(load, _, _)| *load);
        (least, self.order.last().map_or(0, |(load, _, _)| *load))
    }

    /// A request of so many prompt tokens is sent to a worker.
    pub fn on_sent(&mut self, worker: WorkerId, prompt_tokens: usize) {
        self.change(worker, |load| {
            load.waiting += 1;
            load.waiting_tokens += prompt_tokens;
            load.sent += 1;
        });
    }

    /// A request of so many prompt tokens has had its first token.
    pub fn on_first_token(&mut self, worker: WorkerId, prompt_tokens: usize) {
        self.change(worker, |load| {
            load.waiting -= 1;
            load.waiting_tokens -= prompt_tokens;
            load.generating += 1;
        });
    }

    /// A request of so many prompt tokens has left a worker. `generated`: it has had a token.
    pub fn on_end(&mut self, worker: WorkerId, prompt_tokens: usize, generated: bool) {
        self.change(worker, |load| match generated {
            true => load.generating -= 1,
            false => {
                load.waiting -= 1;
                load.waiting_tokens -= prompt_tokens;
            }
        });
    }

    fn change(&mut self, worker: WorkerId, change: impl FnOnce(&mut WorkerLoad)) {
        let load = &mut self.loads[worker.index()];
        let (before, sent) = (load.in_flight(), load.sent);
        change(load);
        if (load.in_flight(), load.sent) != (before, sent) {
            self.order.remove(&(before, sent, worker));
            self.order.insert((load.in_flight(), load.sent, worker));
        }
    }
}

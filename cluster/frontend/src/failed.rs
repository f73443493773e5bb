//! Which workers have failed a request that tries again.

use std::collections::HashMap;
use std::time::Duration;

use lapwing_engine::routing::Nanos;

/// Time after which a request does not try again.
const KEPT: Duration = Duration::from_secs(600);

/// Workers that have failed requests, by the id that a request keeps when it goes on elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    workers: HashMap<String, (Nanos, Vec<u64>)>,
}

impl Failed {
    /// A worker has failed a request.
    pub(crate) fn note(&mut self, request: &str, worker: u64, now: Nanos) {
        self.workers.retain(|_, entry| now.since(entry.0) < KEPT);
        let (at, workers) = self.workers.entry(request.to_owned()).or_insert((now, Vec::new()));
        *at = now;
        workers.push(worker);
    }

    /// The workers that have failed a request so far.
    pub(crate) fn of(&self, request: &str) -> Vec<u64> {
        self.workers.get(request).map(|(_, workers)| workers.clone()).unwrap_or_default()
    }

    /// A request has ended well.
    pub(crate) fn forget(&mut self, request: &str) {
        self.workers.remove(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_workers_that_failed_it_until_it_ends_or_is_old() {
        let mut failed = Failed::default();
        failed.note("a", 1, Nanos(0));
        failed.note("a", 2, Nanos(1));
        failed.note("b", 3, Nanos(2));
        assert_eq!((failed.of("a"), failed.of("c")), (vec![1, 2], Vec::new()));
        failed.forget("a");
        assert!(failed.of("a").is_empty());
        failed.note("d", 4, Nanos(2 + KEPT.as_nanos() as u64));
        assert_eq!((failed.of("b"), failed.of("d")), (Vec::new(), vec![4]));
    }
}

//! A server at another speed.

use std::sync::Arc;
use std::time::Duration;

use lapwing_plan::time::{Job, NodeLoad, TimeModel};

/// The times of another model, divided by a speed.
pub(super) struct AtSpeed {
    pub(super) time: Arc<dyn TimeModel>,
    pub(super) speed: f64,
}

impl AtSpeed {
    fn scaled(&self, time: Duration) -> Duration {
        Duration::try_from_secs_f64(time.as_secs_f64() / self.speed).unwrap_or(Duration::MAX)
    }
}

impl TimeModel for AtSpeed {
    fn overhead(&self, job: &Job<'_>) -> Duration {
        self.scaled(self.time.overhead(job))
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        self.scaled(self.time.node_time(job, node))
    }

    fn link_time(&self, bytes: u64) -> Option<Duration> {
        self.time.link_time(bytes).map(|time| self.scaled(time))
    }

    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        self.time.load(job, node)
    }

    fn conversion(&self, job: &Job<'_>) -> Duration {
        self.scaled(self.time.conversion(job))
    }
}

//! The time of a pass through a model.

use std::time::Duration;

use lapwing_plan::time::{Job, NodeLoad, TimeModel};

use crate::simulate::error::SocRunError;
use crate::simulate::pass_graph::is_layer;

/// A pass of n rows takes `one` · (1 + `growth` · (n − 1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// Time of one row.
    pub one: Duration,
    /// Share of that time which each further row adds.
    pub growth: f64,
    /// Share of the memory bandwidth that the pass takes while it is alone. If the shares of all passes that run
    /// at the same time are above 1 together, each slows down.
    pub bandwidth: f64,
}

impl Pass {
    pub(super) fn check(&self, what: &str) -> Result<(), SocRunError> {
        let Pass { one, growth, bandwidth } = *self;
        let is_sound =
            !one.is_zero() && (0.0..=16.0).contains(&growth) && (0.0..=1.0).contains(&bandwidth);
        if is_sound {
            return Ok(());
        }
        let reason = format!(
            "{what} takes {one:?}, {growth} more for each row, and {bandwidth} of the bandwidth; the time must be \
             above 0, the growth from 0 to 16, and the share from 0 to 1"
        );
        Err(SocRunError::Number { reason })
    }

    /// Time of that many rows.
    pub fn time(&self, rows: usize) -> Duration {
        self.one.mul_f64(1.0 + self.growth * rows.saturating_sub(1) as f64)
    }
}

/// A pass through a model of that many layers, of which each takes the same share of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayeredPass {
    pub(super) pass: Pass,
    pub(super) layers: usize,
}

impl TimeModel for LayeredPass {
    fn overhead(&self, _job: &Job<'_>) -> Duration {
        Duration::ZERO
    }

    fn node_time(&self, job: &Job<'_>, node: usize) -> Duration {
        match is_layer(node, self.layers) {
            true => self.pass.time(job.part.row_count(job.batch)) / self.layers as u32,
            false => Duration::ZERO,
        }
    }

    /// In units of the whole bandwidth: bytes per nanosecond.
    fn load(&self, job: &Job<'_>, node: usize) -> NodeLoad {
        let bandwidth = self.pass.bandwidth;
        let bytes = self.node_time(job, node).as_nanos() as f64 * bandwidth;
        NodeLoad { bytes, memory_bound: bandwidth > 0.0, joins: node != job.first }
    }
}

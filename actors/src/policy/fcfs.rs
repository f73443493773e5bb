//! First come, first served (S1-14): the smallest arrival number enters; one that does not fit
//! stops all behind it.

use lapwing_traces::Nanos;

use super::{QueuePolicy, Waiting};

/// First come, first served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fcfs;

impl QueuePolicy for Fcfs {
    fn name(&self) -> &str {
        "fcfs"
    }

    fn pick(&self, waiting: &[Waiting], _now: Nanos) -> Option<usize> {
        (0..waiting.len()).min_by_key(|i| waiting[*i].sequence)
    }
}

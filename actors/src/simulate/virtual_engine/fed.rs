//! An engine that is given its requests one by one, as a worker beside others.

use std::sync::Arc;
use std::time::Duration;

use lapwing_traces::Nanos;

use super::VirtualEngine;
use crate::message::{SchedulerMessage, Sink};
use crate::prefix::DroppedText;
use crate::sequence::AdmissionLimit;
use crate::simulate::arrival::Arrival;
use crate::simulate::error::SocRunError;

impl VirtualEngine {
    /// Gives it a request at the time of its arrival. All earlier events must have been [handled](VirtualEngine::step).
    pub(in crate::simulate) fn give(
        &mut self,
        arrival: Arrival,
        sink: Arc<dyn Sink>,
        limit: &AdmissionLimit,
    ) {
        let Some(admission) = limit.try_take() else { return };
        let (at, submit) = (arrival.at, Box::new(arrival.submit(sink, admission)));
        self.simulation.handle_at(at, SchedulerMessage::Submit(submit));
    }

    /// Time of its next event.
    pub(in crate::simulate) fn next_at(&self) -> Option<Nanos> {
        self.simulation.next_at()
    }

    /// Handles its next event, and returns the time.
    pub(in crate::simulate) fn step(&mut self) -> Nanos {
        self.simulation.step();
        self.simulation.now()
    }

    /// Time of all passes so far.
    pub(in crate::simulate) fn busy(&self) -> Duration {
        self.simulation.busy()
    }

    /// Reports from now on what its prefix cache drops, in whole blocks of so many tokens.
    pub(in crate::simulate) fn report_drops(&self, block: usize) {
        self.simulation.scheduler().report_drops(block);
    }

    /// What its prefix cache has dropped since this was last called.
    pub(in crate::simulate) fn take_drops(&self) -> Vec<DroppedText> {
        self.simulation.scheduler().take_drops()
    }

    /// Checks that all resources were released, after its last event.
    pub(in crate::simulate) fn is_empty(&self, limit: &AdmissionLimit) -> Result<(), SocRunError> {
        self.check(limit)
    }

    /// Nodes and tokens that its prefix cache has looked at.
    #[cfg(test)]
    pub(in crate::simulate) fn prefix_looks(&self) -> u64 {
        self.simulation.scheduler().prefix_looks()
    }
}

//! Preparation lanes: each device that runs prepared graphs has a thread that makes them, beside
//! the one that runs them.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::Preparer;

use lapwing_traces::event::WaitMode;

use super::throttle::Throttle;
use super::{Inbox, Mailbox};
use crate::drive::record::PrepareTape;
use crate::drive::wait::{Cores, WaitKey, Waiter};
use crate::error::RunError;
use crate::message::{GraphsPrepared, Posted, PrepareGraphs, SchedulerMessage};
use crate::plan::DeviceId;
use crate::plan::time::TimeModel;

/// Mailboxes of the preparation lanes, by device.
#[derive(Clone, Default)]
pub(super) struct Lanes(pub(super) Vec<Option<Mailbox<LaneMessage>>>);

/// What arrives at a lane.
pub(super) enum LaneMessage {
    Prepare(Posted<PrepareGraphs>),
    Stop,
}

impl Lanes {
    /// Hands a request to a device's lane.
    pub(super) fn send(
        &self,
        device: DeviceId,
        posted: Posted<PrepareGraphs>,
    ) -> Result<(), RunError> {
        match self.0.get(device.0).and_then(Option::as_ref) {
            Some(mailbox) => mailbox.send(LaneMessage::Prepare(posted)),
            None => Err(RunError::Device {
                device: format!("number {}", device.0),
                reason: "it runs no prepared graphs, but the plan asks for some".to_owned(),
            }),
        }
    }

    /// Tells every lane to end.
    pub(super) fn stop(&self) {
        self.0.iter().flatten().for_each(|mailbox| mailbox.nudge(LaneMessage::Stop));
    }
}

/// A preparation lane on its thread.
pub(super) struct Lane {
    pub(super) preparer: Box<dyn Preparer>,
    pub(super) time: Option<Arc<dyn TimeModel>>,
    pub(super) throttle: Throttle,
    pub(super) tape: PrepareTape,
    pub(super) inbox: Inbox<LaneMessage>,
    pub(super) cores: Cores,
    pub(super) scheduler: Mailbox<Posted<SchedulerMessage>>,
}

impl Lane {
    pub(super) fn run(mut self) -> Result<(), RunError> {
        let clock = Arc::clone(self.throttle.clock());
        let mut waiter = Waiter::new(WaitMode::Callback, clock, self.cores.clone());
        while let Ok((message, waited)) = self.inbox.recv(&mut waiter, WaitKey::default()) {
            let LaneMessage::Prepare(Posted { message: asked, sent }) = message else { break };
            self.tape.begin(sent, waited);
            self.throttle.begin(false);
            let busy = self.cores.busy(1);
            let result = self.preparer.prepare(&asked.keys, &asked.keep, &mut self.tape);
            drop(busy);
            if let (Some(time), Ok(prepared)) = (&self.time, &result) {
                let modelled: Duration =
                    prepared.made.iter().map(|key| time.prepare_time(key)).sum();
                self.throttle.wait(modelled, &mut waiter);
            }
            let done = SchedulerMessage::Prepared(Box::new(GraphsPrepared { asked, result }));
            self.scheduler.send(self.tape.end(done))?;
        }
        Ok(())
    }
}

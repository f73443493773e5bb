//! Preparation lanes: each device that runs prepared graphs has a second thread that prepares them.

use std::sync::Arc;
use std::time::Duration;

use lapwing_kernels::device::Preparer;

use lapwing_traces::Nanos;
use lapwing_traces::event::WaitMode;

use super::throttle::Throttle;
use crate::drive::mailbox::{Inbox, Mailbox};
use crate::drive::record::PrepareTrace;
use crate::drive::wait::{Cores, WaitKey, WaitRecord, Waiter};
use crate::error::RunError;
use crate::message::{GraphsPrepared, PrepareGraphs, SchedulerMessage, Traced};
use lapwing_plan::DeviceId;
use lapwing_plan::time::TimeModel;

/// Mailboxes of the preparation lanes, by device.
#[derive(Clone, Default)]
pub(super) struct Lanes(pub(super) Vec<Option<Mailbox<LaneMessage>>>);

/// A message to a lane.
pub(super) enum LaneMessage {
    Prepare(Traced<PrepareGraphs>),
    /// Tell the scheduler at that time.
    Rest(Nanos),
    Stop,
}

impl Lanes {
    /// Sends a request to a device's lane. A request to a dead lane is dropped, because the lane's own
    /// thread reports the death, which ends the engine. Returns the answer if the device has no lane.
    ///
    /// # Errors
    /// [`RunError::MailboxFull`].
    pub(super) fn send(
        &self,
        posted: Traced<PrepareGraphs>,
    ) -> Result<Option<GraphsPrepared>, RunError> {
        let device = posted.message.device;
        let Some(mailbox) = self.0.get(device.0).and_then(Option::as_ref) else {
            return Ok(Some(GraphsPrepared::without_lane(posted.message)));
        };
        match mailbox.send(LaneMessage::Prepare(posted)) {
            Ok(()) | Err(RunError::ActorDied { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has a device's lane tell the scheduler at that time. A lane that is not there is never asked to prepare.
    ///
    /// # Errors
    /// [`RunError::MailboxFull`].
    pub(super) fn rest(&self, device: DeviceId, at: Nanos) -> Result<(), RunError> {
        let mailbox = self.0.get(device.0).and_then(Option::as_ref);
        match mailbox.map_or(Ok(()), |mailbox| mailbox.send(LaneMessage::Rest(at))) {
            Err(RunError::ActorDied { .. }) => Ok(()),
            sent => sent,
        }
    }

    /// Stops every lane.
    pub(super) fn stop(&self) {
        self.0.iter().flatten().for_each(|mailbox| mailbox.nudge(LaneMessage::Stop));
    }
}

/// A preparation lane on its thread.
pub(super) struct Lane {
    pub(super) preparer: Box<dyn Preparer>,
    pub(super) time: Option<Arc<dyn TimeModel>>,
    pub(super) throttle: Throttle,
    pub(super) trace: PrepareTrace,
    pub(super) inbox: Inbox<LaneMessage>,
    pub(super) cores: Cores,
    pub(super) scheduler: Mailbox<Traced<SchedulerMessage>>,
}

impl Lane {
    pub(super) fn run(mut self) -> Result<(), RunError> {
        let clock = Arc::clone(self.throttle.clock());
        let mut waiter = Waiter::new(WaitMode::Callback, clock, self.cores.clone());
        while let Ok((message, waited)) = self.inbox.recv(&mut waiter, WaitKey::default()) {
            match message {
                LaneMessage::Prepare(posted) => self.prepare(posted, waited, &mut waiter)?,
                LaneMessage::Rest(at) => {
                    // The scheduler sends nothing but the end before the answer.
                    if !matches!(self.inbox.recv_until(&mut waiter, at), Ok(None)) {
                        break;
                    }
                    self.scheduler.send(Traced::untraced(SchedulerMessage::Rested))?;
                }
                LaneMessage::Stop => break,
            }
        }
        Ok(())
    }

    fn prepare(
        &mut self,
        Traced { message: asked, context }: Traced<PrepareGraphs>,
        waited: Option<WaitRecord>,
        waiter: &mut Waiter,
    ) -> Result<(), RunError> {
        self.trace.begin(context, waited);
        self.throttle.begin(false);
        let begin = self.throttle.clock().now();
        let busy = self.cores.busy(1);
        let result = self.preparer.prepare(&asked.keys, &asked.keep, &mut self.trace);
        drop(busy);
        if let Ok(prepared) = &result {
            self.preparer.took(prepared, self.throttle.clock().now().since(begin));
        }
        if let (Some(time), Ok(prepared)) = (&self.time, &result) {
            let modelled: Duration = prepared.made.iter().map(|key| time.prepare_time(key)).sum();
            self.throttle.wait(modelled, waiter);
        }
        let done = SchedulerMessage::Prepared(Box::new(GraphsPrepared { asked, result }));
        self.scheduler.send(self.trace.end(done))
    }
}

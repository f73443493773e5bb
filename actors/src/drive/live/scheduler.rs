//! The scheduler of the live driver, which its own thread and the workers' threads share.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use lapwing_traces::event::WaitMode;
use lapwing_traces::{Nanos, Recorder, Scope};

use super::actors::Link;
use super::asked::Asked;
use super::ending::Ending;
use super::prepare::Lanes;
use super::workers::Workers;
use crate::drive::mailbox::{Inbox, Mailbox};
use crate::drive::record::{Outgoing, SchedulerTrace};
use crate::drive::wait::{WaitKey, WaitRecord};
use crate::error::RunError;
use crate::message::{SchedulerMessage, Shutdown, Traced};
use crate::scheduler::{Scheduler, SchedulerEffect};

/// The scheduler and its mailbox. The scheduler's own thread waits on the mailbox. A worker that
/// reports to an idle scheduler runs it on the worker's thread, so a decode step needs no thread switch
/// between two tokens.
#[derive(Clone)]
pub(super) struct SharedScheduler {
    mailbox: Mailbox<Traced<SchedulerMessage>>,
    /// `None` after it has ended.
    scheduler: Arc<Mutex<Option<LiveScheduler>>>,
    recorder: Recorder,
}

impl SharedScheduler {
    pub(super) fn new(
        mailbox: Mailbox<Traced<SchedulerMessage>>,
        scheduler: LiveScheduler,
    ) -> SharedScheduler {
        let recorder = scheduler.recorder.clone();
        SharedScheduler { mailbox, scheduler: Arc::new(Mutex::new(Some(scheduler))), recorder }
    }

    /// Puts a message into the mailbox.
    ///
    /// # Errors
    /// Those of the mailbox.
    pub(super) fn post(&self, posted: Traced<SchedulerMessage>) -> Result<(), RunError> {
        self.mailbox.send(posted)
    }

    /// Handles a message on this thread, or puts it into the mailbox if the scheduler is busy.
    ///
    /// # Errors
    /// Those of the mailbox, and errors that end the engine.
    pub(super) fn tell(&self, posted: Traced<SchedulerMessage>) -> Result<(), RunError> {
        // Messages in the mailbox come first: they must leave it before permits are reused.
        let idle = self.scheduler.try_lock().ok().filter(|_| self.mailbox.is_empty());
        // The scheduler's own thread reports a scheduler that has died.
        let Some(mut scheduler) = idle else { return self.post(posted) };
        let waited = scheduler.as_ref().and_then(LiveScheduler::idle);
        if !take(&mut scheduler, posted, waited)? {
            drop(scheduler);
            self.mailbox.nudge(Traced::untraced(SchedulerMessage::Wake));
        }
        Ok(())
    }

    /// Drops the scheduler, and with it the callers' streams.
    pub(super) fn clear(&self) {
        *self.scheduler.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The loop of the scheduler's own thread.
    pub(super) fn run(
        &self,
        inbox: Inbox<Traced<SchedulerMessage>>,
        link: &Link,
    ) -> Result<(), RunError> {
        let mut waiter = link.waiter();
        loop {
            let recorded = self.recorder.scope() != Scope::Off;
            let received = inbox.recv(&mut waiter, WaitKey::default());
            let Ok((posted, waited)) = received else { return Ok(()) };
            let mut scheduler = self.scheduler.lock().map_err(|poisoned| {
                let error = panicked(&posted.message);
                end(&mut poisoned.into_inner(), error.clone());
                error
            })?;
            let waited = waited.filter(|_| recorded);
            let waited = waited.and_then(|wait| scheduler.as_ref()?.own(wait));
            if !take(&mut scheduler, posted, waited)? {
                return Ok(());
            }
        }
    }
}

/// Handles a message; returns whether the scheduler continues. If it does not, it is dropped together
/// with the callers' streams.
fn take(
    scheduler: &mut Option<LiveScheduler>,
    posted: Traced<SchedulerMessage>,
    waited: Option<WaitRecord>,
) -> Result<bool, RunError> {
    let Some(present) = scheduler else { return Ok(false) };
    match present.take(posted, waited) {
        Ok(true) => Ok(true),
        Ok(false) => {
            *scheduler = None;
            Ok(false)
        }
        Err(error) => {
            end(scheduler, error.clone());
            Err(error)
        }
    }
}

/// Drops a failed scheduler. The cause is stored first, because the callers' streams end with the
/// scheduler.
fn end(scheduler: &mut Option<LiveScheduler>, error: RunError) {
    if let Some(scheduler) = scheduler.take() {
        let _ = scheduler.ending.cause.set(error);
    }
}

/// The error of a scheduler that panicked on a worker's thread. The present message is most likely the
/// report of that worker's death.
fn panicked(message: &SchedulerMessage) -> RunError {
    let reason = match message {
        SchedulerMessage::ActorDied(RunError::ActorDied { reason, .. }) => reason.clone(),
        _ => "it panicked on a worker's thread".to_owned(),
    };
    RunError::ActorDied { actor: "scheduler".to_owned(), reason }
}

/// The scheduler, with the actors and the recorder that its effects need.
pub(super) struct LiveScheduler {
    pub(super) scheduler: Scheduler,
    pub(super) trace: SchedulerTrace,
    pub(super) workers: Workers,
    pub(super) lanes: Lanes,
    pub(super) recorder: Recorder,
    pub(super) ending: Arc<Ending>,
    pub(super) asked: Arc<Asked>,
    /// Time at which it finished its latest message, if recording was on.
    pub(super) latest: Option<Nanos>,
}

impl LiveScheduler {
    /// The scheduler's wait since its latest message, without polling.
    fn idle(&self) -> Option<WaitRecord> {
        let (since, end) = (self.latest?, self.recorder.clock().now());
        let slept = end.0.saturating_sub(since.0);
        let mode = WaitMode::Callback;
        Some(WaitRecord { mode, since, end, predicted: None, margin: 0, slept, spun: 0, parked: 0 })
    }

    /// The part of its thread's wait in which the scheduler was idle. It may have handled messages on
    /// workers' threads meanwhile.
    fn own(&self, wait: WaitRecord) -> Option<WaitRecord> {
        match self.latest {
            Some(latest) if latest > wait.since => self.idle(),
            _ => Some(wait),
        }
    }

    /// Handles a message that arrived after the wait `waited`; returns whether the scheduler continues.
    fn take(
        &mut self,
        posted: Traced<SchedulerMessage>,
        waited: Option<WaitRecord>,
    ) -> Result<bool, RunError> {
        self.trace.begin(&posted, waited);
        match &posted.message {
            // Before the scheduler checks: a stream that is dropped later wakes it again.
            SchedulerMessage::Wake => {
                self.ending.waking.swap(false, Ordering::AcqRel);
            }
            SchedulerMessage::ActorDied(error) => {
                let _ = self.ending.cause.set(error.clone());
            }
            SchedulerMessage::Shutdown(Shutdown::Now) => {
                let _ = self.ending.cause.set(RunError::ShuttingDown);
            }
            _ => {}
        }
        let mut messages = VecDeque::from([posted]);
        while let Some(message) = messages.pop_front() {
            let now = self.recorder.clock().now();
            for effect in self.scheduler.on(message, now) {
                if matches!(effect, SchedulerEffect::Stop) {
                    self.trace.end(&self.scheduler);
                    let _ = self.ending.cause.set(RunError::ShuttingDown);
                    return Ok(false);
                }
                messages.extend(self.carry_out(effect)?);
            }
        }
        self.trace.end(&self.scheduler);
        self.asked.answer(|| self.scheduler.stats());
        self.latest = self.trace.is_on().then(|| self.recorder.clock().now());
        Ok(true)
    }

    /// Carries out an effect; returns an immediate answer to the scheduler, if there is one.
    fn carry_out(
        &mut self,
        effect: SchedulerEffect,
    ) -> Result<Option<Traced<SchedulerMessage>>, RunError> {
        match effect {
            SchedulerEffect::Send(device, mut delivery, stall) => {
                self.trace.send(&mut delivery, stall);
                self.trace.need(&delivery, &mut self.scheduler);
                self.workers.send(device, delivery)?;
            }
            SchedulerEffect::Copy(copy) => {
                let roll_back = copy.run().err().map(SchedulerMessage::RollBack);
                return Ok(roll_back.map(Traced::untraced));
            }
            SchedulerEffect::Nudge(device) => self.workers.nudge(device),
            SchedulerEffect::Prepare(message) => {
                let answer = self.lanes.send(self.trace.prepare(message))?;
                let answer = answer.map(|answer| SchedulerMessage::Prepared(Box::new(answer)));
                return Ok(answer.map(Traced::untraced));
            }
            SchedulerEffect::Rest(device, at) => self.lanes.rest(device, at)?,
            SchedulerEffect::Emit(emission) => {
                let Outgoing { sink, event } = self.trace.emit(emission);
                sink.send(event);
            }
            SchedulerEffect::Note(note) => self.trace.note(note, self.scheduler.kv_page_bytes()),
            SchedulerEffect::Stop => {}
        }
        Ok(None)
    }
}

//! The scheduler among threads.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use lapwing_traces::event::WaitMode;
use lapwing_traces::{Nanos, Recorder, Scope};

use super::actors::Link;
use super::ending::Ending;
use super::prepare::Lanes;
use super::workers::Workers;
use crate::drive::mailbox::{Inbox, Mailbox};
use crate::drive::record::{Outgoing, SchedulerTrace};
use crate::drive::wait::{WaitKey, WaitRecord};
use crate::error::RunError;
use crate::message::{SchedulerMessage, Shutdown, Traced};
use crate::scheduler::{Scheduler, SchedulerEffect};

/// The scheduler's mailbox, and the scheduler itself for whoever finds it idle. A thread of its own
/// waits on the mailbox; a worker that reports to an idle scheduler lends it its own thread, so that
/// a step of generation costs no switch of threads between two tokens.
#[derive(Clone)]
pub(super) struct SharedScheduler {
    mailbox: Mailbox<Traced<SchedulerMessage>>,
    /// None when it has ended.
    scheduler: Arc<Mutex<Option<LiveScheduler>>>,
}

impl SharedScheduler {
    pub(super) fn new(
        mailbox: Mailbox<Traced<SchedulerMessage>>,
        scheduler: LiveScheduler,
    ) -> SharedScheduler {
        SharedScheduler { mailbox, scheduler: Arc::new(Mutex::new(Some(scheduler))) }
    }

    /// Puts a message into its mailbox.
    ///
    /// # Errors
    /// Those of the mailbox.
    pub(super) fn post(&self, posted: Traced<SchedulerMessage>) -> Result<(), RunError> {
        self.mailbox.send(posted)
    }

    /// Lets the scheduler take a message on this thread, or if it is busy, puts it into its mailbox.
    ///
    /// # Errors
    /// Those of the mailbox, and what ends the engine.
    pub(super) fn tell(&self, posted: Traced<SchedulerMessage>) -> Result<(), RunError> {
        // What waits there comes first, and frees the mailbox before permits are given away again.
        let idle = self.scheduler.try_lock().ok().filter(|_| self.mailbox.is_empty());
        // Of one that has died, its own thread sees what has become of it.
        let Some(mut scheduler) = idle else { return self.post(posted) };
        let waited = scheduler.as_ref().and_then(LiveScheduler::idle);
        if !take(&mut scheduler, posted, waited)? {
            drop(scheduler);
            self.mailbox.nudge(Traced::untraced(SchedulerMessage::Wake));
        }
        Ok(())
    }

    /// Drops the scheduler, and with it its callers' streams.
    pub(super) fn clear(&self) {
        *self.scheduler.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The loop of the scheduler's own thread.
    pub(super) fn run(
        &self,
        inbox: Inbox<Traced<SchedulerMessage>>,
        link: &Link,
        recorder: &Recorder,
    ) -> Result<(), RunError> {
        let mut waiter = link.waiter();
        loop {
            let recorded = recorder.scope() != Scope::Off;
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

/// Whether the scheduler goes on after a message. One that does not is dropped, and with it what its
/// callers wait for.
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

/// Drops a scheduler that has failed. Its callers' streams end with it, and must know why by then.
fn end(scheduler: &mut Option<LiveScheduler>, error: RunError) {
    if let Some(scheduler) = scheduler.take() {
        let _ = scheduler.ending.cause.set(error);
    }
}

/// The scheduler has panicked on the thread of a worker, which has died of it; the message is most
/// likely that.
fn panicked(message: &SchedulerMessage) -> RunError {
    let reason = match message {
        SchedulerMessage::ActorDied(RunError::ActorDied { reason, .. }) => reason.clone(),
        _ => "it panicked on a worker's thread".to_owned(),
    };
    RunError::ActorDied { actor: "scheduler".to_owned(), reason }
}

/// The scheduler and what it acts on.
pub(super) struct LiveScheduler {
    pub(super) scheduler: Scheduler,
    pub(super) trace: SchedulerTrace,
    pub(super) workers: Workers,
    pub(super) lanes: Lanes,
    pub(super) recorder: Recorder,
    pub(super) ending: Arc<Ending>,
    /// When it had dealt with its latest message, if it was recorded then.
    pub(super) latest: Option<Nanos>,
}

impl LiveScheduler {
    /// What it has done since its latest message: it waited, and nobody polled for the next one.
    fn idle(&self) -> Option<WaitRecord> {
        let (since, end) = (self.latest?, self.recorder.clock().now());
        let slept = end.0.saturating_sub(since.0);
        let mode = WaitMode::Callback;
        Some(WaitRecord { mode, since, end, predicted: None, margin: 0, slept, spun: 0, parked: 0 })
    }

    /// How much of a wait of its thread it has waited itself: meanwhile it may have dealt with other
    /// messages, on workers' threads.
    fn own(&self, wait: WaitRecord) -> Option<WaitRecord> {
        match self.latest {
            Some(latest) if latest > wait.since => self.idle(),
            _ => Some(wait),
        }
    }

    /// Deals with a message for which it has waited like that; whether it goes on.
    fn take(
        &mut self,
        posted: Traced<SchedulerMessage>,
        waited: Option<WaitRecord>,
    ) -> Result<bool, RunError> {
        self.trace.begin(&posted, waited);
        match &posted.message {
            // Before the scheduler looks: a stream dropped from here on wakes it again.
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
        self.latest = self.trace.is_on().then(|| self.recorder.clock().now());
        Ok(true)
    }

    /// Does what the scheduler wants; returns what it is told at once.
    fn carry_out(
        &mut self,
        effect: SchedulerEffect,
    ) -> Result<Option<Traced<SchedulerMessage>>, RunError> {
        match effect {
            SchedulerEffect::Send(device, mut delivery, stall) => {
                self.trace.send(&mut delivery, stall);
                self.workers.send(device, delivery)?;
            }
            SchedulerEffect::Nudge(device) => self.workers.nudge(device),
            SchedulerEffect::Prepare(message) => {
                let answer = self.lanes.send(self.trace.prepare(message))?;
                let answer = answer.map(|answer| SchedulerMessage::Prepared(Box::new(answer)));
                return Ok(answer.map(Traced::untraced));
            }
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

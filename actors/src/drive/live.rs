//! The live driver: one thread per actor, real devices, the operating system's clock.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};

use futures_core::Stream;
use lapwing_kernels::device::{Device, Work};
use lapwing_kernels::graph::ValueId;
use lapwing_traces::Clock;

use super::mailbox::{ChannelSink, Mailbox};
use crate::error::RunError;
use crate::message::{Chunk, SchedulerMessage, Shutdown, StreamEvent, Submit, Task};
use crate::scheduler::{Scheduler, SchedulerEffect};
use crate::sequence::{Door, Ticket};
use crate::worker::{Worker, WorkerEffect};

/// What a live engine is made of.
pub struct LiveParts {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Devices, by their number.
    pub devices: Vec<Box<dyn Device>>,
    /// The graph's output.
    pub logits: ValueId,
    /// Most requests in the engine at once.
    pub requests_max: usize,
    /// Most chunks in flight.
    pub permits: usize,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// A running engine's actors. Dropping it ends them at once.
#[derive(Debug)]
pub struct Live {
    mailbox: Mailbox<SchedulerMessage>,
    door: Door,
    death: Arc<OnceLock<RunError>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

enum WorkerMessage {
    Chunk(Box<Chunk>),
    Stop,
}

impl Live {
    /// Starts the actors.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(parts: LiveParts) -> io::Result<Live> {
        // Per request one Submit; per chunk one Progress; a wake, a shutdown and a death each.
        let capacity = parts.requests_max + parts.permits + parts.devices.len() + 8;
        let (mailbox, inbox) = Mailbox::new("scheduler", capacity);
        let boxes: Vec<_> = parts
            .devices
            .iter()
            .map(|d| Mailbox::<WorkerMessage>::new(d.name(), parts.permits + 1))
            .collect();
        let workers: Vec<_> = boxes.iter().map(|(mailbox, _)| mailbox.clone()).collect();
        let death = Arc::new(OnceLock::new());
        let mut threads = Vec::new();
        for (device, (_, inbox)) in parts.devices.into_iter().zip(boxes) {
            let name = device.name().to_owned();
            let actor = LiveWorker {
                worker: Worker::new(name.clone(), parts.logits),
                device,
                inbox,
                scheduler: mailbox.clone(),
                workers: workers.clone(),
            };
            let scheduler = mailbox.clone();
            let run = move || actor.run();
            threads
                .push(spawn(&name, run, move |e| scheduler.nudge(SchedulerMessage::ActorDied(e)))?);
        }
        let actor = LiveScheduler {
            scheduler: parts.scheduler,
            inbox,
            workers: workers.clone(),
            clock: parts.clock,
        };
        let cause = Arc::clone(&death);
        let on_death = move |error| {
            let _ = cause.set(error);
            stop(&workers);
        };
        threads.push(spawn("scheduler", move || actor.run(), on_death)?);
        Ok(Live {
            mailbox,
            door: Door::new(parts.requests_max),
            death,
            threads: Mutex::new(threads),
        })
    }

    /// A ticket for one request.
    ///
    /// # Errors
    /// [`RunError::QueueFull`].
    pub fn ticket(&self) -> Result<Ticket, RunError> {
        self.door.try_take().ok_or(RunError::QueueFull { limit: self.door.limit() })
    }

    /// Hands a request in. `events` is the number of tokens or chunks that it can bring forth.
    ///
    /// # Errors
    /// [`RunError::QueueFull`], or [`RunError::ActorDied`] when the engine is over.
    pub fn submit(&self, ids: Vec<u32>, task: Task, events: usize) -> Result<Events, RunError> {
        let ticket = self.ticket()?;
        let (sink, receiver) = ChannelSink::new(events + 2);
        let trace = tracing::debug_span!("request", tokens = ids.len());
        let submit = Submit { ids, task, sink, ticket, trace };
        self.mailbox.send(SchedulerMessage::Submit(Box::new(submit))).map_err(|e| self.cause(e))?;
        Ok(Events {
            stream: Some(receiver.clone().into_stream()),
            receiver: Some(receiver),
            mailbox: self.mailbox.clone(),
            death: Arc::clone(&self.death),
        })
    }

    /// Requests that wait or run.
    pub fn requests(&self) -> usize {
        self.door.in_use()
    }

    /// Ends the actors and waits for them.
    pub fn shutdown(&self, how: Shutdown) {
        self.mailbox.nudge(SchedulerMessage::Shutdown(how));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            let _ = thread.join();
        }
    }

    fn cause(&self, error: RunError) -> RunError {
        self.death.get().cloned().unwrap_or(error)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shutdown(Shutdown::Now);
    }
}

/// A request's events. Dropping it cancels the request.
pub struct Events {
    stream: Option<flume::r#async::RecvStream<'static, StreamEvent>>,
    receiver: Option<flume::Receiver<StreamEvent>>,
    mailbox: Mailbox<SchedulerMessage>,
    death: Arc<OnceLock<RunError>>,
}

impl Events {
    /// Polls for the next event. After the last one, and when the scheduler has died, it is a
    /// failure that names the cause.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<StreamEvent> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(self.over()) };
        match Pin::new(stream).poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(event)) => Poll::Ready(event),
            Poll::Ready(None) => Poll::Ready(self.over()),
        }
    }

    /// The next event.
    pub async fn next(&mut self) -> StreamEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next event, blocking the thread.
    pub fn next_blocking(&mut self) -> StreamEvent {
        let event = self.receiver.as_ref().and_then(|r| r.recv().ok());
        event.unwrap_or_else(|| self.over())
    }

    fn over(&self) -> StreamEvent {
        StreamEvent::Failed(self.death.get().cloned().unwrap_or(RunError::ActorDied {
            actor: "scheduler".to_owned(),
            reason: "the engine is over".to_owned(),
        }))
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("receiver", &self.receiver).finish_non_exhaustive()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Every receiving end must be gone before the scheduler looks.
        self.stream = None;
        self.receiver = None;
        self.mailbox.nudge(SchedulerMessage::Wake);
    }
}

struct LiveScheduler {
    scheduler: Scheduler,
    inbox: flume::Receiver<SchedulerMessage>,
    workers: Vec<Mailbox<WorkerMessage>>,
    clock: Arc<dyn Clock>,
}

impl LiveScheduler {
    fn run(mut self) -> Result<(), RunError> {
        while let Ok(message) = self.inbox.recv() {
            for effect in self.scheduler.on(message, self.clock.now()) {
                match effect {
                    SchedulerEffect::Send(device, chunk) => {
                        self.workers[device.0].send(WorkerMessage::Chunk(chunk))?;
                    }
                    SchedulerEffect::Emit(sink, event) => sink.send(event),
                    SchedulerEffect::Stop => {
                        stop(&self.workers);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

fn stop(workers: &[Mailbox<WorkerMessage>]) {
    for worker in workers {
        worker.nudge(WorkerMessage::Stop);
    }
}

struct LiveWorker {
    worker: Worker,
    device: Box<dyn Device>,
    inbox: flume::Receiver<WorkerMessage>,
    scheduler: Mailbox<SchedulerMessage>,
    workers: Vec<Mailbox<WorkerMessage>>,
}

impl LiveWorker {
    fn run(mut self) -> Result<(), RunError> {
        while let Ok(WorkerMessage::Chunk(chunk)) = self.inbox.recv() {
            let mut effects = VecDeque::from(self.worker.on_chunk(chunk));
            while let Some(effect) = effects.pop_front() {
                match effect {
                    WorkerEffect::Run(mut chunk) => {
                        let nodes = chunk.stage().nodes.clone();
                        let result = chunk.trace.in_scope(|| {
                            self.device.run(Work {
                                nodes,
                                batch: &chunk.batch,
                                tensors: &mut chunk.tensors,
                            })
                        });
                        effects.extend(self.worker.on_done(chunk, result));
                    }
                    WorkerEffect::Forward(device, chunk) => {
                        self.workers[device.0].send(WorkerMessage::Chunk(chunk))?;
                    }
                    WorkerEffect::Report(progress) => {
                        self.scheduler.send(SchedulerMessage::Progress(progress))?;
                    }
                    WorkerEffect::Recycle(tensor) => self.device.recycle(tensor),
                }
            }
        }
        Ok(())
    }
}

/// Starts an actor's thread; a panic or an error in it is told to `on_death` under its name.
#[expect(clippy::disallowed_methods, reason = "drive owns the engine's threads")]
fn spawn(
    name: &str,
    run: impl FnOnce() -> Result<(), RunError> + Send + 'static,
    on_death: impl FnOnce(RunError) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let actor = name.to_owned();
    thread::Builder::new().name(format!("lapwing-{name}")).spawn(move || {
        // Nothing that the closure owns is looked at after a panic.
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => on_death(error),
            Err(panic) => on_death(RunError::ActorDied { actor, reason: panic_text(&*panic) }),
        }
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked without a message".to_owned())
}

//! The live driver: a thread for each actor, real devices and the operating system's clock. An idle
//! scheduler may run on a worker's thread.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_core::Stream;
use lapwing_kernels::device::{ModelId, Preparer, RunId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_traces::{Nanos, Recorder};

use super::mailbox::{ChannelSink, Inbox, Mailbox};
use super::record::{CallerTrace, PrepareTrace, SchedulerTrace, WorkerTrace};
use super::wait::{Cores, WaitKey, Waits};
use crate::error::RunError;
use crate::message::{SchedulerMessage, Shutdown, StreamEvent, Submit, Task, TraceContext, Traced};
use crate::policy::ClientId;
use crate::scheduler::Scheduler;
use crate::sequence::{AdmissionLimit, AdmissionPermit};
use crate::worker::Worker;
use lapwing_plan::DeviceId;

mod actors;
mod device;
mod ending;
mod prepare;
mod scheduler;
pub(super) mod throttle;
mod workers;

use actors::{Link, LiveWorker};
pub use device::LiveDevice;
use ending::Ending;
use prepare::{Lane, LaneMessage, Lanes};
use scheduler::{LiveScheduler, SharedScheduler};
use throttle::Throttle;
use workers::Workers;

/// The components of a live engine.
pub struct LiveParts {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Devices, by their number.
    pub devices: Vec<LiveDevice>,
    /// The ops of each model, by its number.
    pub graphs: Vec<Arc<Graph>>,
    /// Pool of the buffers that hold results.
    pub slots: SlotPool,
    /// Maximum number of requests in the engine.
    pub requests_max: usize,
    /// Maximum number of chunks in flight.
    pub permits: usize,
    /// How actors wait for messages.
    pub waits: Waits,
    /// Receives trace events; its clock is the engine's clock.
    pub recorder: Recorder,
}

/// A request of a caller.
#[derive(Debug)]
pub struct LiveRequest {
    /// Token ids of the prompt.
    pub ids: Vec<u32>,
    /// Generation or scoring.
    pub task: Task,
    /// Client that sends it, for the queue policy.
    pub client: ClientId,
    /// Maximum number of stream events: tokens, or chunks of scores.
    pub events: usize,
    /// The model.
    pub model: ModelId,
    /// Whether to record it when only marked requests are recorded.
    pub traced: bool,
}

/// A running engine's actors. Dropping it ends them.
#[derive(Debug)]
pub struct Live {
    mailbox: Mailbox<Traced<SchedulerMessage>>,
    admission: AdmissionLimit,
    ending: Arc<Ending>,
    caller: Arc<CallerTrace>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    behind: Vec<Arc<AtomicU64>>,
}

impl Live {
    /// Starts the actors.
    ///
    /// # Errors
    /// When the operating system cannot start a thread.
    pub fn start(parts: LiveParts) -> io::Result<Live> {
        // One Submit per admission permit, two Progress per chunk permit (a permit is free before
        // its Progress is read), GraphsPrepared and two ActorDied per device, one Wake, and one
        // Shutdown of each kind.
        let capacity = parts.requests_max + 2 * parts.permits + 3 * parts.devices.len() + 3;
        let (mailbox, inbox) = Mailbox::new("scheduler", capacity);
        let boxes: Vec<_> = parts
            .devices
            .iter()
            .map(|d| Mailbox::new(d.name(), workers::capacity(parts.permits)))
            .collect();
        let workers = Workers::new(boxes.iter().map(|(mailbox, _)| mailbox.clone()).collect());
        let recorder = &parts.recorder;
        let caller = Arc::new(CallerTrace::new(recorder));
        let live = Live {
            mailbox: mailbox.clone(),
            admission: AdmissionLimit::new(parts.requests_max),
            ending: Arc::default(),
            caller: Arc::clone(&caller),
            threads: Mutex::default(),
            behind: parts.devices.iter().map(|_| Arc::default()).collect(),
        };
        let cores = Cores::of_machine();
        let link = |mode| Link { mode, clock: Arc::clone(recorder.clock()), cores: cores.clone() };
        let mut lanes = Lanes::default();
        for device in &parts.devices {
            let lane = device.device.preparer();
            let lane = lane.map(|preparer| live.start_lane(preparer, device, (recorder, &cores)));
            lanes.0.push(lane.transpose().inspect_err(|_| stop(&workers, &lanes))?);
        }
        let scheduler = LiveScheduler {
            scheduler: parts.scheduler,
            trace: SchedulerTrace::new(recorder),
            workers: workers.clone(),
            lanes: lanes.clone(),
            recorder: recorder.clone(),
            ending: Arc::clone(&live.ending),
            latest: None,
        };
        let scheduler = SharedScheduler::new(mailbox.clone(), scheduler);
        for (at, (mut device, (_, inbox))) in parts.devices.into_iter().zip(boxes).enumerate() {
            device.device.start(workers.notify(DeviceId(at)));
            let name = device.name().to_owned();
            let actor = LiveWorker {
                id: DeviceId(at),
                worker: Worker::new(DeviceId(at), name.clone(), device.device.info().depth),
                trace: WorkerTrace::new(recorder, &name, &parts.graphs),
                device,
                throttle: live.throttle(at, recorder),
                inbox,
                link: link(parts.waits.of_device(at)),
                wait: WaitKey::default(),
                queued: false,
                scheduler: scheduler.clone(),
                workers: workers.clone(),
                graphs: parts.graphs.clone(),
                running: VecDeque::new(),
                held: None,
                next_run: RunId::default(),
                free: Nanos::default(),
                slots: parts.slots.clone(),
            };
            let thread = live.start_actor(&name, move || actor.run());
            thread.inspect_err(|_| stop(&workers, &lanes))?;
        }
        let scheduler_link = link(parts.waits.scheduler_link);
        let started = live.start_scheduler(
            (scheduler, inbox, scheduler_link),
            recorder.clone(),
            (workers.clone(), lanes.clone()),
        );
        started.inspect_err(|_| stop(&workers, &lanes))?;
        Ok(live)
    }

    /// Starts the scheduler. When it ends, the requests left in its mailbox are dropped, which ends
    /// their streams.
    fn start_scheduler(
        &self,
        (scheduler, inbox, link): (SharedScheduler, Inbox<Traced<SchedulerMessage>>, Link),
        recorder: Recorder,
        (workers, lanes): (Workers, Lanes),
    ) -> io::Result<()> {
        let (ending, leftover) = (Arc::clone(&self.ending), inbox.drain_handle());
        let ended = scheduler.clone();
        let run = move || scheduler.run(inbox, &link, &recorder);
        let thread = spawn("scheduler", run, move |end| {
            if let Err(error) = end {
                let _ = ending.cause.set(error);
            }
            ended.clear();
            // The order matters: a request is either dropped by the drain below, which ends its
            // stream, or its sender sees `closed`.
            ending.closed.store(true, Ordering::SeqCst);
            ending.stopping.store(true, Ordering::Relaxed);
            leftover.clear();
            stop(&workers, &lanes);
        });
        self.keep(thread?);
        Ok(())
    }

    /// Starts a device's preparation lane.
    fn start_lane(
        &self,
        preparer: Box<dyn Preparer>,
        device: &LiveDevice,
        (recorder, cores): (&Recorder, &Cores),
    ) -> io::Result<Mailbox<LaneMessage>> {
        let name = format!("{} prepare", device.name());
        // One request at a time, and one Stop.
        let (mailbox, inbox) = Mailbox::new(&name, 2);
        let lane = Lane {
            preparer,
            time: device.time.clone(),
            throttle: self.throttle_of(Arc::default(), recorder),
            trace: PrepareTrace::new(recorder, device.name()),
            inbox,
            cores: cores.clone(),
            scheduler: self.mailbox.clone(),
        };
        self.start_actor(&name, move || lane.run())?;
        Ok(mailbox)
    }

    /// Starts an actor. If it fails, the scheduler receives [`SchedulerMessage::ActorDied`].
    fn start_actor(
        &self,
        name: &str,
        run: impl FnOnce() -> Result<(), RunError> + Send + 'static,
    ) -> io::Result<()> {
        let (scheduler, caller) = (self.mailbox.clone(), Arc::clone(&self.caller));
        let thread = spawn(name, run, move |end| {
            if let Err(error) = end {
                scheduler.nudge(caller.post(SchedulerMessage::ActorDied(error)));
            }
        })?;
        self.keep(thread);
        Ok(())
    }

    fn throttle(&self, device: usize, recorder: &Recorder) -> Throttle {
        self.throttle_of(Arc::clone(&self.behind[device]), recorder)
    }

    fn throttle_of(&self, behind: Arc<AtomicU64>, recorder: &Recorder) -> Throttle {
        Throttle::new(Arc::clone(recorder.clock()), behind, Arc::clone(&self.ending.stopping))
    }

    /// For each device, the total time by which its real runs ended after their modelled end. More
    /// than a little means that this machine is too slow for the model.
    pub fn behind(&self) -> Vec<Duration> {
        let nanos = self.behind.iter().map(|nanos| nanos.load(Ordering::Relaxed));
        nanos.map(Duration::from_nanos).collect()
    }

    fn keep(&self, thread: JoinHandle<()>) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Takes an admission permit for one request.
    ///
    /// # Errors
    /// [`RunError::QueueFull`].
    pub fn admit(&self) -> Result<AdmissionPermit, RunError> {
        let full = || RunError::QueueFull { limit: self.admission.limit() };
        self.admission.try_take().ok_or_else(full)
    }

    /// Submits a request.
    ///
    /// # Errors
    /// The cause of the engine's end, if it has ended.
    pub fn submit(
        &self,
        admission: AdmissionPermit,
        request: LiveRequest,
    ) -> Result<Events, RunError> {
        let LiveRequest { ids, task, client, events, model, traced } = request;
        let (sink, receiver) = ChannelSink::new(events + 2);
        let trace = tracing::debug_span!("request", tokens = ids.len());
        let submit = Submit { model, ids, task, client, sink, admission, trace };
        let submit = SchedulerMessage::Submit(Box::new(submit));
        let submit = Traced::new(submit, TraceContext::of_request(traced));
        let sent = self.mailbox.send(self.caller.post(submit));
        sent.map_err(|error| self.ending.cause.get().cloned().unwrap_or(error))?;
        if self.ending.closed.load(Ordering::SeqCst) {
            return Err(self.ending.why());
        }
        Ok(Events {
            stream: Some(receiver.clone().into_stream()),
            receiver: Some(receiver),
            mailbox: self.mailbox.clone(),
            ending: Arc::clone(&self.ending),
            caller: Arc::clone(&self.caller),
            ended: false,
        })
    }

    /// Number of waiting and running requests.
    pub fn requests(&self) -> usize {
        self.admission.in_use()
    }

    /// Stops the actors and joins their threads.
    pub fn shutdown(&self, how: Shutdown) {
        self.signal(how);
        let threads: Vec<_> =
            self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }

    fn signal(&self, how: Shutdown) {
        let sent = match how {
            Shutdown::Drain => &self.ending.draining,
            Shutdown::Now => &self.ending.stopping,
        };
        if !sent.swap(true, Ordering::AcqRel) {
            self.mailbox.nudge(self.caller.post(SchedulerMessage::Shutdown(how)));
        }
    }
}

impl Drop for Live {
    /// Does not join the threads: each actor ends after the chunk that it is computing.
    fn drop(&mut self) {
        self.signal(Shutdown::Now);
    }
}

/// A request's events. Dropping it cancels the request.
pub struct Events {
    stream: Option<flume::r#async::RecvStream<'static, Traced<StreamEvent>>>,
    receiver: Option<flume::Receiver<Traced<StreamEvent>>>,
    mailbox: Mailbox<Traced<SchedulerMessage>>,
    ending: Arc<Ending>,
    caller: Arc<CallerTrace>,
    /// Whether its last event was taken.
    ended: bool,
}

impl Events {
    /// Polls for the next event. After the last one, and after the scheduler has died, it is a
    /// [`StreamEvent::Failed`] with the cause.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<StreamEvent> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(self.over()) };
        match Pin::new(stream).poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(event)) => Poll::Ready(self.take(event)),
            Poll::Ready(None) => Poll::Ready(self.over()),
        }
    }

    /// The next event.
    pub async fn next(&mut self) -> StreamEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next event, blocking the thread.
    pub fn next_blocking(&mut self) -> StreamEvent {
        let Some(event) = self.receiver.as_ref().and_then(|r| r.recv().ok()) else {
            return self.over();
        };
        self.take(event)
    }

    fn take(&mut self, event: Traced<StreamEvent>) -> StreamEvent {
        self.caller.received(&event);
        self.ended |= matches!(event.message, StreamEvent::Finished(_) | StreamEvent::Failed(_));
        event.message
    }

    fn over(&self) -> StreamEvent {
        StreamEvent::Failed(self.ending.why())
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("receiver", &self.receiver).finish_non_exhaustive()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if !self.ended {
            self.caller.close();
        }
        // Every receiver must be dropped before the scheduler checks for closed streams.
        self.stream = None;
        self.receiver = None;
        if !self.ending.waking.swap(true, Ordering::AcqRel) {
            self.mailbox.nudge(self.caller.post(SchedulerMessage::Wake));
        }
    }
}

/// Stops every worker and preparation lane.
fn stop(workers: &Workers, lanes: &Lanes) {
    lanes.stop();
    workers.stop();
}

/// Starts an actor's thread; `on_end` receives its result, or an error if it panicked.
#[expect(clippy::disallowed_methods, reason = "drive owns the engine's threads")]
fn spawn(
    name: &str,
    run: impl FnOnce() -> Result<(), RunError> + Send + 'static,
    on_end: impl FnOnce(Result<(), RunError>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let actor = name.to_owned();
    thread::Builder::new().name(format!("lapwing-{name}")).spawn(move || {
        // Nothing that the closure owns is used after a panic.
        on_end(catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            Err(RunError::ActorDied { actor, reason: panic_text(&*panic) })
        }));
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked without a message".to_owned())
}

//! The live driver: a thread for each actor, real devices and the operating system's clock. An idle
//! scheduler may run on a worker's thread.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lapwing_kernels::device::{Preparer, RunId};
use lapwing_traces::{Nanos, Recorder};

use super::mailbox::{ChannelSink, Inbox, Mailbox};
use super::record::{CallerTrace, PrepareTrace, SchedulerTrace, WorkerTrace};
use super::wait::{Cores, WaitKey};
use crate::error::RunError;
use crate::message::{SchedulerMessage, Shutdown, Submit, TraceContext, Traced};
use crate::sequence::{AdmissionLimit, AdmissionPermit};
use crate::worker::Worker;
use lapwing_plan::DeviceId;

mod actors;
mod asked;
mod device;
mod ending;
mod events;
mod parts;
mod prepare;
mod running;
mod scheduler;
mod spans;
mod threads;
pub(super) mod throttle;
mod workers;

use actors::{Link, LiveWorker};
use asked::Asked;
pub use device::LiveDevice;
use ending::Ending;
pub use events::Events;
pub use parts::{LiveParts, LiveRequest};
use prepare::{Lane, LaneMessage, Lanes};
use scheduler::{LiveScheduler, SharedScheduler};
pub(super) use threads::panic_text;
use threads::spawn;
use throttle::Throttle;
use workers::{LiveActors, Workers};

/// A running engine's actors. Dropping it ends them.
#[derive(Debug)]
pub struct Live {
    mailbox: Mailbox<Traced<SchedulerMessage>>,
    admission: AdmissionLimit,
    ending: Arc<Ending>,
    asked: Arc<Asked>,
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
        let (mailbox, inbox) = Mailbox::new("scheduler", parts.messages_max());
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
            asked: Arc::default(),
            caller: Arc::clone(&caller),
            threads: Mutex::default(),
            behind: parts.devices.iter().map(|_| Arc::default()).collect(),
        };
        let cores = Cores::of_machine();
        let link = |mode| Link { mode, clock: Arc::clone(recorder.clock()), cores: cores.clone() };
        let mut actors = LiveActors { workers, lanes: Lanes::default() };
        for device in &parts.devices {
            let lane = device.device.preparer();
            let lane = lane.map(|preparer| live.start_lane(preparer, device, recorder, &cores));
            actors.lanes.0.push(lane.transpose().inspect_err(|_| actors.stop())?);
        }
        let scheduler = LiveScheduler {
            scheduler: parts.scheduler,
            trace: SchedulerTrace::new(recorder),
            workers: actors.workers.clone(),
            lanes: actors.lanes.clone(),
            recorder: recorder.clone(),
            ending: Arc::clone(&live.ending),
            asked: Arc::clone(&live.asked),
            latest: None,
        };
        let scheduler = SharedScheduler::new(mailbox.clone(), scheduler);
        for (at, (mut device, (_, inbox))) in parts.devices.into_iter().zip(boxes).enumerate() {
            device.device.start(actors.workers.notify(DeviceId(at)));
            let has_probe = device.device.completion_probe().is_some();
            let name = device.name().to_owned();
            let actor = LiveWorker {
                id: DeviceId(at),
                worker: Worker::new(DeviceId(at), name.clone(), device.device.info().depth),
                trace: WorkerTrace::new(recorder, &name, &parts.graphs)
                    .with_order(device.runs_beside_its_worker()),
                device,
                throttle: live.throttle(at, recorder),
                inbox,
                link: link(parts.waits.of_device(at).of_driver(has_probe)),
                wait: WaitKey::default(),
                queued: false,
                scheduler: scheduler.clone(),
                workers: actors.workers.clone(),
                graphs: parts.graphs.clone(),
                running: VecDeque::new(),
                held: None,
                next_run: RunId::default(),
                free: Nanos::default(),
                slots: parts.slots.clone(),
            };
            live.start_actor(&name, move || actor.run()).inspect_err(|_| actors.stop())?;
        }
        let link = link(parts.waits.scheduler_link);
        let started = live.start_scheduler(scheduler, inbox, link, actors.clone());
        started.inspect_err(|_| actors.stop())?;
        Ok(live)
    }

    /// Starts the scheduler. When it ends, the requests left in its mailbox are dropped, which ends
    /// their streams.
    fn start_scheduler(
        &self,
        scheduler: SharedScheduler,
        inbox: Inbox<Traced<SchedulerMessage>>,
        link: Link,
        actors: LiveActors,
    ) -> io::Result<()> {
        let (ending, leftover) = (Arc::clone(&self.ending), inbox.drain_handle());
        let asked = Arc::clone(&self.asked);
        let ended = scheduler.clone();
        let run = move || scheduler.run(inbox, &link);
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
            asked.clear();
            actors.stop();
        });
        self.keep(thread?);
        Ok(())
    }

    /// Starts a device's preparation lane.
    fn start_lane(
        &self,
        preparer: Box<dyn Preparer>,
        device: &LiveDevice,
        recorder: &Recorder,
        cores: &Cores,
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
        let LiveRequest { ids, task, client, urgency, prefix, events, .. } = request;
        let LiveRequest { model, traced, prompt_progress, trace, .. } = request;
        let (sink, receiver) = match prompt_progress {
            true => ChannelSink::with_prompt_progress(events + 2, ids.len()),
            false => ChannelSink::new(events + 2),
        };
        let submit = Submit { model, ids, task, client, urgency, prefix, sink, admission, trace };
        let submit = SchedulerMessage::Submit(Box::new(submit));
        let submit = Traced::new(submit, TraceContext::of_request(traced));
        let sent = self.mailbox.send(self.caller.post(submit));
        sent.map_err(|error| self.ending.cause.get().cloned().unwrap_or(error))?;
        if self.ending.closed.load(Ordering::SeqCst) {
            return Err(self.ending.why());
        }
        let (mailbox, ending) = (self.mailbox.clone(), Arc::clone(&self.ending));
        Ok(Events::new(receiver, mailbox, ending, Arc::clone(&self.caller)))
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

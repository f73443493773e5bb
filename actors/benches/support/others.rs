//! The same hop in other libraries.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kameo::actor::Spawn;
use kameo::message::{Context, Message};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use super::{Probe, Running, receiver};

const STOP: u64 = u64::MAX;

/// Stores STOP into a word when it is dropped.
struct Ends(Arc<AtomicU64>, Option<thread::Thread>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(STOP, Ordering::Release);
        if let Some(thread) = &self.1 {
            thread.unpark();
        }
    }
}

/// The floor of a hop to a thread that is awake.
pub(super) fn word(probe: &Arc<Probe>) -> Running {
    let (word, probe) = (Arc::new(AtomicU64::new(0)), Arc::clone(probe));
    let polled = Arc::clone(&word);
    let thread = receiver(move || {
        loop {
            match polled.swap(0, Ordering::Acquire) {
                0 => std::hint::spin_loop(),
                STOP => return,
                sent => probe.arrived(sent),
            }
        }
    });
    let ends = Ends(word, None);
    Running { send: Box::new(move |now| ends.0.store(now, Ordering::Release)), thread }
}

/// The floor of a hop to a thread that is parked.
pub(super) fn park(probe: &Arc<Probe>) -> Running {
    let (word, probe) = (Arc::new(AtomicU64::new(0)), Arc::clone(probe));
    let read = Arc::clone(&word);
    let thread = receiver(move || {
        loop {
            match read.swap(0, Ordering::Acquire) {
                0 => thread::park(),
                STOP => return,
                sent => probe.arrived(sent),
            }
        }
    });
    let ends = Ends(word, thread.as_ref().map(|t| t.thread().clone()));
    let send = move |now| {
        ends.0.store(now, Ordering::Release);
        if let Some(thread) = &ends.1 {
            thread.unpark();
        }
    };
    Running { send: Box::new(send), thread }
}

fn flume(probe: &Arc<Probe>, next: fn(&flume::Receiver<u64>) -> Option<u64>) -> Running {
    let ((sender, messages), probe) = (flume::bounded(8), Arc::clone(probe));
    let thread = receiver(move || {
        while let Some(sent) = next(&messages) {
            probe.arrived(sent);
        }
    });
    Running { send: Box::new(move |now| assert!(sender.try_send(now).is_ok())), thread }
}

pub(super) fn flume_polled(probe: &Arc<Probe>) -> Running {
    flume(probe, |messages| {
        loop {
            match messages.try_recv() {
                Ok(sent) => return Some(sent),
                Err(flume::TryRecvError::Empty) => std::hint::spin_loop(),
                Err(flume::TryRecvError::Disconnected) => return None,
            }
        }
    })
}

pub(super) fn flume_blocking(probe: &Arc<Probe>) -> Running {
    flume(probe, |messages| messages.recv().ok())
}

pub(super) fn tokio_blocking(probe: &Arc<Probe>) -> Running {
    let ((sender, mut messages), probe) = (mpsc::channel(8), Arc::clone(probe));
    let thread = receiver(move || {
        while let Some(sent) = messages.blocking_recv() {
            probe.arrived(sent);
        }
    });
    Running { send: Box::new(move |now| assert!(sender.try_send(now).is_ok())), thread }
}

/// A runtime with one thread of its own.
fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build();
    runtime.unwrap_or_else(|error| panic!("no runtime: {error}"))
}

pub(super) fn tokio_task(probe: &Arc<Probe>) -> Running {
    let ((sender, mut messages), probe) = (mpsc::channel(8), Arc::clone(probe));
    let runtime = runtime();
    runtime.spawn(async move {
        while let Some(sent) = messages.recv().await {
            probe.arrived(sent);
        }
    });
    let send = move |now| {
        let _alive = &runtime;
        assert!(sender.try_send(now).is_ok());
    };
    Running { send: Box::new(send), thread: None }
}

struct Kameo(Arc<Probe>);

struct Sent(u64);

impl kameo::Actor for Kameo {
    type Args = Kameo;
    type Error = Infallible;

    async fn on_start(actor: Kameo, _: kameo::actor::ActorRef<Kameo>) -> Result<Kameo, Infallible> {
        Ok(actor)
    }
}

impl Message<Sent> for Kameo {
    type Reply = ();

    async fn handle(&mut self, sent: Sent, _: &mut Context<Kameo, ()>) {
        self.0.arrived(sent.0);
    }
}

pub(super) fn kameo_actor(probe: &Arc<Probe>) -> Running {
    let runtime = runtime();
    let entered = runtime.enter();
    let actor = Kameo::spawn(Kameo(Arc::clone(probe)));
    drop(entered);
    let send = move |now| {
        let _alive = &runtime;
        assert!(actor.tell(Sent(now)).try_send().is_ok());
    };
    Running { send: Box::new(send), thread: None }
}

struct Ractor;

impl ractor::Actor for Ractor {
    type Msg = u64;
    type State = Arc<Probe>;
    type Arguments = Arc<Probe>;

    async fn pre_start(
        &self,
        _: ractor::ActorRef<u64>,
        probe: Arc<Probe>,
    ) -> Result<Arc<Probe>, ractor::ActorProcessingErr> {
        Ok(probe)
    }

    async fn handle(
        &self,
        _: ractor::ActorRef<u64>,
        sent: u64,
        probe: &mut Arc<Probe>,
    ) -> Result<(), ractor::ActorProcessingErr> {
        probe.arrived(sent);
        Ok(())
    }
}

pub(super) fn ractor_actor(probe: &Arc<Probe>) -> Running {
    let runtime = runtime();
    let spawned = runtime.block_on(ractor::Actor::spawn(None, Ractor, Arc::clone(probe)));
    let (actor, _) = spawned.unwrap_or_else(|error| panic!("no actor: {error}"));
    let send = move |now| {
        let _alive = &runtime;
        assert!(actor.cast(now).is_ok());
    };
    Running { send: Box::new(send), thread: None }
}

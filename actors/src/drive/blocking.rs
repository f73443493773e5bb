//! Runs blocking work on threads outside the caller's async runtime.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::live::panic_text;

/// Runs `work` on a thread of its own and returns its result without blocking the task that awaits
/// it. Dropping the future does not stop the work; only its result is lost.
///
/// # Errors
/// When the operating system cannot start a thread, or `work` panicked.
pub async fn spawn_blocking<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = flume::bounded(1);
    spawn(name, move || {
        let _ = sender.send(catching(work));
    })?;
    ended(receiver.recv_async().await, name)
}

/// As [`spawn_blocking`], and blocks the calling thread until the result is there: for work that must
/// not run on the caller's own thread, such as an async runtime's.
///
/// # Errors
/// As [`spawn_blocking`].
pub fn run_apart<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = flume::bounded(1);
    spawn(name, move || {
        let _ = sender.send(catching(work));
    })?;
    ended(receiver.recv(), name)
}

/// As [`run_apart`], on a thread with a stack of that many bytes: for work that is deeply recursive.
///
/// # Errors
/// As [`spawn_blocking`].
pub fn run_on_stack<T: Send + 'static>(
    name: &str,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = flume::bounded(1);
    let thread = thread::Builder::new().name(format!("lapwing-{name}")).stack_size(bytes);
    start(thread, move || {
        let _ = sender.send(catching(work));
    })?;
    ended(receiver.recv(), name)
}

/// Runs `aside` on a thread of its own while `here` runs on the calling one; where the operating system
/// refuses a thread, one after the other. A panic of either is passed on.
pub fn side_by_side<A: Send, B>(
    name: &str,
    aside: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> (A, B) {
    let aside = Mutex::new(Some(aside));
    let take = || aside.lock().unwrap_or_else(PoisonError::into_inner).take();
    thread::scope(|scope| {
        let run = || take().map(|work| work());
        let thread = thread::Builder::new().name(format!("lapwing-{name}"));
        let started = thread.spawn_scoped(scope, run);
        let here = here();
        let result = match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => take().map(|work| work()),
        };
        (result.unwrap_or_else(|| unreachable!("it is taken once")), here)
    })
}

/// A small thread pool for short work, in order of submission. A thread is started when all others are
/// busy. The threads end when the pool is dropped and all work is done.
///
/// Work that waits for other work of the same pool can deadlock.
#[derive(Debug)]
pub struct BlockingPool {
    name: String,
    threads_max: usize,
    shared: Arc<Shared>,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals new work or the end of the pool.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Threads that wait for work.
    idle: usize,
    closed: bool,
}

impl BlockingPool {
    /// A pool of at most that many threads (at least one), none of which is started yet.
    pub fn new(name: &str, threads_max: usize) -> BlockingPool {
        BlockingPool {
            name: name.to_owned(),
            threads_max: threads_max.max(1),
            shared: Arc::default(),
        }
    }

    /// Threads that it has started.
    pub fn threads(&self) -> usize {
        self.shared.lock().threads
    }

    /// Runs `work` on one of the threads and returns its result without blocking the task that
    /// awaits it. Dropping the future does not stop the work; only its result is lost.
    ///
    /// # Errors
    /// When the operating system cannot start a single thread, or `work` panicked.
    pub async fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (sender, receiver) = flume::bounded(1);
        self.push(Box::new(move || {
            let _ = sender.send(catching(work));
        }))?;
        ended(receiver.recv_async().await, &self.name)
    }

    /// Starts `work` on one of the threads; if the operating system cannot start a single one, runs it here.
    pub fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Pending<T> {
        let (sender, receiver) = flume::bounded(1);
        let run = move || {
            let _ = sender.send(catching(work));
        };
        let run = Arc::new(Mutex::new(Some(run)));
        let job = Arc::clone(&run);
        let take =
            |run: &Mutex<Option<_>>| run.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.push(Box::new(move || take(&job).into_iter().for_each(|run| run()))).is_err() {
            take(&run).into_iter().for_each(|run| run());
        }
        Pending { receiver, name: self.name.clone() }
    }

    fn push(&self, job: Job) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if queue.jobs.len() >= queue.idle && queue.threads < self.threads_max {
            let shared = Arc::clone(&self.shared);
            match spawn(&self.name, move || shared.work()) {
                Ok(()) => queue.threads += 1,
                Err(error) if queue.threads == 0 => return Err(error),
                Err(_) => {}
            }
        }
        queue.jobs.push_back(job);
        self.shared.changed.notify_one();
        Ok(())
    }
}

/// The result of work that was started on a [`BlockingPool`].
#[derive(Debug)]
pub struct Pending<T> {
    receiver: flume::Receiver<Result<T, String>>,
    name: String,
}

impl<T> Pending<T> {
    /// Blocks the calling thread until the result is there.
    ///
    /// # Errors
    /// When the work panicked.
    pub fn wait(self) -> io::Result<T> {
        ended(self.receiver.recv(), &self.name)
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                // A panic drops the job's sender, which its receiver reports.
                let _ = catch_unwind(AssertUnwindSafe(job));
                queue = self.lock();
            } else if queue.closed {
                return;
            } else {
                queue.idle += 1;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queue = self.lock();
        let mut debug = f.debug_struct("Shared");
        debug.field("jobs", &queue.jobs.len()).field("threads", &queue.threads).finish()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start(thread::Builder::new().name(format!("lapwing-{name}")), work)
}

#[expect(clippy::disallowed_methods, reason = "drive owns the engine's threads")]
fn start(thread: thread::Builder, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread.spawn(work).map(drop)
}

/// Runs `work`; the error is the text of its panic.
fn catching<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Nothing that the closure owns is used after a panic.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(&*panic))
}

/// The result of work, received from its thread.
fn ended<T>(received: Result<Result<T, String>, flume::RecvError>, name: &str) -> io::Result<T> {
    match received {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(text)) => Err(io::Error::other(format!("'{name}' panicked: {text}"))),
        Err(_) => Err(io::Error::other(format!("'{name}' ended without a result"))),
    }
}

#[cfg(test)]
mod tests;

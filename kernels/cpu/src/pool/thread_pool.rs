//! The thread pool of the CPU back end. The caller and `threads − 1` helpers each start with a
//! range of tasks of their own and then steal from the others; the caller returns when every task
//! has run.
//!
//! Protocol (one atomic word `gate`): generation | open | waiting | helpers inside. The caller
//! publishes the job, then opens the gate with a new generation. A helper enters by adding one to
//! an open gate, works, and leaves by subtracting one. The caller closes the gate after its own
//! share and waits until no helper is inside. A helper that arrives late finds the gate closed and
//! does not delay the caller.
#![expect(unsafe_code, reason = "jobs borrow the caller's stack")]

use super::cores::CoreSet;
use super::idle_prefetch;
use super::job::Job;
use super::task_queue::{Claim, TaskQueue};
use lapwing_model::sync::{Arc, AtomicPtr, AtomicUsize, Condvar, Mutex, Ordering, lock};
use std::panic::resume_unwind;
use std::sync::TryLockError;

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

const INSIDE: usize = 0xFFFF;
const WAITING: usize = 1 << 16;
const OPEN: usize = 1 << 17;
const STOP: usize = 1 << 18;
const GENERATION: usize = 1 << 19;
const GENERATION_MASK: usize = !(GENERATION - 1);

/// Most threads that a pool may have.
pub const THREADS_MAX: usize = 1024;

struct Shared {
    gate: AtomicUsize,
    job: AtomicPtr<Job<'static>>,
    asleep: AtomicUsize,
    sleep: Mutex<()>,
    opened: Condvar,
    emptied: Condvar,
    spins: usize,
    /// One for each thread, the caller's first.
    claims: Box<[TaskQueue]>,
}

impl Shared {
    /// Waits until the gate's generation differs from `seen`; `None` when the pool stops.
    fn next_gate(&self, seen: usize) -> Option<usize> {
        let news = |word: usize| word & GENERATION_MASK != seen || word & STOP != 0;
        let mut word =
            idle_prefetch::spin_until(self.spins, || self.gate.load(Ordering::Acquire), news);
        if !news(word) {
            let mut guard = lock(&self.sleep);
            self.asleep.fetch_add(1, Ordering::AcqRel);
            loop {
                word = self.gate.fetch_add(0, Ordering::AcqRel);
                if news(word) {
                    break;
                }
                guard = self.opened.wait(guard).unwrap_or_else(|e| e.into_inner());
            }
            self.asleep.fetch_sub(1, Ordering::AcqRel);
        }
        (word & STOP == 0).then_some(word)
    }

    /// Enters the job that `word` announces, if the gate is still open.
    fn enter(&self, mut word: usize) -> bool {
        let generation = word & GENERATION_MASK;
        while word & OPEN != 0 && word & GENERATION_MASK == generation {
            match self.gate.compare_exchange_weak(
                word,
                word + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    fn leave(&self) {
        let before = self.gate.fetch_sub(1, Ordering::AcqRel);
        if before & INSIDE == 1 && before & WAITING != 0 {
            let _guard = lock(&self.sleep);
            self.emptied.notify_all();
        }
    }

    fn help(&self, thread: usize) {
        let mut seen = 0;
        while let Some(word) = self.next_gate(seen) {
            seen = word & GENERATION_MASK;
            if self.enter(word) {
                let job = self.job.load(Ordering::Acquire);
                // SAFETY: this helper is counted inside the gate, and the caller keeps the job
                // alive until the gate is closed and empty (`close`).
                unsafe { (*job).work(thread) };
                self.leave();
            }
        }
    }

    fn open(&self, job: *mut Job<'static>) {
        self.job.store(job, Ordering::Release);
        // Only the caller changes a closed, empty gate.
        let word = self.gate.load(Ordering::Relaxed) & GENERATION_MASK;
        self.gate.swap(word.wrapping_add(GENERATION) | OPEN, Ordering::AcqRel);
        if self.asleep.fetch_add(0, Ordering::AcqRel) > 0 {
            let _guard = lock(&self.sleep);
            self.opened.notify_all();
        }
    }

    fn close(&self) {
        let is_empty = |word: usize| word & INSIDE == 0;
        if is_empty(self.gate.fetch_and(!OPEN, Ordering::AcqRel)) {
            return;
        }
        let times = self.spins.saturating_mul(4);
        if is_empty(idle_prefetch::spin_until(
            times,
            || self.gate.load(Ordering::Acquire),
            is_empty,
        )) {
            return;
        }
        let mut guard = lock(&self.sleep);
        while self.gate.fetch_or(WAITING, Ordering::AcqRel) & INSIDE != 0 {
            guard = self.emptied.wait(guard).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// Closes the gate even if the caller's own share unwinds.
struct CloseOnDrop<'a>(&'a Shared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A fixed set of threads that run numbered tasks. A `run` inside a task, or from a second
/// thread while a job is in flight, runs its tasks on its own caller.
pub struct Pool {
    shared: Arc<Shared>,
    turn: Mutex<()>,
    helpers: Vec<thread::JoinHandle<()>>,
    /// The cores that the threads are pinned to, and the number of threads asked for.
    pub(super) pinned: Option<(CoreSet, usize)>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish()
    }
}

/// How often a waiting thread polls before it parks: often if a core is free for it, less often if
/// the pool uses all cores, never if it has more threads than cores.
fn spins(threads: usize, pinned: Option<&CoreSet>) -> usize {
    if cfg!(loom) || pinned.is_some_and(|cores| threads > cores.cores().len()) {
        return 0;
    }
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    match threads.cmp(&cores) {
        std::cmp::Ordering::Less => 20_000,
        std::cmp::Ordering::Equal => 4_000,
        std::cmp::Ordering::Greater => 0,
    }
}

impl Pool {
    /// A pool of `threads` (clamped to 1 … [`THREADS_MAX`]) including the caller. If the system
    /// refuses a thread, the pool has fewer; [`Pool::threads`] returns the number.
    pub fn new(threads: usize) -> Pool {
        Pool::start(threads.clamp(1, THREADS_MAX), None)
    }

    /// A pool of that many threads, pinned to `cores` if there are any.
    pub(super) fn start(threads: usize, cores: Option<CoreSet>) -> Pool {
        let shared = Arc::new(Shared {
            gate: AtomicUsize::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            asleep: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            opened: Condvar::new(),
            emptied: Condvar::new(),
            spins: spins(threads, cores.as_ref()),
            claims: (0..threads).map(|_| TaskQueue::none()).collect(),
        });
        let own = |i| cores.as_ref().map(|cores| cores.of_thread(i, threads));
        let helpers = (1..threads).map_while(|i| start_helper(i, own(i), shared.clone())).collect();
        let pinned = cores.map(|cores| (cores, threads));
        Pool { shared, turn: Mutex::new(()), helpers, pinned }
    }

    /// Threads that work on a job, the caller included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Number of jobs that the helpers have been called for. Jobs of a single task, and jobs inside
    /// other jobs, run on their caller and do not count.
    pub fn dispatches(&self) -> usize {
        (self.shared.gate.load(Ordering::Relaxed) & GENERATION_MASK) / GENERATION
    }

    /// Runs `task(0) … task(tasks − 1)`, each once, in any order and on any thread; returns when
    /// all have ended.
    ///
    /// # Panics
    /// With the payload of the first task that panicked. Unclaimed tasks are then dropped, and the
    /// pool stays usable.
    pub fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.run_claimed(tasks, 1, &|claim| claim.tasks.clone().for_each(task));
    }

    /// As [`Pool::run`], with up to `max_claim` consecutive tasks per call.
    pub(crate) fn run_claimed(
        &self,
        tasks: usize,
        max_claim: usize,
        task: &(dyn Fn(&Claim) + Sync),
    ) {
        if tasks > 1 && !self.helpers.is_empty() {
            let _turn = match self.turn.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(e)) => e.into_inner(),
                Err(TryLockError::WouldBlock) => return alone(tasks, max_claim, task),
            };
            return self.run_shared(tasks, max_claim, task);
        }
        alone(tasks, max_claim, task);
    }

    fn run_shared(&self, tasks: usize, max_claim: usize, task: &(dyn Fn(&Claim) + Sync)) {
        let claims = &self.shared.claims[..self.threads().min(tasks)];
        TaskQueue::divide(claims, tasks);
        let job = Job { task, claims, max_claim, panic: Mutex::new(None) };
        {
            let _close = CloseOnDrop(&self.shared);
            self.shared.open((&raw const job).cast_mut().cast());
            job.work(0);
        }
        let payload = lock(&job.panic).take();
        if let Some(payload) = payload {
            resume_unwind(payload);
        }
    }
}

/// Runs all tasks on this thread.
fn alone(tasks: usize, max_claim: usize, task: &(dyn Fn(&Claim) + Sync)) {
    for start in (0..tasks).step_by(max_claim) {
        task(&Claim { thread: 0, tasks: start..tasks.min(start + max_claim), end: tasks });
    }
}

fn start_helper(
    index: usize,
    cores: Option<CoreSet>,
    shared: Arc<Shared>,
) -> Option<thread::JoinHandle<()>> {
    let help = move || {
        // Fails only if a core has gone since the check: the thread then runs on any.
        let _pinned = cores.map(|cores| cores.pin_this_thread());
        shared.help(index);
    };
    #[cfg(loom)]
    return Some(thread::spawn(help));
    #[cfg(not(loom))]
    {
        #[expect(clippy::disallowed_methods, reason = "this module owns the pool's threads")]
        let handle = thread::Builder::new().name(format!("lapwing-cpu-{index}")).spawn(help);
        handle.ok()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.gate.fetch_or(STOP, Ordering::AcqRel);
        {
            let _guard = lock(&self.shared.sleep);
            self.shared.opened.notify_all();
        }
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}

#[cfg(all(test, loom))]
mod interleavings;

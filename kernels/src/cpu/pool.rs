//! The one thread pool of the CPU back end: the caller and `threads − 1` helpers claim
//! task numbers from a counter; the caller leaves when every task has run.
//!
//! Protocol (one atomic word `gate`): generation | open | waiting | helpers inside.
//! The caller publishes the job, then opens the gate with a new generation. A helper
//! enters by adding one to an open gate, works, and leaves by subtracting one. The caller
//! closes the gate after its own share and waits until nobody is inside; a helper that
//! comes late finds it closed and does not hold up the caller.
#![expect(
    unsafe_code,
    reason = "jobs borrow the caller's stack, and tasks write disjoint parts of one slice"
)]

mod cuts;

pub(crate) use cuts::Cut;

use crate::sync::{Arc, AtomicPtr, AtomicUsize, Condvar, Mutex, Ordering, lock, spin_loop};
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    tasks: usize,
    next: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job<'_> {
    fn work(&self) {
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.tasks {
                return;
            }
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.task)(i))) {
                self.next.store(self.tasks, Ordering::Relaxed);
                lock(&self.panic).get_or_insert(payload);
                return;
            }
        }
    }
}

struct Shared {
    gate: AtomicUsize,
    job: AtomicPtr<Job<'static>>,
    asleep: AtomicUsize,
    sleep: Mutex<()>,
    opened: Condvar,
    emptied: Condvar,
    spins: usize,
}

impl Shared {
    /// Waits for a gate of another generation than `seen`; `None` when the pool stops.
    fn next_gate(&self, seen: usize) -> Option<usize> {
        let news = |word: usize| word & GENERATION_MASK != seen || word & STOP != 0;
        let mut word = self.gate.load(Ordering::Acquire);
        for _ in 0..self.spins {
            if news(word) {
                break;
            }
            spin_loop();
            word = self.gate.load(Ordering::Acquire);
        }
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

    fn help(&self) {
        let mut seen = 0;
        while let Some(word) = self.next_gate(seen) {
            seen = word & GENERATION_MASK;
            if self.enter(word) {
                let job = self.job.load(Ordering::Acquire);
                // SAFETY: this helper is counted inside the gate, and the caller keeps the
                // job alive until the gate is closed and empty (`close`).
                unsafe { (*job).work() };
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
        let mut word = self.gate.fetch_and(!OPEN, Ordering::AcqRel) & !OPEN;
        for _ in 0..self.spins.saturating_mul(4) {
            if word & INSIDE == 0 {
                return;
            }
            spin_loop();
            word = self.gate.load(Ordering::Acquire);
        }
        let mut guard = lock(&self.sleep);
        while self.gate.fetch_or(WAITING, Ordering::AcqRel) & INSIDE != 0 {
            guard = self.emptied.wait(guard).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// Closes the gate even when the caller's own share unwinds.
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
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish()
    }
}

/// How often a waiting thread looks before it parks: long when a core is free for it,
/// short when the pool fills the machine, never when it is larger than the machine.
fn spins(threads: usize) -> usize {
    if cfg!(loom) {
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
    /// A pool of `threads` (1 to [`THREADS_MAX`], clamped) including the caller. When the
    /// system refuses a thread, the pool has fewer; [`Pool::threads`] says how many.
    pub fn new(threads: usize) -> Pool {
        let threads = threads.clamp(1, THREADS_MAX);
        let shared = Arc::new(Shared {
            gate: AtomicUsize::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            asleep: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            opened: Condvar::new(),
            emptied: Condvar::new(),
            spins: spins(threads),
        });
        let helpers = (1..threads).map_while(|i| start_helper(i, shared.clone())).collect();
        Pool { shared, turn: Mutex::new(()), helpers }
    }

    /// Threads that work on a job, the caller included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// How often its helpers have been called so far. Jobs of a single task, or inside others, run
    /// on their caller.
    pub fn dispatches(&self) -> usize {
        (self.shared.gate.load(Ordering::Relaxed) & GENERATION_MASK) / GENERATION
    }

    /// Runs `task(0) … task(tasks − 1)`, each once, in any order and on any thread, and
    /// returns when all have ended.
    ///
    /// # Panics
    /// With the payload of the first task that panicked; tasks not yet begun are then left
    /// out, and the pool stays usable.
    pub fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if tasks > 1 && !self.helpers.is_empty() {
            let _turn = match self.turn.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(e)) => e.into_inner(),
                Err(TryLockError::WouldBlock) => return (0..tasks).for_each(task),
            };
            return self.run_shared(tasks, task);
        }
        (0..tasks).for_each(task);
    }

    fn run_shared(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let job = Job { task, tasks, next: AtomicUsize::new(0), panic: Mutex::new(None) };
        {
            let _close = CloseOnDrop(&self.shared);
            self.shared.open((&raw const job).cast_mut().cast());
            job.work();
        }
        let payload = lock(&job.panic).take();
        if let Some(payload) = payload {
            resume_unwind(payload);
        }
    }

    /// Calls `f(index, chunk)` for every chunk of `chunk_len` values of `data` (the last
    /// may be shorter), in parallel.
    pub fn chunks_mut<T: Send>(
        &self,
        data: &mut [T],
        chunk_len: usize,
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let (len, chunk_len) = (data.len(), chunk_len.max(1));
        let base = Base(data.as_mut_ptr());
        self.run(len.div_ceil(chunk_len), &|i| {
            let start = i * chunk_len;
            // SAFETY: chunk `i` lies inside `data`, chunks do not overlap, and each task
            // number is run once, so that this is the only reference to it.
            let chunk = unsafe {
                std::slice::from_raw_parts_mut(base.get().add(start), chunk_len.min(len - start))
            };
            f(i, chunk);
        });
    }

    /// Calls `f(index, part)` for parts `picks[0]`, `picks[1]`, … of `data`, each of `part_len`
    /// values, in parallel.
    ///
    /// # Panics
    /// When a part is picked twice or lies outside `data`.
    pub fn picks_mut<T: Send>(
        &self,
        data: &mut [T],
        part_len: usize,
        picks: &[u32],
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let parts = data.len().checked_div(part_len).unwrap_or(0);
        for (i, pick) in picks.iter().enumerate() {
            assert!((*pick as usize) < parts, "part {pick} of {parts}");
            assert!(!picks[..i].contains(pick), "part {pick} is picked twice");
        }
        let base = Base(data.as_mut_ptr());
        self.run(picks.len(), &|i| {
            // SAFETY: the part lies inside `data`, no two picks are equal, and each task number
            // is run once, so that this is the only reference to it.
            let part = unsafe {
                std::slice::from_raw_parts_mut(
                    base.get().add(picks[i] as usize * part_len),
                    part_len,
                )
            };
            f(i, part);
        });
    }

    /// Cuts the row-major matrix `data` (rows of `row_len`) into blocks of `col_chunk`
    /// columns and calls `f(first column, block)` for each, in parallel. Values after the
    /// last whole row are left alone.
    pub fn columns_mut<T: Send>(
        &self,
        data: &mut [T],
        row_len: usize,
        col_chunk: usize,
        f: impl Fn(usize, ColumnBlock<'_, T>) + Sync,
    ) {
        let rows = data.len().checked_div(row_len).unwrap_or(0);
        let all = 0..rows;
        let row_blocks = std::slice::from_ref(&all);
        let cut = Grid { row_len, row_blocks, col_chunk };
        self.grid_mut(data, &cut, |_, col, block| f(col, block));
    }

    /// As [`Pool::columns_mut`], for each row block of `grid` apart: calls
    /// `f(index of the row block, first column, block)`. The last row block is begun first.
    ///
    /// # Panics
    /// When the row blocks are not ascending and disjoint, or not rows of `data`.
    pub fn grid_mut<T: Send>(
        &self,
        data: &mut [T],
        grid: &Grid<'_>,
        f: impl Fn(usize, usize, ColumnBlock<'_, T>) + Sync,
    ) {
        let Grid { row_len, row_blocks, col_chunk } = *grid;
        let Some(rows) = data.len().checked_div(row_len) else {
            return;
        };
        let mut end = 0;
        for block in row_blocks {
            let ordered = end <= block.start && block.start <= block.end && block.end <= rows;
            assert!(ordered, "row block {block:?} after row {end} of {rows}");
            end = block.end;
        }
        let col_chunk = col_chunk.clamp(1, row_len);
        let col_blocks = row_len.div_ceil(col_chunk);
        let base = Base(data.as_mut_ptr());
        self.run(row_blocks.len() * col_blocks, &|i| {
            let index = row_blocks.len() - 1 - i / col_blocks;
            let (rows, start) = (&row_blocks[index], i % col_blocks * col_chunk);
            let block = ColumnBlock {
                // SAFETY: `rows` lies inside `data`, as checked above.
                base: unsafe { base.get().add(rows.start * row_len) },
                rows: rows.len(),
                row_len,
                start,
                width: col_chunk.min(row_len - start),
                data: PhantomData,
            };
            f(index, start, block);
        });
    }
}

fn start_helper(index: usize, shared: Arc<Shared>) -> Option<thread::JoinHandle<()>> {
    #[cfg(loom)]
    return Some(thread::spawn(move || {
        let _ = index;
        shared.help();
    }));
    #[cfg(not(loom))]
    {
        #[expect(clippy::disallowed_methods, reason = "this module owns the pool's threads")]
        let handle = thread::Builder::new()
            .name(format!("lapwing-cpu-{index}"))
            .spawn(move || shared.help());
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

/// A pointer that tasks may share because they use disjoint parts of what it points to.
struct Base<T>(*mut T);

impl<T> Base<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: the tasks make `&mut` to disjoint parts only, and `T: Send` lets those cross
// threads.
unsafe impl<T: Send> Sync for Base<T> {}

/// How a row-major matrix is cut into blocks.
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a> {
    /// Values per row.
    pub row_len: usize,
    /// Rows of each block, ascending and disjoint.
    pub row_blocks: &'a [Range<usize>],
    /// Columns of each block; the last may have fewer.
    pub col_chunk: usize,
}

/// Some columns of some rows of a row-major matrix; no other block has any of them.
#[derive(Debug)]
pub struct ColumnBlock<'a, T> {
    base: *mut T,
    rows: usize,
    row_len: usize,
    start: usize,
    width: usize,
    data: PhantomData<&'a mut [T]>,
}

impl<T> ColumnBlock<'_, T> {
    /// Rows in this block.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns in this block.
    pub fn width(&self) -> usize {
        self.width
    }

    /// First column of this block.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// This block's part of row `row`.
    ///
    /// # Panics
    /// When `row` is not below [`ColumnBlock::rows`].
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: `row` is in range, so the slice lies inside the matrix; this block is the
        // only one with these rows and columns, and `&mut self` lets one row of it be borrowed.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.add(row * self.row_len + self.start),
                self.width,
            )
        }
    }
}

#[cfg(all(test, loom))]
mod interleavings {
    use super::*;

    fn every_task_runs_once(jobs: usize, threads: usize, preemptions: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let pool = Pool::new(threads);
            for _ in 0..jobs {
                let ran = [const { std::sync::atomic::AtomicUsize::new(0) }; 2];
                pool.run(2, &|i| {
                    ran[i].fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                });
                for r in &ran {
                    assert_eq!(r.load(std::sync::atomic::Ordering::SeqCst), 1);
                }
            }
        });
    }

    #[test]
    fn a_job_ends_and_its_borrow_with_it() {
        every_task_runs_once(1, 2, 3);
    }

    #[test]
    fn a_late_helper_cannot_touch_the_next_job() {
        every_task_runs_once(2, 2, 3);
    }

    #[test]
    fn two_helpers_park_and_wake() {
        every_task_runs_once(1, 3, 2);
    }
}

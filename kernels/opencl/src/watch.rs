//! A thread that wakes the device's own at intervals while a run is under way: some drivers never
//! report the end of a command.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::session::{Event, EventState};
use lapwing_model::device::Notify;

/// Intervals without a run after which the thread waits for one: waking it costs more than a short run.
const AWAKE: u32 = 200;

/// Interval of the wake-ups.
pub(super) const INTERVAL: Duration = Duration::from_millis(5);

#[derive(Default)]
struct State {
    notify: Option<Notify>,
    /// The end of the oldest run under way, until someone has been told of it.
    oldest: Option<Arc<Event>>,
    /// Runs under way.
    running: usize,
    /// Whole intervals since a run was submitted or completed.
    quiet: u32,
    /// Whether the thread waits until it is told of a run.
    is_asleep: bool,
    /// Added to those intervals, by tests.
    base: Duration,
    closed: bool,
}

/// What the device and the thread share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a thread while runs are under way.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    #[expect(clippy::disallowed_methods, reason = "a device that no event may wake")]
    pub(super) fn start() -> std::io::Result<Watch> {
        let shared: Arc<Shared> = Arc::default();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("lapwing-opencl-watch".to_owned())
            .spawn(move || watch(&of_thread))?;
        Ok(Watch { shared, thread: Some(thread) })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.lock());
        self.shared.changed.notify_one();
    }

    /// Sets the function to call.
    pub(super) fn set_notify(&self, notify: Notify) {
        self.change(|state| state.notify = Some(notify));
    }

    /// What tells the device's thread of the end of the oldest run if it has ended.
    pub(super) fn completion_probe(&self) -> Notify {
        let shared = Arc::clone(&self.shared);
        Arc::new(move || {
            let mut state = shared.lock();
            let has_ended = |event: &Arc<Event>| event.state() != EventState::Pending;
            if state.oldest.as_ref().is_some_and(has_ended) {
                state.oldest = None;
                let notify = state.notify.clone();
                drop(state);
                notify.iter().for_each(|notify| notify());
            }
        })
    }

    /// Records the number of runs under way, and the end of the oldest.
    pub(super) fn set_running(&self, running: usize, oldest: Option<Arc<Event>>) {
        let mut state = self.shared.lock();
        state.running = running;
        state.oldest = oldest;
        state.quiet = 0;
        let is_asleep = state.is_asleep;
        drop(state);
        if is_asleep && running > 0 {
            self.shared.changed.notify_one();
        }
    }

    /// Pretends that nothing has happened for a while.
    #[cfg(test)]
    pub(super) fn set_quiet(&self, time: Duration) {
        self.change(|state| state.base = time);
    }

    /// Time without a submission or completion, while runs are under way.
    pub(super) fn quiet(&self) -> Duration {
        let state = self.shared.lock();
        state.base + INTERVAL * state.quiet
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.change(|state| state.closed = true);
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

fn watch(shared: &Shared) {
    let mut state = shared.lock();
    let mut idle = 0;
    while !state.closed {
        if state.running == 0 && idle >= AWAKE {
            state.is_asleep = true;
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_asleep = false;
            idle = 0;
            continue;
        }
        let waited = shared.changed.wait_timeout(state, INTERVAL);
        let timeout;
        (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if !timeout.timed_out() {
            continue;
        }
        if state.running == 0 {
            idle += 1;
            continue;
        }
        idle = 0;
        state.quiet += 1;
        let notify = state.notify.clone();
        drop(state);
        notify.iter().for_each(|notify| notify());
        state = shared.lock();
    }
}

//! State of the layer: shared by all threads, and local to each thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::event::{LaneId, LaneKind, NameId, SpanId};
use crate::recorder::{Recorder, Writer};

/// Distinct messages of events that become names; the limit leaves room for other names.
const TEXTS_MAX: usize = 1024;

thread_local! {
    /// Local state of this thread for every layer used on it.
    static LOCALS: RefCell<Vec<Local>> = const { RefCell::new(Vec::new()) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the layer must not be entered: this thread is ending, or is in the layer already. A
/// clock may itself use `tracing`, and the span data that is locked then must not be touched.
pub(super) fn is_closed() -> bool {
    LOCALS.try_with(|locals| locals.try_borrow_mut().is_err()).unwrap_or(true)
}

/// State shared by all threads.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) recorder: Recorder,
    /// Name of messages to a span first entered on another thread.
    pub(super) spawn: NameId,
    /// Name of messages to a span that follows another.
    pub(super) follows: NameId,
    threads: AtomicU64,
    /// Numbers in use for each thread name.
    taken: Mutex<HashMap<String, Vec<bool>>>,
    counters: Mutex<HashMap<&'static str, (NameId, LaneId)>>,
    texts: Mutex<HashMap<String, NameId>>,
}

impl Shared {
    pub(super) fn new(recorder: Recorder) -> Arc<Shared> {
        Arc::new(Shared {
            spawn: recorder.name("spawn"),
            follows: recorder.name("follows"),
            recorder,
            threads: AtomicU64::new(0),
            taken: Mutex::default(),
            counters: Mutex::default(),
            texts: Mutex::default(),
        })
    }

    /// Whether nothing has been recorded.
    pub(super) fn is_unused(&self) -> bool {
        self.threads.load(Ordering::Relaxed) == 0
    }

    /// Calls `f` with this thread's state, creating it if necessary. `None` if the layer [must not
    /// be entered](is_closed).
    pub(super) fn with_local<T>(self: &Arc<Self>, f: impl FnOnce(&mut Local) -> T) -> Option<T> {
        let call = |locals: &mut Vec<Local>| {
            let known = locals.iter().position(|local| local.is_of(self));
            let at = known.unwrap_or_else(|| {
                locals.retain(|local| local.layer.strong_count() > 0);
                locals.push(Local::new(self));
                locals.len() - 1
            });
            f(&mut locals[at])
        };
        LOCALS.try_with(|locals| locals.try_borrow_mut().ok().map(|mut l| call(&mut l))).ok()?
    }

    /// Calls `f` with this thread's state, if it exists.
    pub(super) fn if_local<T>(
        self: &Arc<Self>,
        f: impl FnOnce(&mut Local) -> Option<T>,
    ) -> Option<T> {
        let call = |locals: &mut Vec<Local>| f(locals.iter_mut().find(|l| l.is_of(self))?);
        LOCALS
            .try_with(|locals| locals.try_borrow_mut().ok().and_then(|mut l| call(&mut l)))
            .ok()?
    }

    /// Name and lane of a counter; `here` gives the lane of a new counter.
    pub(super) fn counter(
        &self,
        counter: &'static str,
        here: impl FnOnce() -> LaneId,
    ) -> (NameId, LaneId) {
        let mut counters = lock(&self.counters);
        *counters.entry(counter).or_insert_with(|| (self.recorder.name(counter), here()))
    }

    /// Name of a mark: the message, or the place in the program if the message is empty or there
    /// are too many distinct messages.
    pub(super) fn text(&self, text: &str, place: &str) -> NameId {
        if text.is_empty() {
            return self.recorder.name(place);
        }
        let mut texts = lock(&self.texts);
        if let Some(known) = texts.get(text) {
            return *known;
        }
        if texts.len() == TEXTS_MAX {
            return self.recorder.name(place);
        }
        let name = self.recorder.name(text);
        texts.insert(text.to_owned(), name);
        name
    }

    fn take_name(&self, name: &str) -> usize {
        let mut taken = lock(&self.taken);
        let numbers = taken.entry(name.to_owned()).or_default();
        let free = numbers.iter().position(|taken| !taken).unwrap_or(numbers.len());
        numbers.resize(numbers.len().max(free + 1), true);
        numbers[free] = true;
        free
    }

    fn give_back(&self, name: &str, number: usize) {
        let mut taken = lock(&self.taken);
        if let Some(numbers) = taken.get_mut(name) {
            numbers[number] = false;
            if !numbers.contains(&true) {
                taken.remove(name);
            }
        }
    }
}

/// A visit of a span that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenVisit {
    /// The program's id of the span.
    pub(super) id: u64,
    pub(super) span: SpanId,
    pub(super) lane: LaneId,
}

/// State of one thread for one layer.
#[derive(Debug)]
pub(super) struct Local {
    layer: Weak<Shared>,
    pub(super) writer: Writer,
    /// Number of the thread.
    pub(super) thread: u64,
    /// The thread's lane, its name, and its number among threads of that name.
    lane: Option<(LaneId, String, usize)>,
    open: Vec<OpenVisit>,
}

impl Local {
    fn new(shared: &Arc<Shared>) -> Local {
        Local {
            layer: Arc::downgrade(shared),
            writer: shared.recorder.writer(),
            thread: shared.threads.fetch_add(1, Ordering::Relaxed),
            lane: None,
            open: Vec::new(),
        }
    }

    fn is_of(&self, shared: &Arc<Shared>) -> bool {
        std::ptr::eq(self.layer.as_ptr(), Arc::as_ptr(shared))
    }

    /// The innermost visit.
    pub(super) fn top(&self) -> Option<OpenVisit> {
        self.open.last().copied()
    }

    pub(super) fn push(&mut self, visit: OpenVisit) {
        self.open.push(visit);
    }

    /// Ends the innermost visit of that span. Visits may end in any order.
    pub(super) fn pop(&mut self, id: u64) -> Option<OpenVisit> {
        let at = self.open.iter().rposition(|visit| visit.id == id)?;
        Some(self.open.remove(at))
    }

    /// The thread's lane.
    pub(super) fn lane(&mut self, shared: &Shared) -> LaneId {
        if let Some((lane, ..)) = &self.lane {
            return *lane;
        }
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("thread").to_owned();
        let number = shared.take_name(&name);
        let numbered = format!("{name} {}", number + 1);
        let shown = if number == 0 && thread.name().is_some() { &name } else { &numbered };
        let lane = shared.recorder.lane(shown, LaneKind::Thread);
        self.lane = Some((lane, name, number));
        lane
    }

    /// The lane of the innermost visit, or else the thread's lane.
    pub(super) fn lane_here(&mut self, shared: &Shared) -> LaneId {
        self.top().map_or_else(|| self.lane(shared), |top| top.lane)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if let (Some(shared), Some((_, name, number))) = (self.layer.upgrade(), &self.lane) {
            shared.give_back(name, *number);
        }
    }
}

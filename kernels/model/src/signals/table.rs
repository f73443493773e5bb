//! The handlers of all signals, and who installed them.
#![expect(unsafe_code, reason = "reads and sets the handlers of signals")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::objects;

/// Numbers that signals may have. The system refuses those that it has not, or that the C library keeps for itself.
const NUMBERS: Range<i32> = 1..65;

/// What is known of the signals of this process.
static TABLE: Mutex<Table> = Mutex::new(Table {
    calls: 0,
    program: Vec::new(),
    drivers: Vec::new(),
    kept: [None; NUMBERS.end as usize],
});

/// The signals of this process.
pub(super) fn lock() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handlers of all signals.
pub(super) struct Table {
    /// Calls of drivers in progress.
    calls: usize,
    /// Code of the program and of its libraries, which were not loaded during a call of a driver.
    program: Vec<Range<usize>>,
    /// Code of the others.
    drivers: Vec<Range<usize>>,
    /// The program's own handler of each signal, by its number.
    kept: [Option<Handler>; NUMBERS.end as usize],
}

/// What happens at a signal: a function, or what the system does by itself.
#[derive(Clone, Copy)]
struct Handler(libc::sigaction);

impl Handler {
    /// That of a signal. `None` if there is no such signal.
    fn of(signal: i32) -> Option<Handler> {
        let mut old = MaybeUninit::uninit();
        // SAFETY: nothing is set, and the pointer is valid for the call.
        let code = unsafe { libc::sigaction(signal, ptr::null(), old.as_mut_ptr()) };
        // SAFETY: the system has filled it in.
        (code == 0).then(|| Handler(unsafe { old.assume_init() }))
    }

    /// Gives it to a signal. Returns the handler that it had; `None` if the system refuses it.
    fn set(&self, signal: i32) -> Option<Handler> {
        let mut old = MaybeUninit::uninit();
        // SAFETY: the signal had this handler, and its code is the program's, which is not unloaded; both pointers are
        // valid for the call.
        let code = unsafe { libc::sigaction(signal, &raw const self.0, old.as_mut_ptr()) };
        // SAFETY: the system has filled it in.
        (code == 0).then(|| Handler(unsafe { old.assume_init() }))
    }

    fn is(&self, other: &Handler) -> bool {
        (self.0.sa_sigaction, self.0.sa_flags) == (other.0.sa_sigaction, other.0.sa_flags)
    }

    /// Whether it is a function in this code.
    fn is_in(&self, code: &[Range<usize>]) -> bool {
        code.iter().any(|range| range.contains(&self.0.sa_sigaction))
    }
}

impl Table {
    /// A call of a driver begins: what is there now is the program's, except for what drivers have left behind.
    pub(super) fn begin(&mut self) {
        self.calls += 1;
        let is_first = self.calls == 1;
        if is_first {
            let code = objects::code().into_iter();
            self.program = code.filter(|range| !self.drivers.contains(range)).collect();
        }
        for signal in NUMBERS {
            let Some(now) = Handler::of(signal) else { continue };
            let kept = &mut self.kept[signal as usize];
            match kept {
                Some(own) if is_first && now.is_in(&self.drivers) => _ = own.set(signal),
                // Beside another call, only what has code is known to be the program's.
                _ if is_first || now.is_in(&self.program) => *kept = Some(now),
                _ => {}
            }
        }
    }

    /// A call of a driver has ended: what it has changed is undone.
    pub(super) fn end(&mut self) {
        let code = objects::code().into_iter();
        self.drivers = code.filter(|range| !self.program.contains(range)).collect();
        for signal in NUMBERS {
            let kept = &mut self.kept[signal as usize];
            let (Some(now), Some(own)) = (Handler::of(signal), *kept) else { continue };
            if now.is(&own) {
                continue;
            }
            let newer = match now.is_in(&self.program) {
                true => Some(now),
                // Another thread of the program may have installed one just now.
                false => own.set(signal).filter(|old| old.is_in(&self.program)).inspect(|old| {
                    old.set(signal);
                }),
            };
            *kept = newer.or(*kept);
        }
        self.calls -= 1;
    }
}

//! Signal handlers of the program, and those that drivers install in their place.
//!
//! A driver may install handlers when it is loaded, opens a device or compiles: LLVM, which many drivers contain, takes
//! SIGTERM, SIGINT, all faults and some more. Each copy of it calls the handler that it found, so those of two drivers are
//! nested on the small stack that a thread has for signals, and can end the process. [`keep`] undoes what a driver changed. A handler
//! that the program itself installs at the same time stays: the library that contains a handler's code tells whose it is.

#[cfg(unix)]
mod objects;
#[cfg(unix)]
mod table;

/// Calls a driver. Afterwards each signal has the handler that it had before, or a newer one of the program's own. Handlers
/// that a driver has installed since the last such call, on a thread of its own, go as well.
///
/// If the program has a signal ignored, or gives it the system's default, during such a call, this is undone too: it has no code that
/// tells where it came from. So is every change during such a call where the system does not list the libraries of a
/// process (other than Linux and Android).
pub fn keep<T>(call: impl FnOnce() -> T) -> T {
    let _call = DriverCall::begin();
    call()
}

/// A call of a driver. Its end restores the handlers, also after a panic.
struct DriverCall;

#[cfg(unix)]
impl DriverCall {
    fn begin() -> DriverCall {
        table::lock().begin();
        DriverCall
    }
}

#[cfg(unix)]
impl Drop for DriverCall {
    fn drop(&mut self) {
        table::lock().end();
    }
}

#[cfg(not(unix))]
impl DriverCall {
    fn begin() -> DriverCall {
        DriverCall
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;

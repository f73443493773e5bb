//! The end of commands.

use std::ffi::c_void;
use std::sync::Arc;

use cl3::event;
use cl3::types::cl_int;

use super::Handle;

/// The state of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventState {
    Pending,
    Complete,
    /// The command failed, with a code of the specification.
    Failed(i32),
}

/// The end of the commands before it.
#[derive(Debug)]
pub(crate) struct Event(pub(super) Handle);

type Callback = dyn Fn() + Send + Sync;

/// Called by the driver on a thread of its own, inside [`Event::on_end`], or never.
extern "C" fn ended(_event: *mut c_void, _status: cl_int, data: *mut c_void) {
    // SAFETY: `data` is the box that `on_end` leaked for this one call.
    let callback = unsafe { Box::from_raw(data.cast::<Arc<Callback>>()) };
    // A panic must not reach the driver.
    _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&**callback));
}

impl Event {
    /// Its state.
    pub(crate) fn state(&self) -> EventState {
        let status = event::CL_EVENT_COMMAND_EXECUTION_STATUS;
        match event::get_event_info(self.0.object, status).map(i32::from) {
            Ok(0) => EventState::Complete,
            Ok(code) if code < 0 => EventState::Failed(code),
            Ok(_) => EventState::Pending,
            Err(code) => EventState::Failed(code),
        }
    }

    /// Waits for it. What its commands have written is visible to the host afterwards, also in memory that both use in
    /// place: reading the state alone is no synchronisation point (OpenCL specification, `clGetEventInfo`).
    pub(crate) fn wait(&self) -> Result<(), i32> {
        event::wait_for_events(&[self.0.object])
    }

    /// Registers a function for the event's end. Drivers differ: some call it at once, on this
    /// thread, if the event has ended, and some never call it then, or after a failure.
    pub(crate) fn on_end(&self, callback: Arc<Callback>) -> Result<(), i32> {
        let data = Box::into_raw(Box::new(callback)).cast();
        let set = event::set_event_callback(self.0.object, event::CL_COMPLETE, ended, data);
        if set.is_err() {
            // SAFETY: the driver did not take the box.
            drop(unsafe { Box::from_raw(data.cast::<Arc<Callback>>()) });
        }
        set
    }

    /// The time at which it ended, in nanoseconds of the device's clock; `None` without one.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        self.time_ns(event::CL_PROFILING_COMMAND_END)
    }

    /// The time at which it was added to its queue, in nanoseconds of the device's clock.
    pub(crate) fn queued_ns(&self) -> Option<u64> {
        self.time_ns(event::CL_PROFILING_COMMAND_QUEUED)
    }

    fn time_ns(&self, which: u32) -> Option<u64> {
        let time = event::get_event_profiling_info(self.0.object, which);
        time.ok().map(u64::from).filter(|ns| *ns != 0)
    }
}

//! Context, queues and buffers of one device.
//!
//! Objects are released when they are dropped; a release that fails is ignored, because it fails
//! only after the device is lost.
#![expect(unsafe_code, reason = "calls a C library")]

mod buffers;
mod copies;
mod event;
mod launches;
mod persistent;
mod programs;
mod shared;

use std::ffi::c_void;
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cl3::types::cl_int;
use cl3::{OpenClRuntime, command_queue, context};

use super::discovery::OpenClInfo;
use super::error::OpenClError;
pub(super) use buffers::Buffer;
pub(super) use event::{Event, EventState};
use lapwing_model::signals;
pub(super) use launches::{Arg, Kernel, Range};
pub(super) use persistent::{HEAD_WORDS, OP_WORDS, Persistent, PersistentOp};
pub(super) use shared::{Copier, Marker, SharedBuffer, SharedSlot};

/// An object of the library and the function that releases it.
struct Handle {
    object: *mut c_void,
    release: unsafe fn(*mut c_void) -> Result<(), cl_int>,
}

// SAFETY: the library's objects may be used from any thread; kernels, whose arguments are state, are
// used through `&mut`.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the object is alive, and this handle owns one reference to it.
        _ = unsafe { (self.release)(self.object) };
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.object)
    }
}

/// One of the two queues of a session. Commands of a queue run in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Kernels, and the copies that are part of a run.
    Compute,
    /// Copies for the host beside the runs.
    Transfer,
}

/// A context on one device, with its queues. Several sessions may share them, each with a persistent kernel of its own.
pub(super) struct Session {
    info: OpenClInfo,
    library: &'static OpenClRuntime,
    context: Arc<Handle>,
    compute: Arc<Handle>,
    transfer: Arc<Handle>,
    persistent: Mutex<Option<Persistent>>,
    /// Whether the queues make no progress any more, or commands have failed.
    lost: Arc<AtomicBool>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("device", &self.info.name).finish_non_exhaustive()
    }
}

/// A compiled program.
#[derive(Debug)]
pub(super) struct Program(Handle);

impl Session {
    /// Opens a device.
    pub(super) fn open(info: &OpenClInfo) -> Result<Arc<Session>, OpenClError> {
        signals::keep(|| Session::open_now(info))
    }

    fn open_now(info: &OpenClInfo) -> Result<Arc<Session>, OpenClError> {
        let Ok(library) = cl3::load_library() else { return Err(OpenClError::NoLibrary) };
        let fault = |call, code| call_error(info, call, code);
        let device = info.id.handle();
        let context = context::create_context(&[device], null(), None, null_mut())
            .map_err(|code| fault("clCreateContext", code))?;
        let context = Handle { object: context, release: context::release_context };
        let queue = || {
            // The library's newer function is missing in drivers of OpenCL 1.2.
            let profiling = command_queue::CL_QUEUE_PROFILING_ENABLE;
            // SAFETY: the device is the context's.
            let queue =
                unsafe { command_queue::create_command_queue(context.object, device, profiling) };
            let queue = queue.map_err(|code| fault("clCreateCommandQueue", code))?;
            Ok(Handle { object: queue, release: command_queue::release_command_queue })
        };
        let (compute, transfer) = (Arc::new(queue()?), Arc::new(queue()?));
        Ok(Arc::new(Session {
            info: info.clone(),
            library,
            context: Arc::new(context),
            compute,
            transfer,
            persistent: Mutex::default(),
            lost: Arc::default(),
        }))
    }

    /// Another session with the same context and queues: the commands of both run in order.
    pub(super) fn beside(&self) -> Arc<Session> {
        Arc::new(Session {
            info: self.info.clone(),
            library: self.library,
            context: Arc::clone(&self.context),
            compute: Arc::clone(&self.compute),
            transfer: Arc::clone(&self.transfer),
            persistent: Mutex::default(),
            lost: Arc::clone(&self.lost),
        })
    }

    /// Whether it has the context and queues of `other`.
    pub(super) fn is_beside(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.context, &other.context)
    }

    /// Gives up the queues: nothing waits for them from now on, and memory that their commands may use is not freed.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Whether the queues were given up.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// The device.
    pub(super) fn info(&self) -> &OpenClInfo {
        &self.info
    }

    fn queue(&self, lane: Lane) -> *mut c_void {
        match lane {
            Lane::Compute => self.compute.object,
            Lane::Transfer => self.transfer.object,
        }
    }

    fn error(&self, call: &'static str, code: cl_int) -> OpenClError {
        call_error(&self.info, call, code)
    }

    fn checked(&self, call: &'static str, code: Option<cl_int>) -> Result<(), OpenClError> {
        match code.unwrap_or(cl3::error_codes::DLOPEN_FUNCTION_NOT_AVAILABLE) {
            0 => Ok(()),
            code => Err(self.error(call, code)),
        }
    }

    /// Adds an event to the compute queue, which is complete when all commands before it are.
    pub(super) fn marker(&self) -> Result<Event, OpenClError> {
        self.settle()?;
        // SAFETY: no events are passed.
        let marker = unsafe {
            command_queue::enqueue_marker_with_wait_list(self.queue(Lane::Compute), 0, null())
        };
        let object = marker.map_err(|code| self.error("clEnqueueMarkerWithWaitList", code))?;
        Ok(Event(Handle { object, release: cl3::event::release_event }))
    }

    /// Makes the device begin with the commands of the compute queue.
    pub(super) fn flush(&self) -> Result<(), OpenClError> {
        self.settle()?;
        self.flush_queue()
    }

    fn flush_queue(&self) -> Result<(), OpenClError> {
        command_queue::flush(self.queue(Lane::Compute)).map_err(|code| self.error("clFlush", code))
    }

    /// Waits until both queues are empty.
    ///
    /// # Errors
    /// Those of the driver, and after a loss at once.
    pub(super) fn finish(&self) -> Result<(), OpenClError> {
        if self.is_lost() {
            return Err(self.error("clFinish", cl3::error_codes::CL_INVALID_COMMAND_QUEUE));
        }
        self.settle()?;
        for lane in [Lane::Compute, Lane::Transfer] {
            command_queue::finish(self.queue(lane)).map_err(|code| self.error("clFinish", code))?;
        }
        Ok(())
    }
}

impl Drop for Session {
    /// Waits, so that no command writes memory that is freed afterwards.
    fn drop(&mut self) {
        _ = self.finish();
    }
}

fn call_error(info: &OpenClInfo, call: &'static str, code: cl_int) -> OpenClError {
    let name = cl3::error_codes::error_text(code);
    OpenClError::Call { device: info.name.clone(), call, code, name }
}

//! Compiled graphs with their buffers.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use super::buffers::Border;
use super::core::c_string;
use super::error::OpenVinoError;
use super::library::{Handle, RawCallback, Status};
use super::ports::{PortShape, Ports};
use super::session::Session;
use lapwing_model::device::Notify;
use lapwing_model::signals;
use lapwing_model::sync::{AtomicBool, Mutex, Ordering, lock};

/// Shared with the library's thread that ends a run.
#[derive(Default)]
struct RunEnd {
    has_ended: AtomicBool,
    notify: Mutex<Option<Notify>>,
}

/// Called by the library at the end of a run.
///
/// # Safety
/// `argument` points to the [`RunEnd`] of a request that is not freed yet.
unsafe extern "C" fn on_end(argument: *mut c_void) {
    // SAFETY: by the caller.
    let end = unsafe { &*argument.cast::<RunEnd>() };
    end.has_ended.store(true, Ordering::Release);
    let notify = lock(&end.notify).clone();
    notify.iter().for_each(|notify| notify());
}

/// A compiled graph with its buffers. One run at a time.
pub(super) struct Request {
    compiled: Handle,
    request: Handle,
    inputs: Border,
    outputs: Border,
    /// In memory of its own, which the library's thread uses.
    end: Box<RunEnd>,
    /// The library reads it at the end of each run.
    callback: Box<RawCallback>,
    /// A started run has not been waited for.
    is_running: bool,
    /// Whether a run has ended.
    has_run: bool,
    _constants: Arc<[u8]>,
    session: Arc<Session>,
}

// SAFETY: OpenVINO's requests are bound to no thread, and `&mut self` excludes two runs at once.
unsafe impl Send for Request {}

impl Drop for Request {
    fn drop(&mut self) {
        if self.is_running {
            // Its result is lost, but not its end: the library writes to the buffers until then.
            let _ = self.wait();
        }
        let functions = &self.session.core.loaded.functions;
        // SAFETY: no run is in flight. Buffers and constants are freed after this.
        unsafe {
            (functions.ov_infer_request_free)(self.request);
            (functions.ov_compiled_model_free)(self.compiled);
        }
    }
}

impl Request {
    /// A request for a compiled graph, which it owns, with a buffer for each port. `constants` are kept as long as the graph.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`] when OpenVINO refuses a buffer.
    pub(super) fn new(
        session: &Arc<Session>,
        compiled: Handle,
        constants: Arc<[u8]>,
        ports: &Ports,
    ) -> Result<Request, OpenVinoError> {
        let border = |ports: &[PortShape]| {
            Border::new(ports.iter().map(|port| port.shape[0] * port.shape[1]))
        };
        let end: Box<RunEnd> = Box::default();
        let mut request = Request {
            compiled,
            request: ptr::null_mut(),
            inputs: border(&ports.inputs),
            outputs: border(&ports.outputs),
            callback: Box::new(RawCallback {
                function: on_end,
                argument: ptr::from_ref(&*end).cast_mut().cast(),
            }),
            end,
            is_running: false,
            has_run: false,
            _constants: constants,
            session: Arc::clone(session),
        };
        let functions = &session.core.loaded.functions;
        // SAFETY: the pointer is valid for the call.
        let status = unsafe {
            (functions.ov_compiled_model_create_infer_request)(
                request.compiled,
                &raw mut request.request,
            )
        };
        session.core.check("ov_compiled_model_create_infer_request", status)?;
        // SAFETY: callback and argument are in boxes, which are freed after the library's request.
        let status = unsafe {
            (functions.ov_infer_request_set_callback)(request.request, &raw const *request.callback)
        };
        session.core.check("ov_infer_request_set_callback", status)?;
        request.bind(
            &ports.inputs,
            &request.inputs,
            functions.ov_infer_request_set_input_tensor_by_index,
        )?;
        request.bind(
            &ports.outputs,
            &request.outputs,
            functions.ov_infer_request_set_output_tensor_by_index,
        )?;
        Ok(request)
    }

    /// Hands the buffers of the graph's ports over with `set`.
    fn bind(
        &self,
        ports: &[PortShape],
        border: &Border,
        set: unsafe extern "C" fn(Handle, usize, Handle) -> Status,
    ) -> Result<(), OpenVinoError> {
        let bound = ports.iter().enumerate().filter(|(_, port)| port.is_bound);
        for (at, (number, port)) in bound.enumerate() {
            let tensor = self.session.port_tensor(border.at(number), port.shape)?;
            // SAFETY: both handles are valid, and the buffer is freed after the request.
            let status = unsafe { set(self.request, at, tensor.handle) };
            self.session.core.check("ov_infer_request_set_tensor", status)?;
        }
        Ok(())
    }

    /// The buffer of an input.
    ///
    /// # Panics
    /// If there is no such input, or during a run.
    pub(super) fn input(&mut self, port: usize) -> &mut [f32] {
        assert!(!self.is_running, "the library reads it");
        // SAFETY: the library uses the buffer only during a run.
        unsafe { self.inputs.at(port).as_mut() }
    }

    /// The buffer of an output after a run.
    ///
    /// # Panics
    /// If there is no such output, or during a run.
    pub(super) fn output(&self, port: usize) -> &[f32] {
        assert!(!self.is_running, "the library writes it");
        // SAFETY: as above.
        unsafe { self.outputs.at(port).as_ref() }
    }

    /// The compiled graph as bytes for [`Session::import`]; `None` if the library cannot write it.
    pub(super) fn export(&self) -> Option<Vec<u8>> {
        // The library only writes files.
        let file = tempfile::NamedTempFile::new().ok()?;
        let path = c_string(file.path().to_str()?);
        let export = self.session.core.loaded.functions.ov_compiled_model_export_model;
        // SAFETY: the graph is valid, and the path is a text for the call.
        let status = unsafe { export(self.compiled, path.as_ptr()) };
        if status != 0 {
            return None;
        }
        std::fs::read(file.path()).ok().filter(|content| !content.is_empty())
    }

    /// Computes the outputs on the calling thread and those of the library.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`]; the outputs are then undefined.
    ///
    /// # Panics
    /// During a run.
    pub(super) fn run(&mut self) -> Result<(), OpenVinoError> {
        assert!(!self.is_running, "one run at a time");
        let core = &self.session.core;
        // SAFETY: every input and output tensor points to a buffer of its own size, which `self` owns.
        let status = unsafe { (core.loaded.functions.ov_infer_request_infer)(self.request) };
        Request::ended(&mut self.has_run);
        core.check("ov_infer_request_infer", status)
    }

    /// Begins to compute the outputs on threads of the library, and calls `notify` on one of these at the end.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`]; nothing runs then.
    ///
    /// # Panics
    /// During a run.
    pub(super) fn start(&mut self, notify: &Notify) -> Result<(), OpenVinoError> {
        assert!(!self.is_running, "one run at a time");
        *lock(&self.end.notify) = Some(Arc::clone(notify));
        self.end.has_ended.store(false, Ordering::Relaxed);
        let core = &self.session.core;
        // SAFETY: as in `run`; the buffers are neither used nor freed before the run has been waited for.
        let status = unsafe { (core.loaded.functions.ov_infer_request_start_async)(self.request) };
        core.check("ov_infer_request_start_async", status)?;
        self.is_running = true;
        Ok(())
    }

    /// The result of the started run, if it has ended.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`]; the outputs are then undefined.
    pub(super) fn finish(&mut self) -> Option<Result<(), OpenVinoError>> {
        let is_over = self.is_running && self.end.has_ended.load(Ordering::Acquire);
        is_over.then(|| self.wait())
    }

    /// Waits for the started run, and for the return of its callback.
    fn wait(&mut self) -> Result<(), OpenVinoError> {
        let core = &self.session.core;
        // SAFETY: the request is valid.
        let status = unsafe { (core.loaded.functions.ov_infer_request_wait)(self.request) };
        self.is_running = false;
        *lock(&self.end.notify) = None;
        Request::ended(&mut self.has_run);
        core.check("ov_infer_request_wait", status)
    }

    /// A run has ended; threads of the library may have compiled for the first one.
    fn ended(has_run: &mut bool) {
        if !std::mem::replace(has_run, true) {
            signals::keep(|| ());
        }
    }
}

//! Compiled graphs with their buffers.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::core::c_string;
use super::error::OpenVinoError;
use super::library::{Handle, Status};
use super::session::{PortShape, Session};

/// Values that the library reads or writes during a run, and the owner between runs.
pub(super) struct Buffer(NonNull<[f32]>);

impl Buffer {
    fn new([rows, width]: [usize; 2]) -> Buffer {
        let values = Box::leak(vec![0.0; rows * width].into_boxed_slice());
        Buffer(NonNull::from(values))
    }

    /// Where the values begin.
    pub(super) fn as_mut_ptr(&self) -> *mut f32 {
        self.0.as_ptr().cast()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of the leaked box.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A compiled graph with its buffers. One run at a time.
pub(super) struct Request {
    compiled: Handle,
    request: Handle,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    _constants: Arc<[u8]>,
    session: Arc<Session>,
}

// SAFETY: OpenVINO's requests are bound to no thread, and `&mut self` excludes two runs at once.
unsafe impl Send for Request {}

impl Drop for Request {
    fn drop(&mut self) {
        let functions = &self.session.core.loaded.functions;
        // SAFETY: no run is in flight, since a run blocks. Buffers and constants are freed after this.
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
        (inputs, outputs): (&[PortShape], &[PortShape]),
    ) -> Result<Request, OpenVinoError> {
        let buffers =
            |ports: &[PortShape]| ports.iter().map(|port| Buffer::new(port.shape)).collect();
        let mut request = Request {
            compiled,
            request: ptr::null_mut(),
            inputs: buffers(inputs),
            outputs: buffers(outputs),
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
        request.bind(
            (inputs, &request.inputs),
            functions.ov_infer_request_set_input_tensor_by_index,
        )?;
        request.bind(
            (outputs, &request.outputs),
            functions.ov_infer_request_set_output_tensor_by_index,
        )?;
        Ok(request)
    }

    /// Hands the buffers of the graph's ports over with `set`.
    fn bind(
        &self,
        (ports, buffers): (&[PortShape], &[Buffer]),
        set: unsafe extern "C" fn(Handle, usize, Handle) -> Status,
    ) -> Result<(), OpenVinoError> {
        let bound = ports.iter().zip(buffers).filter(|(port, _)| port.is_bound);
        for (at, (port, buffer)) in bound.enumerate() {
            let tensor = self.session.port_tensor(buffer, port.shape)?;
            // SAFETY: both handles are valid, and the buffer is freed after the request.
            let status = unsafe { set(self.request, at, tensor.handle) };
            self.session.core.check("ov_infer_request_set_tensor", status)?;
        }
        Ok(())
    }

    /// The buffer of an input.
    ///
    /// # Panics
    /// If there is no such input.
    pub(super) fn input(&mut self, port: usize) -> &mut [f32] {
        // SAFETY: the library uses the buffer only during a run, which takes `&mut self`.
        unsafe { self.inputs[port].0.as_mut() }
    }

    /// The buffer of an output after a run.
    ///
    /// # Panics
    /// If there is no such output.
    pub(super) fn output(&self, port: usize) -> &[f32] {
        // SAFETY: as above.
        unsafe { self.outputs[port].0.as_ref() }
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

    /// Computes the outputs.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`]; the outputs are then undefined.
    pub(super) fn run(&mut self) -> Result<(), OpenVinoError> {
        let core = &self.session.core;
        // SAFETY: every input and output tensor points to a buffer of its own size, which `self` owns.
        let status = unsafe { (core.loaded.functions.ov_infer_request_infer)(self.request) };
        core.check("ov_infer_request_infer", status)
    }
}

//! A device of OpenVINO with its settings, and graphs that it has compiled.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::core::{Core, Model, OpenVinoInfo, Tensor, c_string};
use super::error::OpenVinoError;
use super::library::{ElementCode, Handle, Status};

/// A device and its settings.
#[derive(Debug)]
pub(super) struct Session {
    core: Core,
    pub(super) info: OpenVinoInfo,
    threads: usize,
    float: ElementCode,
    byte: ElementCode,
}

impl Session {
    /// Opens the device with this name; without one, the NPU if there is one, or else the CPU.
    ///
    /// # Errors
    /// [`OpenVinoError`].
    pub(super) fn open(wanted: Option<&str>, threads: usize) -> Result<Session, OpenVinoError> {
        let core = Core::open()?;
        let found = core.devices()?;
        let name =
            wanted.unwrap_or(if found.iter().any(|name| name == "NPU") { "NPU" } else { "CPU" });
        let Some(device) = found.iter().find(|found| found.eq_ignore_ascii_case(name)).cloned()
        else {
            let (wanted, found) = (name.to_owned(), found.join(", "));
            return Err(OpenVinoError::NoDevice { wanted, found });
        };
        let info = core.describe(device)?;
        // The codes of element types differ between releases, so a model with one input of each type
        // shows them.
        let probe = core.read(super::ir::PROBE, None)?;
        let (float, byte) = (probe.element(0)?, probe.element(1)?);
        drop(probe);
        Ok(Session { core, info, threads, float, byte })
    }

    /// Whether the CPU of this machine computes.
    pub(super) fn is_cpu(&self) -> bool {
        self.info.device == "CPU"
    }

    /// Compiles a graph. `inputs` and `outputs` are rows and widths of its ports, in order.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`] when OpenVINO refuses the graph.
    pub(super) fn compile(
        self: &Arc<Session>,
        text: &str,
        constants: &Arc<[u8]>,
        (inputs, outputs): (&[[usize; 2]], &[[usize; 2]]),
    ) -> Result<Request, OpenVinoError> {
        // SAFETY: the request below keeps the constants, which nothing writes.
        let weights = unsafe {
            self.core.tensor(self.byte, &[constants.len()], constants.as_ptr().cast_mut())?
        };
        let model = self.core.read(text, (!constants.is_empty()).then_some(&weights))?;
        let compiled = self.compile_model(&model)?;
        self.request(compiled, Arc::clone(constants), (inputs, outputs))
    }

    /// A compiled graph of [`Request::export`], with ports as for [`compile`](Session::compile). Its constants stay in
    /// `content`.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`] when OpenVINO refuses it.
    pub(super) fn import(
        self: &Arc<Session>,
        content: Arc<[u8]>,
        ports: (&[[usize; 2]], &[[usize; 2]]),
    ) -> Result<Request, OpenVinoError> {
        self.set_properties()?;
        let device = c_string(&self.info.device);
        let mut compiled = ptr::null_mut();
        // SAFETY: all pointers are valid for the call, and the request below keeps the content.
        let status = unsafe {
            (self.core.loaded.functions.ov_core_import_model)(
                self.core.handle,
                content.as_ptr().cast(),
                content.len(),
                device.as_ptr(),
                &raw mut compiled,
            )
        };
        self.core.check("ov_core_import_model", status)?;
        self.request(compiled, content, ports)
    }

    /// A request for a compiled graph, which it owns, with a buffer for each port.
    fn request(
        self: &Arc<Session>,
        compiled: Handle,
        constants: Arc<[u8]>,
        (inputs, outputs): (&[[usize; 2]], &[[usize; 2]]),
    ) -> Result<Request, OpenVinoError> {
        let mut request = Request {
            compiled,
            request: ptr::null_mut(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            _constants: constants,
            session: Arc::clone(self),
        };
        let functions = &self.core.loaded.functions;
        // SAFETY: the pointer is valid for the call.
        let status = unsafe {
            (functions.ov_compiled_model_create_infer_request)(
                request.compiled,
                &raw mut request.request,
            )
        };
        self.core.check("ov_compiled_model_create_infer_request", status)?;
        let (input, output) = (
            functions.ov_infer_request_set_input_tensor_by_index,
            functions.ov_infer_request_set_output_tensor_by_index,
        );
        request.inputs = self.bind(request.request, inputs, input)?;
        request.outputs = self.bind(request.request, outputs, output)?;
        Ok(request)
    }

    /// Compiles for exact results: f32 throughout, and no activations in 8 bits. An NPU has its own
    /// precision, binary16.
    fn compile_model(&self, model: &Model<'_>) -> Result<Handle, OpenVinoError> {
        let device = c_string(&self.info.device);
        let threads = c_string(&self.threads.to_string());
        let mut compiled = ptr::null_mut();
        let compile = self.core.loaded.functions.ov_core_compile_model;
        // SAFETY: all pointers are valid for the call. The variable arguments are as many texts as stated,
        // keys and values in turn.
        let status = unsafe {
            if self.is_cpu() {
                compile(
                    self.core.handle,
                    model.handle,
                    device.as_ptr(),
                    10,
                    &raw mut compiled,
                    c"INFERENCE_PRECISION_HINT".as_ptr(),
                    c"f32".as_ptr(),
                    c"DYNAMIC_QUANTIZATION_GROUP_SIZE".as_ptr(),
                    c"0".as_ptr(),
                    c"NUM_STREAMS".as_ptr(),
                    c"1".as_ptr(),
                    c"INFERENCE_NUM_THREADS".as_ptr(),
                    threads.as_ptr(),
                    c"ENABLE_CPU_PINNING".as_ptr(),
                    c"NO".as_ptr(),
                )
            } else {
                compile(
                    self.core.handle,
                    model.handle,
                    device.as_ptr(),
                    2,
                    &raw mut compiled,
                    c"PERFORMANCE_HINT".as_ptr(),
                    c"LATENCY".as_ptr(),
                )
            }
        };
        self.core.check("ov_core_compile_model", status)?;
        Ok(compiled)
    }

    /// Sets what [`compile_model`](Session::compile_model) states for each graph, since an import takes no settings: it
    /// would otherwise compute in the precision that OpenVINO prefers.
    fn set_properties(&self) -> Result<(), OpenVinoError> {
        if !self.is_cpu() {
            return Ok(());
        }
        let device = c_string(&self.info.device);
        let threads = c_string(&self.threads.to_string());
        let properties = [
            (c"INFERENCE_PRECISION_HINT", c"f32"),
            (c"DYNAMIC_QUANTIZATION_GROUP_SIZE", c"0"),
            (c"NUM_STREAMS", c"1"),
            (c"INFERENCE_NUM_THREADS", &*threads),
            (c"ENABLE_CPU_PINNING", c"NO"),
        ];
        for (key, value) in properties {
            let set = self.core.loaded.functions.ov_core_set_property;
            // SAFETY: all pointers are valid for the call, whose variable arguments are a key and a value.
            let status =
                unsafe { set(self.core.handle, device.as_ptr(), key.as_ptr(), value.as_ptr()) };
            self.core.check("ov_core_set_property", status)?;
        }
        Ok(())
    }

    /// Makes a buffer for each port of a request and hands it over with `set`.
    fn bind(
        &self,
        request: Handle,
        ports: &[[usize; 2]],
        set: unsafe extern "C" fn(Handle, usize, Handle) -> Status,
    ) -> Result<Vec<Buffer>, OpenVinoError> {
        let bind = |(at, shape): (usize, &[usize; 2])| {
            let buffer = Buffer::new(shape[0] * shape[1]);
            let tensor = self.port_tensor(&buffer, *shape)?;
            // SAFETY: both handles are valid, and the caller keeps the buffer as long as the request.
            let status = unsafe { set(request, at, tensor.handle) };
            self.core.check("ov_infer_request_set_tensor", status)?;
            Ok(buffer)
        };
        ports.iter().enumerate().map(bind).collect()
    }

    fn port_tensor(&self, buffer: &Buffer, shape: [usize; 2]) -> Result<Tensor<'_>, OpenVinoError> {
        // SAFETY: the request keeps the buffer as long as itself.
        let tensor = unsafe { self.core.tensor(self.float, &shape, buffer.0.as_ptr().cast())? };
        let mut bytes = 0;
        // SAFETY: the pointer is valid for the call.
        let status = unsafe {
            (self.core.loaded.functions.ov_tensor_get_byte_size)(tensor.handle, &raw mut bytes)
        };
        self.core.check("ov_tensor_get_byte_size", status)?;
        let wanted = shape[0] * shape[1] * size_of::<f32>();
        if bytes != wanted {
            let reason = format!("a tensor of {wanted} bytes is one of {bytes} to the library");
            return Err(OpenVinoError::Call { call: "ov_tensor_get_byte_size", status, reason });
        }
        Ok(tensor)
    }
}

/// Values that the library reads or writes during a run, and the owner between runs.
struct Buffer(NonNull<[f32]>);

impl Buffer {
    fn new(len: usize) -> Buffer {
        let values = Box::leak(vec![0.0; len].into_boxed_slice());
        Buffer(NonNull::from(values))
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

//! A device of OpenVINO with its settings, and graphs that it has compiled.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::core::{Core, Model, OpenVinoInfo, Tensor, c_string};
use super::error::OpenVinoError;
use super::library::{ElementCode, Handle};
use super::ports::Ports;
use super::request::Request;

/// A device and its settings.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) core: Core,
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
        let info = core.find(wanted)?;
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

    /// Compiles a graph, whose bound inputs and outputs are these.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`] when OpenVINO refuses the graph.
    pub(super) fn compile(
        self: &Arc<Session>,
        text: &str,
        constants: &Arc<[u8]>,
        ports: &Ports,
    ) -> Result<Request, OpenVinoError> {
        // SAFETY: the request below keeps the constants, which nothing writes.
        let weights = unsafe {
            self.core.tensor(self.byte, &[constants.len()], constants.as_ptr().cast_mut())?
        };
        let model = self.core.read(text, (!constants.is_empty()).then_some(&weights))?;
        let compiled = self.compile_model(&model)?;
        Request::new(self, compiled, Arc::clone(constants), ports)
    }

    /// A compiled graph of [`Request::export`], with ports as for [`compile`](Session::compile). Its constants stay in
    /// `content`.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`] when OpenVINO refuses it.
    pub(super) fn import(
        self: &Arc<Session>,
        content: Arc<[u8]>,
        ports: &Ports,
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
        Request::new(self, compiled, content, ports)
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

    /// The tensor of a port over its values, which the caller keeps longer.
    ///
    /// # Errors
    /// [`OpenVinoError::Call`], also when the library sees another size.
    pub(super) fn port_tensor(
        &self,
        values: NonNull<[f32]>,
        shape: [usize; 2],
    ) -> Result<Tensor<'_>, OpenVinoError> {
        debug_assert_eq!(values.len(), shape[0] * shape[1]);
        // SAFETY: the request keeps the values as long as itself.
        let tensor = unsafe { self.core.tensor(self.float, &shape, values.as_ptr().cast())? };
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

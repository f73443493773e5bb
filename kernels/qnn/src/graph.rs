//! Graphs under construction.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Arc;

use super::abi::{Element, Handle, Quantization, RawOp, RawParameter, RawTensor, Role};
use super::error::QnnError;
use super::executable::Executable;
use super::session::{Session, exclusive, wait_at_exit};
use super::tensor::{Op, Parameter, Tensor};
use lapwing_npu::FixedPoint;

/// The library's package of ops.
const PACKAGE: &CStr = c"qti.aisw";

/// The name of each graph in its context.
const NAME: &CStr = c"graph";

/// A graph whose binary is larger is not kept.
const BINARY_MAX: usize = 1 << 30;

/// Memory of one graph.
pub(super) struct Context {
    pub(super) session: Arc<Session>,
    handle: Handle,
}

impl Drop for Context {
    fn drop(&mut self) {
        let _guard = exclusive();
        // SAFETY: no run is in flight, since a run blocks, and the graph is not used after this.
        unsafe { (self.session.loaded.functions.context_free)(self.handle, ptr::null_mut()) };
    }
}

impl Context {
    /// Its graph as the library writes it; `None` if it does not.
    pub(super) fn binary(&self) -> Option<Vec<u8>> {
        let functions = &self.session.loaded.functions;
        let (mut bytes, mut written) = (0, 0);
        let _guard = exclusive();
        // SAFETY: the context is valid, and the pointer is for the call.
        let code = unsafe { (functions.context_get_binary_size)(self.handle, &raw mut bytes) };
        let len = usize::try_from(bytes).ok().filter(|len| code == 0 && *len <= BINARY_MAX)?;
        let mut binary = vec![0; len];
        // SAFETY: the context is valid, and the buffer has as many bytes as stated.
        let code = unsafe {
            let get = functions.context_get_binary;
            get(self.handle, binary.as_mut_ptr().cast(), bytes, &raw mut written)
        };
        binary.truncate(usize::try_from(written).ok()?);
        (code == 0 && !binary.is_empty()).then_some(binary)
    }
}

/// Reads a graph that was prepared before, with its inputs and outputs.
///
/// # Errors
/// [`QnnError::Call`] when the library refuses it.
pub(super) fn read(
    session: &Arc<Session>,
    binary: &[u8],
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
) -> Result<Executable, QnnError> {
    let guard = exclusive();
    let context = Context { handle: session.context_of(binary)?, session: Arc::clone(session) };
    let mut graph = ptr::null_mut();
    let retrieve = session.loaded.functions.graph_retrieve;
    // SAFETY: the context is valid, and the pointers are for the call.
    let code = unsafe { retrieve(context.handle, NAME.as_ptr(), &raw mut graph) };
    wait_at_exit();
    // The context takes the lock when it is dropped.
    drop(guard);
    session.loaded.check("finding a graph", code)?;
    Ok(Executable::new(context, graph, inputs, outputs))
}

/// A graph under construction.
pub(super) struct Building {
    context: Context,
    graph: Handle,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    count: usize,
}

impl Building {
    /// An empty graph.
    ///
    /// # Errors
    /// [`QnnError::Call`].
    pub(super) fn new(session: &Arc<Session>) -> Result<Building, QnnError> {
        let guard = exclusive();
        let context = Context { handle: session.context()?, session: Arc::clone(session) };
        let mut graph = ptr::null_mut();
        // SAFETY: the context is valid, and all pointers are for the call.
        let code = unsafe {
            let create = session.loaded.functions.graph_create;
            create(context.handle, NAME.as_ptr(), ptr::null(), &raw mut graph)
        };
        // The context takes the lock when it is dropped.
        drop(guard);
        session.loaded.check("beginning a graph", code)?;
        Ok(Building { context, graph, inputs: Vec::new(), outputs: Vec::new(), count: 0 })
    }

    /// A tensor of binary16 without data.
    ///
    /// # Errors
    /// [`QnnError::TooLarge`] and [`QnnError::Call`].
    pub(super) fn tensor(&mut self, role: Role, dims: &[usize]) -> Result<Tensor, QnnError> {
        let tensor = self.named(role, Element::F16, dims)?;
        let tensor = self.create(tensor, Quantization::NONE, &[])?;
        match role {
            Role::Input => self.inputs.push(tensor.clone()),
            Role::Output => self.outputs.push(tensor.clone()),
            Role::Inner | Role::Constant => {}
        }
        Ok(tensor)
    }

    /// A tensor of integers inside the graph.
    ///
    /// # Errors
    /// As [`tensor`](Building::tensor).
    pub(super) fn integers(
        &mut self,
        dims: &[usize],
        fixed: FixedPoint,
    ) -> Result<Tensor, QnnError> {
        let element = if fixed.bits() > 8 { Element::UFixed16 } else { Element::UFixed8 };
        let quantization = Quantization::whole(fixed.scale(), -fixed.zero());
        let tensor = self.named(Role::Inner, element, dims)?;
        self.create(tensor, quantization, &[])
    }

    /// A constant. What the quantisation points to is copied, too.
    ///
    /// # Errors
    /// [`QnnError::Length`] if there are not as many bytes as the dimensions say, and as
    /// [`tensor`](Building::tensor).
    pub(super) fn constant(
        &mut self,
        element: Element,
        dims: &[usize],
        quantization: Quantization,
        data: &[u8],
    ) -> Result<Tensor, QnnError> {
        let wanted = dims.iter().product::<usize>() * element.bytes();
        if wanted != data.len() {
            return Err(QnnError::Length { wanted, found: data.len() });
        }
        let tensor = self.named(Role::Constant, element, dims)?;
        self.create(tensor, quantization, data)
    }

    /// A tensor that is not in the graph yet.
    fn named(&mut self, role: Role, element: Element, dims: &[usize]) -> Result<Tensor, QnnError> {
        let too_large = || QnnError::TooLarge { dims: dims.to_vec() };
        let bytes = dims.iter().try_fold(element.bytes(), |bytes, dim| bytes.checked_mul(*dim));
        bytes.and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(too_large)?;
        let name = self.name("t");
        let dims = dims.iter().map(|dim| *dim as u32).collect();
        Ok(Tensor { id: 0, name, role, element, dims, blocks: None })
    }

    /// Adds a tensor to the graph.
    fn create(
        &mut self,
        mut tensor: Tensor,
        quantization: Quantization,
        data: &[u8],
    ) -> Result<Tensor, QnnError> {
        let data_at = if data.is_empty() { ptr::null() } else { data.as_ptr() };
        let mut raw = tensor.raw(data_at.cast_mut().cast(), data.len() as u32);
        raw.quantization = quantization;
        let loaded = &self.context.session.loaded;
        let _guard = exclusive();
        // SAFETY: the graph is valid, and `raw` points to what lives longer than the call. The library
        // copies all of it, data included, and only fills in the number.
        let code =
            unsafe { (loaded.functions.tensor_create_graph_tensor)(self.graph, &raw mut raw) };
        loaded.check("adding a tensor", code)?;
        tensor.id = raw.id;
        Ok(tensor)
    }

    /// Adds an op.
    ///
    /// # Errors
    /// [`QnnError::Call`] when the library refuses it.
    pub(super) fn node(
        &mut self,
        Op { kind, parameters }: Op<'_>,
        inputs: &[&Tensor],
        output: &Tensor,
    ) -> Result<(), QnnError> {
        let mut constants = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            constants.push(match parameter {
                Parameter::F32(..) => None,
                Parameter::U32s(_, dims, values) => {
                    let data = bytemuck::cast_slice(values);
                    Some(self.constant(Element::U32, dims, Quantization::NONE, data)?)
                }
            });
        }
        let parameters: Vec<RawParameter> = parameters
            .iter()
            .zip(&constants)
            .map(|(from, tensor)| from.raw(tensor.as_ref()))
            .collect();
        let inputs: Vec<RawTensor> = inputs.iter().map(|input| input.without_data()).collect();
        let (name, output) = (self.name("n"), output.without_data());
        let op = RawOp {
            version: 1,
            name: name.as_ptr(),
            package: PACKAGE.as_ptr(),
            kind: kind.as_ptr(),
            parameter_count: parameters.len() as u32,
            parameters: parameters.as_ptr(),
            input_count: inputs.len() as u32,
            inputs: inputs.as_ptr(),
            output_count: 1,
            outputs: &raw const output,
        };
        let loaded = &self.context.session.loaded;
        let _guard = exclusive();
        // SAFETY: the graph is valid, and `op` points to what lives longer than the call; the library
        // copies it.
        let code = unsafe { (loaded.functions.graph_add_node)(self.graph, op) };
        loaded.check("adding an op", code)
    }

    fn name(&mut self, kind: &str) -> CString {
        self.count += 1;
        // There is no zero in it.
        CString::new(format!("{kind}{}", self.count)).unwrap_or_default()
    }

    /// Prepares the graph to run.
    ///
    /// # Errors
    /// [`QnnError::Call`] when the library refuses it.
    pub(super) fn finish(self) -> Result<Executable, QnnError> {
        let Building { context, graph, inputs, outputs, .. } = self;
        let loaded = &context.session.loaded;
        let code = {
            let _guard = exclusive();
            // SAFETY: the graph is valid; neither a profile nor a signal is given.
            let code = unsafe {
                (loaded.functions.graph_finalize)(graph, ptr::null_mut(), ptr::null_mut())
            };
            wait_at_exit();
            code
        };
        loaded.check("preparing a graph", code)?;
        Ok(Executable::new(context, graph, inputs, outputs))
    }
}

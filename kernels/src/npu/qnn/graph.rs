//! Graphs: under construction, and ready to run with their buffers.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;

use super::abi::{
    Element, Handle, Quantization, RawOp, RawParameter, RawScalar, RawTensor, RawValue, Role,
    TensorVersion,
};
use super::error::QnnError;
use super::session::{Session, exclusive};
use crate::aligned::Aligned;

/// The library's package of ops.
const PACKAGE: &CStr = c"qti.aisw";

/// A tensor of a graph.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    id: u32,
    name: CString,
    role: Role,
    element: Element,
    dims: Vec<u32>,
}

impl Tensor {
    /// The last dimension.
    pub(super) fn width(&self) -> usize {
        self.dims.last().map_or(0, |width| *width as usize)
    }

    /// Number of values.
    fn len(&self) -> usize {
        self.dims.iter().map(|dim| *dim as usize).product()
    }

    /// The tensor as the library sees it, with data of that many bytes. It points to `self`.
    fn raw(&self, data: *mut c_void, bytes: u32) -> RawTensor {
        RawTensor {
            version: TensorVersion(1),
            id: self.id,
            name: self.name.as_ptr(),
            role: self.role,
            format: 0,
            element: self.element,
            quantization: Quantization::NONE,
            rank: self.dims.len() as u32,
            dims: self.dims.as_ptr(),
            memory: 0,
            data,
            bytes,
            rest: [0; 3],
        }
    }

    fn without_data(&self) -> RawTensor {
        self.raw(ptr::null_mut(), 0)
    }
}

/// A parameter of an op.
#[derive(Clone, Copy, Debug)]
pub(super) enum Parameter<'a> {
    /// A number.
    F32(&'static CStr, f32),
    /// Numbers of some dimensions.
    U32s(&'static CStr, &'a [usize], &'a [u32]),
}

/// Memory of one graph.
struct Context {
    session: Arc<Session>,
    handle: Handle,
}

impl Drop for Context {
    fn drop(&mut self) {
        let _guard = exclusive();
        // SAFETY: no run is in flight, since a run blocks, and the graph is not used after this.
        unsafe { (self.session.loaded.functions.context_free)(self.handle, ptr::null_mut()) };
    }
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
            create(context.handle, c"graph".as_ptr(), ptr::null(), &raw mut graph)
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
        let tensor = self.create((role, Element::F16), dims, Quantization::NONE, &[])?;
        match role {
            Role::Input => self.inputs.push(tensor.clone()),
            Role::Output => self.outputs.push(tensor.clone()),
            Role::Inner | Role::Constant => {}
        }
        Ok(tensor)
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
        (quantization, data): (Quantization, &[u8]),
    ) -> Result<Tensor, QnnError> {
        let wanted = dims.iter().product::<usize>() * element.bytes();
        if wanted != data.len() {
            return Err(QnnError::Length { wanted, found: data.len() });
        }
        self.create((Role::Constant, element), dims, quantization, data)
    }

    fn create(
        &mut self,
        (role, element): (Role, Element),
        dims: &[usize],
        quantization: Quantization,
        data: &[u8],
    ) -> Result<Tensor, QnnError> {
        let too_large = || QnnError::TooLarge { dims: dims.to_vec() };
        let bytes = dims.iter().try_fold(element.bytes(), |bytes, dim| bytes.checked_mul(*dim));
        bytes.and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(too_large)?;
        let name = self.name("t");
        let dims = dims.iter().map(|dim| *dim as u32).collect();
        let mut tensor = Tensor { id: 0, name, role, element, dims };
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
        kind: &'static CStr,
        parameters: &[Parameter<'_>],
        inputs: &[&Tensor],
        output: &Tensor,
    ) -> Result<(), QnnError> {
        let mut constants = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            constants.push(match parameter {
                Parameter::F32(..) => None,
                Parameter::U32s(_, dims, values) => {
                    let data = (Quantization::NONE, bytemuck::cast_slice(values));
                    Some(self.constant(Element::U32, dims, data)?)
                }
            });
        }
        let parameters: Vec<RawParameter> = parameters
            .iter()
            .zip(&constants)
            .map(|(from, tensor)| raw(from, tensor.as_ref()))
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
            unsafe { (loaded.functions.graph_finalize)(graph, ptr::null_mut(), ptr::null_mut()) }
        };
        loaded.check("preparing a graph", code)?;
        let bound = |tensors: Vec<Tensor>| tensors.into_iter().map(Bound::new).collect();
        Ok(Executable { inputs: bound(inputs), outputs: bound(outputs), graph, context })
    }
}

/// A parameter as the library sees it. It points to `tensor`.
fn raw(parameter: &Parameter<'_>, tensor: Option<&Tensor>) -> RawParameter {
    let (name, number) = match parameter {
        Parameter::F32(name, number) => (name, number.to_bits()),
        Parameter::U32s(name, ..) => (name, 0),
    };
    let scalar = RawScalar { element: Element::F32, bits: u64::from(number) };
    let (kind, value) = match tensor {
        None => (0, RawValue { scalar }),
        Some(tensor) => (1, RawValue { tensor: tensor.without_data() }),
    };
    RawParameter { kind, name: name.as_ptr(), value }
}

/// A tensor with its values in binary16, which the library reads or writes during a run.
struct Bound {
    tensor: Tensor,
    values: Aligned<u16>,
}

impl Bound {
    fn new(tensor: Tensor) -> Bound {
        let mut values = Aligned::default();
        values.room(tensor.len());
        Bound { tensor, values }
    }

    fn raw(&mut self) -> RawTensor {
        let bytes = size_of_val(&*self.values) as u32;
        self.tensor.raw(self.values.as_mut_ptr().cast(), bytes)
    }
}

/// A prepared graph with its buffers. One run at a time.
pub(super) struct Executable {
    inputs: Vec<Bound>,
    outputs: Vec<Bound>,
    graph: Handle,
    context: Context,
}

// SAFETY: QNN's graphs are bound to no thread, and `&mut self` excludes two runs at once.
unsafe impl Send for Executable {}

impl Executable {
    /// Values of an input, in the order in which inputs were added.
    ///
    /// # Panics
    /// If there is no such input.
    pub(super) fn input(&mut self, at: usize) -> &mut [u16] {
        &mut self.inputs[at].values
    }

    /// Values of an output after a run, in the order in which outputs were added.
    ///
    /// # Panics
    /// If there is no such output.
    pub(super) fn output(&self, at: usize) -> &[u16] {
        &self.outputs[at].values
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// [`QnnError::Call`]; the outputs are then undefined.
    pub(super) fn run(&mut self) -> Result<(), QnnError> {
        let inputs: Vec<RawTensor> = self.inputs.iter_mut().map(Bound::raw).collect();
        let mut outputs: Vec<RawTensor> = self.outputs.iter_mut().map(Bound::raw).collect();
        let loaded = &self.context.session.loaded;
        // SAFETY: each tensor points to a buffer of as many bytes as its dimensions say, which `self` owns;
        // the library does not check that itself. Neither a profile nor a signal is given.
        let code = unsafe {
            (loaded.functions.graph_execute)(
                self.graph,
                inputs.as_ptr(),
                inputs.len() as u32,
                outputs.as_mut_ptr(),
                outputs.len() as u32,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        loaded.check("running a graph", code)
    }
}

//! Prepared graphs with their buffers.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ptr;

use super::abi::{Handle, RawTensor};
use super::error::QnnError;
use super::graph::Context;
use super::session::{running, wait_at_exit};
use super::tensor::Tensor;
use crate::aligned::Aligned;

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
    has_run: bool,
}

// SAFETY: QNN's graphs are bound to no thread, and `&mut self` excludes two runs at once. Its tensors are inputs and outputs,
// which have no shared `Blocks`.
unsafe impl Send for Executable {}

impl Executable {
    /// A graph that is prepared, with buffers for these tensors.
    pub(super) fn new(
        (context, graph): (Context, Handle),
        inputs: Vec<Tensor>,
        outputs: Vec<Tensor>,
    ) -> Executable {
        let bound = |tensors: Vec<Tensor>| tensors.into_iter().map(Bound::new).collect();
        Executable {
            inputs: bound(inputs),
            outputs: bound(outputs),
            graph,
            context,
            has_run: false,
        }
    }

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

    /// Its inputs, in the order in which they were added.
    pub(super) fn input_tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.inputs.iter().map(|bound| &bound.tensor)
    }

    /// Its outputs, in the order in which they were added.
    pub(super) fn output_tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.outputs.iter().map(|bound| &bound.tensor)
    }

    /// The graph as the library writes it; `None` if it does not.
    pub(super) fn binary(&self) -> Option<Vec<u8>> {
        self.context.binary()
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// [`QnnError::Call`]; the outputs are then undefined.
    pub(super) fn run(&mut self) -> Result<(), QnnError> {
        let inputs: Vec<RawTensor> = self.inputs.iter_mut().map(Bound::raw).collect();
        let mut outputs: Vec<RawTensor> = self.outputs.iter_mut().map(Bound::raw).collect();
        let loaded = &self.context.session.loaded;
        let _guard = running();
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
        if !std::mem::replace(&mut self.has_run, true) {
            wait_at_exit();
        }
        loaded.check("running a graph", code)
    }
}

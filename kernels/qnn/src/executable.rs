//! Prepared graphs with their buffers.
#![expect(unsafe_code, reason = "calls a C library")]

use std::ops::Range;
use std::ptr;

use super::abi::{Handle, RawTensor};
use super::error::QnnError;
use super::graph::Context;
use super::session::{running, wait_at_exit};
use super::tensor::Tensor;
use lapwing_model::aligned::Aligned;
use lapwing_model::signals;
use lapwing_npu::buffers::places;

/// Tensors with their values in binary16, which the library reads or writes during a run.
struct Bound {
    tensors: Vec<Tensor>,
    places: Vec<Range<usize>>,
    values: Aligned<u16>,
}

impl Bound {
    fn new(tensors: Vec<Tensor>) -> Bound {
        let (places, len) = places::<u16>(tensors.iter().map(Tensor::len));
        let mut values = Aligned::default();
        values.room(len);
        Bound { tensors, places, values }
    }

    fn values(&self, at: usize) -> &[u16] {
        &self.values[self.places[at].clone()]
    }

    fn values_mut(&mut self, at: usize) -> &mut [u16] {
        &mut self.values[self.places[at].clone()]
    }

    /// The tensors as the library sees them. They point to `self`.
    fn raw(&mut self) -> Vec<RawTensor> {
        // All pointers come from one borrow of the buffer.
        let first = self.values.as_mut_ptr();
        let raw = |(tensor, place): (&Tensor, &Range<usize>)| {
            let bytes = place.len() * size_of::<u16>();
            tensor.raw(first.wrapping_add(place.start).cast(), bytes as u32)
        };
        self.tensors.iter().zip(&self.places).map(raw).collect()
    }
}

/// A prepared graph with its buffers. One run at a time.
pub(super) struct Executable {
    inputs: Bound,
    outputs: Bound,
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
        context: Context,
        graph: Handle,
        inputs: Vec<Tensor>,
        outputs: Vec<Tensor>,
    ) -> Executable {
        let (inputs, outputs) = (Bound::new(inputs), Bound::new(outputs));
        Executable { inputs, outputs, graph, context, has_run: false }
    }

    /// Values of an input, in the order in which inputs were added.
    ///
    /// # Panics
    /// If there is no such input.
    pub(super) fn input(&mut self, at: usize) -> &mut [u16] {
        self.inputs.values_mut(at)
    }

    /// Values of an output after a run, in the order in which outputs were added.
    ///
    /// # Panics
    /// If there is no such output.
    pub(super) fn output(&self, at: usize) -> &[u16] {
        self.outputs.values(at)
    }

    /// Its inputs, in the order in which they were added.
    pub(super) fn input_tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.inputs.tensors.iter()
    }

    /// Its outputs, in the order in which they were added.
    pub(super) fn output_tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.outputs.tensors.iter()
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
        let (inputs, mut outputs) = (self.inputs.raw(), self.outputs.raw());
        let loaded = &self.context.session.loaded;
        let _guard = running();
        // SAFETY: each tensor points to as many bytes as its dimensions say, which `self` owns;
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
            // Threads of the library may have compiled for it.
            signals::keep(|| ());
        }
        loaded.check("running a graph", code)
    }
}

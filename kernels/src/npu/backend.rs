//! What a library or device that runs static graphs has to offer.

use crate::device::{DeviceError, Observer};
use crate::quant::Activations;

use super::spec::{GraphSpec, SpecNode};

/// What a back end says of itself when it is opened. Opening one is the back end's own affair;
/// that it is not there is a normal answer with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Name, such as `systolic`.
    pub name: String,
    /// Version of what computes.
    pub version: String,
    /// No such processor is at work: the values are right, the time means nothing.
    pub emulated: bool,
    /// Rows of a graph must be a multiple of this.
    pub row_multiple: usize,
    /// Rows for which graphs are worth to be prepared, ascending.
    pub sizes: Vec<usize>,
    /// It refuses buffers of a wrong size by itself.
    pub checks_sizes: bool,
    /// Threads that it starts by itself.
    pub own_threads: usize,
    /// How products see their activations: what its values are compared with.
    pub activations: Activations,
}

/// Prepares static graphs. It lives on whichever thread prepares, one at a time.
pub trait NpuBackend: Send {
    /// What it is.
    fn info(&self) -> &BackendInfo;

    /// Whether it can run a node with its op, weight formats and shapes.
    ///
    /// # Errors
    /// Why not, in words.
    fn supports(&self, node: &SpecNode) -> Result<(), String>;

    /// Bytes that a prepared graph will keep, as far as that is known before it is.
    fn estimate_bytes(&self, spec: &GraphSpec) -> u64 {
        spec.buffer_bytes()
    }

    /// Bytes that its graphs share, beside the model file's: copies of weights, scratch.
    fn shared_bytes(&self) -> u64;

    /// Makes a graph ready to run. Blocks, and may take seconds.
    ///
    /// # Errors
    /// [`DeviceError`] when this graph cannot be had; others still can.
    fn prepare(&mut self, spec: &GraphSpec) -> Result<Box<dyn PreparedGraph>, DeviceError>;
}

/// A graph that is ready to run, with the buffers that it reads and writes. So a buffer of a wrong
/// size cannot be handed to it, and a device can use memory of its own for them.
pub trait PreparedGraph: Send {
    /// The buffer `[rows, width]` of an input, row-major, in the order of [`GraphSpec::inputs`].
    ///
    /// # Panics
    /// When there is no such input.
    fn input(&mut self, port: usize) -> &mut [f32];

    /// Computes the outputs from the inputs, and returns when they are there. Reports the nodes in
    /// order, as they end or, where that cannot be seen, at the end.
    ///
    /// # Errors
    /// [`DeviceError::Failed`]; the outputs are then worthless.
    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), DeviceError>;

    /// The buffer `[rows, width]` of an output after a run, in the order of
    /// [`GraphSpec::outputs`].
    ///
    /// # Panics
    /// When there is no such output.
    fn output(&self, port: usize) -> &[f32];

    /// Bytes that it keeps.
    fn bytes(&self) -> u64;
}

//! The weights of a model on a device: each is copied when a run first needs it, so a device holds
//! the weights of its own layers only.

use std::sync::Arc;

use super::ops::Matrix;
use super::pack::Stored;
use super::session::{Buffer, Session};
use crate::cpu::BindError;
use crate::device::DeviceError;
use crate::graph::{Graph, WeightId, WeightSpec};
use crate::reference::dequantize;
use crate::weights::{WeightFile, WeightTensor};

/// The weights of a graph.
#[derive(Debug)]
pub(super) struct DeviceWeights {
    device: String,
    session: Arc<Session>,
    graph: Arc<Graph>,
    tensors: Vec<WeightTensor>,
    matrices: Vec<Option<Matrix>>,
    vectors: Vec<Option<Buffer>>,
    bytes: usize,
}

impl DeviceWeights {
    /// The weights of `graph` in `file`. None is copied yet.
    ///
    /// # Errors
    /// [`BindError::Missing`] when `file` is not the one that the graph was built from.
    pub(super) fn new(
        device: &str,
        session: &Arc<Session>,
        (graph, file): (&Arc<Graph>, &WeightFile),
    ) -> Result<DeviceWeights, BindError> {
        let tensor = |(id, spec): (usize, &WeightSpec)| {
            let missing = || BindError::Missing { name: spec.name.clone() };
            graph.tensor(WeightId(id), file).ok_or_else(missing)
        };
        let tensors: Vec<_> =
            graph.weights().iter().enumerate().map(tensor).collect::<Result<_, _>>()?;
        Ok(DeviceWeights {
            device: device.to_owned(),
            session: Arc::clone(session),
            graph: Arc::clone(graph),
            matrices: tensors.iter().map(|_| None).collect(),
            vectors: tensors.iter().map(|_| None).collect(),
            tensors,
            bytes: 0,
        })
    }

    /// Bytes of all weights that have been copied.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies a matrix to the device, unless it is there.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the file cannot be read, or the device has not enough memory.
    pub(super) fn load_matrix(&mut self, id: WeightId) -> Result<(), DeviceError> {
        if self.matrices[id.0].is_some() {
            return Ok(());
        }
        let spec = &self.graph.weights()[id.0];
        let mut bytes = self.tensors[id.0].read().map_err(|error| self.failed(&error))?;
        if let Some(format) = self.graph.requant(id) {
            let values = dequantize(self.graph.stored(id), &bytes);
            bytes = format.quantize(&values, spec.cols).ok_or_else(|| {
                let error = BindError::Requant { name: spec.name.clone(), row: 0, format };
                self.failed(&error)
            })?;
        }
        let (rows, cols) = (spec.rows, spec.cols);
        let stored = Stored { dtype: spec.dtype, bytes: &bytes, rows, cols };
        let matrix = Matrix::upload(&self.session, stored, &spec.name);
        let matrix = matrix.map_err(|error| error.of_run(&self.device))?;
        self.bytes += matrix.bytes();
        self.matrices[id.0] = Some(matrix);
        Ok(())
    }

    /// Copies a vector to the device as f32, unless it is there.
    ///
    /// # Errors
    /// As [`load_matrix`](DeviceWeights::load_matrix).
    pub(super) fn load_vector(&mut self, id: WeightId) -> Result<(), DeviceError> {
        if self.vectors[id.0].is_some() {
            return Ok(());
        }
        let bytes = self.tensors[id.0].read().map_err(|error| self.failed(&error))?;
        let values = dequantize(self.graph.stored(id), &bytes);
        let name = &self.graph.weights()[id.0].name;
        let buffer = self.session.filled(bytemuck::cast_slice(&values), name);
        let buffer = buffer.map_err(|error| error.of_run(&self.device))?;
        self.bytes += buffer.bytes();
        self.vectors[id.0] = Some(buffer);
        Ok(())
    }

    /// A matrix that has been copied.
    pub(super) fn matrix(&self, id: WeightId) -> &Matrix {
        self.matrices[id.0].as_ref().expect("a matrix that was loaded")
    }

    /// A vector that has been copied.
    pub(super) fn vector(&self, id: WeightId) -> &Buffer {
        self.vectors[id.0].as_ref().expect("a vector that was loaded")
    }

    /// A vector on the host, as f32.
    ///
    /// # Errors
    /// [`BindError::Read`] when the file cannot be read.
    pub(super) fn on_host(&self, id: WeightId) -> Result<Vec<f32>, BindError> {
        Ok(dequantize(self.graph.stored(id), &self.tensors[id.0].read()?))
    }

    fn failed(&self, error: &dyn std::error::Error) -> DeviceError {
        let (device, reason) = (self.device.clone(), error.to_string());
        DeviceError::Failed { device, reason }
    }
}

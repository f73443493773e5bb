//! The weights of a model on a device: each is copied when a run first needs it, so a device holds
//! the weights of its own layers only.

mod experts;

use std::collections::HashMap;
use std::sync::Arc;

use super::ops::Matrix;
use super::pack::Stored;
use super::session::{Buffer, Session};
use experts::ExpertStack;
use lapwing_cpu::BindError;
use lapwing_model::device::DeviceError;
use lapwing_model::graph::{Graph, WeightId, WeightSpec};
use lapwing_model::op::Op;
use lapwing_model::reference::dequantize;
use lapwing_model::weights::{WeightFile, WeightTensor};

/// A matrix in the device's memory: all output channels of a buffer, or some of them.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) matrix: Arc<Matrix>,
    /// The first of its output channels.
    pub(super) first: usize,
}

/// The weights of a graph.
#[derive(Debug)]
pub(super) struct DeviceWeights {
    device: String,
    session: Arc<Session>,
    graph: Arc<Graph>,
    tensors: Vec<WeightTensor>,
    matrices: Vec<Option<Placed>>,
    /// Matrices of experts, by weight and the first row of an expert.
    stacks: HashMap<(usize, usize), ExpertStack>,
    vectors: Vec<Option<Buffer>>,
    /// Gains of norms without a weight.
    ones: Option<Buffer>,
    /// Factors of values, by weight.
    factors: HashMap<usize, f32>,
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
        graph: &Arc<Graph>,
        file: &WeightFile,
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
            stacks: HashMap::new(),
            ones: None,
            factors: HashMap::new(),
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
        self.load_joined(&[id]).map(drop)
    }

    /// Copies matrices with the same format and input channels to the device, one after another in one
    /// buffer, unless one of them is there already. Returns whether they are in one buffer.
    ///
    /// # Errors
    /// As [`load_matrix`](DeviceWeights::load_matrix).
    pub(super) fn load_joined(&mut self, ids: &[WeightId]) -> Result<bool, DeviceError> {
        let placed = |id: &WeightId| self.matrices[id.0].as_ref();
        let Some((first, rest)) = ids.split_first() else { return Ok(true) };
        if let Some(first) = placed(first) {
            let is_same = |other: &Placed| Arc::ptr_eq(&other.matrix, &first.matrix);
            return Ok(ids.iter().all(|id| placed(id).is_some_and(is_same)));
        }
        if rest.iter().any(|id| placed(id).is_some()) {
            return Ok(false);
        }
        let mut bytes = self.matrix_bytes(*first)?;
        for id in rest {
            bytes.extend(self.matrix_bytes(*id)?);
        }
        self.upload(ids, &bytes)?;
        Ok(true)
    }

    /// The values of a matrix in the format that the graph wants.
    fn matrix_bytes(&self, id: WeightId) -> Result<Vec<u8>, DeviceError> {
        let bytes = self.tensors[id.0].read().map_err(|error| self.failed(&error))?;
        self.in_format(id, bytes)
    }

    /// Rows of a matrix, as stored, in the format that the graph wants.
    fn in_format(&self, id: WeightId, bytes: Vec<u8>) -> Result<Vec<u8>, DeviceError> {
        let Some(format) = self.graph.requant(id) else { return Ok(bytes) };
        let WeightSpec { name, cols, .. } = &self.graph.weights()[id.0];
        let values = dequantize(self.graph.stored(id), &bytes);
        format.quantize(&values, *cols).ok_or_else(|| {
            let error = BindError::Requant { name: name.clone(), row: 0, format };
            self.failed(&error)
        })
    }

    /// Copies the bytes of matrices with the same format and input channels into one buffer.
    fn upload(&mut self, ids: &[WeightId], bytes: &[u8]) -> Result<(), DeviceError> {
        let specs = || ids.iter().map(|id| &self.graph.weights()[id.0]);
        let Some(WeightSpec { dtype, cols, name, .. }) = specs().next() else { return Ok(()) };
        let rows = specs().map(|spec| spec.rows).sum();
        let stored = Stored { dtype: *dtype, bytes, rows, cols: *cols };
        let matrix = Matrix::upload(&self.session, stored, name);
        let matrix = Arc::new(matrix.map_err(|error| error.of_run(&self.device))?);
        self.bytes += matrix.bytes();
        let mut first = 0;
        for id in ids {
            self.matrices[id.0] = Some(Placed { matrix: Arc::clone(&matrix), first });
            first += self.graph.weights()[id.0].rows;
        }
        Ok(())
    }

    /// Copies a vector to the device as f32, unless it is there.
    ///
    /// # Errors
    /// As [`load_matrix`](DeviceWeights::load_matrix).
    pub(super) fn load_vector(&mut self, id: WeightId) -> Result<(), DeviceError> {
        self.load_values(id, |values, _| values)
    }

    /// Copies the matrix that an op reads column by column to the device as f32, unless it is there.
    ///
    /// # Errors
    /// As [`load_matrix`](DeviceWeights::load_matrix).
    pub(super) fn load_by_column(&mut self, op: &Op) -> Result<(), DeviceError> {
        let Some((id, order)) = op.by_column() else { return Ok(()) };
        self.load_values(id, |values, cols| order.of(&values, cols))
    }

    /// Copies values to the device as f32 in the order that `order` gives them by the columns of their rows, unless they are there.
    fn load_values(
        &mut self,
        id: WeightId,
        order: impl FnOnce(Vec<f32>, usize) -> Vec<f32>,
    ) -> Result<(), DeviceError> {
        if self.vectors[id.0].is_some() {
            return Ok(());
        }
        let bytes = self.tensors[id.0].read().map_err(|error| self.failed(&error))?;
        let WeightSpec { name, cols, .. } = &self.graph.weights()[id.0];
        let values = order(dequantize(self.graph.stored(id), &bytes), *cols);
        let buffer = self.session.filled(bytemuck::cast_slice(&values), name);
        let buffer = buffer.map_err(|error| error.of_run(&self.device))?;
        self.bytes += buffer.bytes();
        self.vectors[id.0] = Some(buffer);
        Ok(())
    }

    /// Makes a vector of at least `len` ones on the device, unless there is one.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the device has not enough memory.
    pub(super) fn load_ones(&mut self, len: usize) -> Result<(), DeviceError> {
        let bytes = len * size_of::<f32>();
        if self.ones.as_ref().is_some_and(|ones| ones.bytes() >= bytes) {
            return Ok(());
        }
        let buffer = self.session.filled(bytemuck::cast_slice(&vec![1.0_f32; len]), "gains of 1");
        let buffer = buffer.map_err(|error| error.of_run(&self.device))?;
        self.bytes += buffer.bytes();
        self.ones = Some(buffer);
        Ok(())
    }

    /// The ones that were made last.
    pub(super) fn ones(&self) -> &Buffer {
        self.ones.as_ref().expect("ones that were made")
    }

    /// The only value of a vector, which is read from the file once.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the file cannot be read.
    pub(super) fn factor(&mut self, id: WeightId) -> Result<f32, DeviceError> {
        if let Some(factor) = self.factors.get(&id.0) {
            return Ok(*factor);
        }
        let values = self.on_host(id).map_err(|error| self.failed(&error))?;
        let factor = values.first().copied().unwrap_or(1.0);
        self.factors.insert(id.0, factor);
        Ok(factor)
    }

    /// Rows of a table that stays in the file, as f32 one after another.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the file cannot be read, or has been changed.
    pub(super) fn rows_on_host(&self, id: WeightId, rows: &[u32]) -> Result<Vec<f32>, DeviceError> {
        let (spec, dtype) = (&self.graph.weights()[id.0], self.graph.stored(id));
        self.tensors[id.0].check_unchanged().map_err(|error| self.failed(&error))?;
        let mut bytes = vec![0; dtype.row_bytes(spec.cols).unwrap_or(0)];
        let mut values = Vec::with_capacity(rows.len() * spec.cols);
        for row in rows {
            let read = self.tensors[id.0].read_range(*row as usize * bytes.len(), &mut bytes);
            read.map_err(|error| self.failed(&error))?;
            values.extend(dequantize(dtype, &bytes));
        }
        Ok(values)
    }

    /// A matrix that has been copied.
    pub(super) fn matrix(&self, id: WeightId) -> &Placed {
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

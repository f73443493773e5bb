//! Weights of a model as a back end and the check of its graphs use them: requantised where the graph says
//! so.

use std::ops::Range;
use std::sync::Arc;

use super::weight_form::WeightForm;
use lapwing_model::device::DeviceError;
use lapwing_model::graph::{Graph, WeightId};
use lapwing_model::reference;
use lapwing_model::weights::{WeightFile, WeightTensor};

/// Weights of a model.
#[derive(Clone, Debug)]
pub struct ModelWeights {
    device: String,
    /// The graph that they are the weights of.
    pub graph: Arc<Graph>,
    file: WeightFile,
    form: WeightForm,
}

impl ModelWeights {
    /// The weights of a graph in the file that it was built from. `device` is the device name for errors.
    pub fn new(device: &str, graph: &Arc<Graph>, file: &WeightFile) -> ModelWeights {
        let (device, graph) = (device.to_owned(), Arc::clone(graph));
        ModelWeights { device, graph, file: file.clone(), form: WeightForm::Stored }
    }

    /// The same weights as a device with this form has them.
    pub fn in_form(self, form: WeightForm) -> ModelWeights {
        ModelWeights { form, ..self }
    }

    /// Some rows of a matrix as floats `[rows, cols]`.
    ///
    /// # Errors
    /// As [`rows`](ModelWeights::rows).
    pub fn float_rows(
        &self,
        weight: WeightId,
        rows: Range<usize>,
    ) -> Result<Vec<f32>, DeviceError> {
        let dtype = self.graph.weights()[weight.0].dtype;
        Ok(reference::dequantize(dtype, &self.rows(weight, rows)?))
    }

    /// As [`float_rows`](ModelWeights::float_rows), rounded to integers if the form has these.
    ///
    /// # Errors
    /// As [`rows`](ModelWeights::rows).
    pub fn values(&self, weight: WeightId, rows: Range<usize>) -> Result<Vec<f32>, DeviceError> {
        let cols = self.graph.weights()[weight.0].cols;
        let mut values = self.float_rows(weight, rows)?;
        values.chunks_exact_mut(cols.max(1)).for_each(|row| self.form.round(row));
        Ok(values)
    }

    /// Some rows of a matrix, in its format for computation.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when they cannot be read or requantised.
    pub fn rows(&self, weight: WeightId, rows: Range<usize>) -> Result<Vec<u8>, DeviceError> {
        let spec = &self.graph.weights()[weight.0];
        let stored = self.graph.stored(weight);
        let row_bytes = stored.row_bytes(spec.cols).unwrap_or(0);
        let mut bytes = vec![0; rows.len() * row_bytes];
        let read = self.tensor(weight)?.read_range(rows.start * row_bytes, &mut bytes);
        read.map_err(|error| self.failed(error.to_string()))?;
        let Some(format) = self.graph.requant(weight) else { return Ok(bytes) };
        let values = reference::dequantize(stored, &bytes);
        let none = || self.failed(format!("'{}' has values that {format} cannot store", spec.name));
        format.quantize(&values, spec.cols).ok_or_else(none)
    }

    /// All values of a vector.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when it cannot be read.
    pub fn vector(&self, weight: WeightId) -> Result<Vec<f32>, DeviceError> {
        let dtype = self.graph.stored(weight);
        let bytes = self.tensor(weight)?.read().map_err(|error| self.failed(error.to_string()))?;
        Ok(reference::dequantize(dtype, &bytes))
    }

    /// The values of a vector that belong to some columns; its only value if it has one for all.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when it cannot be read, or is too short.
    pub fn factors(
        &self,
        weight: WeightId,
        columns: Range<usize>,
    ) -> Result<Vec<f32>, DeviceError> {
        let values = self.vector(weight)?;
        if values.len() == 1 {
            return Ok(values);
        }
        let name = &self.graph.weights()[weight.0].name;
        let part = values.get(columns).map(<[f32]>::to_vec);
        part.ok_or_else(|| self.failed(format!("'{name}' has too few values")))
    }

    /// An error of the device.
    pub fn failed(&self, reason: String) -> DeviceError {
        DeviceError::Failed { device: self.device.clone(), reason }
    }

    fn tensor(&self, weight: WeightId) -> Result<WeightTensor, DeviceError> {
        let name = &self.graph.weights()[weight.0].name;
        let tensor = self.graph.tensor(weight, &self.file);
        tensor.ok_or_else(|| self.failed(format!("the model file has no weight '{name}'")))
    }
}

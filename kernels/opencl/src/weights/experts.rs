//! Matrices of experts.

use super::DeviceWeights;
use crate::ops::{ExpertMatrices, Stack};
use lapwing_model::device::DeviceError;
use lapwing_model::op::ExpertMatrix;

impl DeviceWeights {
    /// Copies a matrix of each expert to the device, with its biases and factors, unless they are there. The matrix of an
    /// expert is read at a time.
    ///
    /// # Errors
    /// As [`load_matrix`](DeviceWeights::load_matrix).
    pub(crate) fn load_experts(&mut self, of: &ExpertMatrix) -> Result<(), DeviceError> {
        for vector in [of.bias, of.scale].into_iter().flatten() {
            self.load_vector(vector)?;
        }
        let key = (of.weight.0, of.first);
        if self.stacks.contains_key(&key) {
            return Ok(());
        }
        let (spec, tensor) = (&self.graph.weights()[of.weight.0], &self.tensors[of.weight.0]);
        let count = spec.rows / of.stride;
        let stack = Stack::new(&self.session, spec.dtype, [count, of.rows, spec.cols], &spec.name);
        let stack = stack.map_err(|error| error.of_run(&self.device))?;
        tensor.check_unchanged().map_err(|error| self.failed(&error))?;
        let row_bytes = self.graph.stored(of.weight).row_bytes(spec.cols).unwrap_or(0);
        for expert in 0..count {
            let mut bytes = vec![0; of.rows * row_bytes];
            let read = tensor.read_range(of.rows_of(expert).start * row_bytes, &mut bytes);
            read.map_err(|error| self.failed(&error))?;
            let bytes = self.in_format(of.weight, bytes)?;
            let put = stack.put(&self.session, expert, &bytes);
            put.map_err(|error| error.of_run(&self.device))?;
        }
        self.bytes += stack.bytes();
        self.stacks.insert(key, stack);
        Ok(())
    }

    /// Matrices of experts that have been copied.
    pub(crate) fn experts(&self, of: &ExpertMatrix) -> ExpertMatrices<'_> {
        let stack = self.stacks.get(&(of.weight.0, of.first));
        ExpertMatrices {
            stack: stack.expect("matrices that were loaded"),
            bias: of.bias.map(|bias| (self.vector(bias), [of.first, of.stride])),
            factors: of.scale.map(|scale| self.vector(scale)),
        }
    }
}

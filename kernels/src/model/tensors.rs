//! Shapes and formats of tensors, wherever they come from.

use std::collections::HashMap;

use crate::quant::DType;
use crate::weights::{Gguf, WeightFile};

/// Where the builder learns of tensors: a weight file, what stands in front of its data, or a
/// shape that has no file at all.
pub(super) trait Tensors {
    /// A tensor, if there is one of that name.
    fn find(&self, name: &str) -> Option<TensorSpec>;

    /// Names of all tensors, in order; of a shape, which has no more than what is asked for, none.
    fn names(&self) -> Vec<&str>;
}

/// Shape and format of a tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorSpec {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) dtype: DType,
}

impl Tensors for WeightFile {
    fn find(&self, name: &str) -> Option<TensorSpec> {
        let tensor = self.tensor(name)?;
        let shape = tensor.shape();
        Some(TensorSpec { rows: shape.rows(), cols: shape.cols(), dtype: tensor.dtype() })
    }

    fn names(&self) -> Vec<&str> {
        self.tensors().map(|tensor| tensor.name.as_str()).collect()
    }
}

/// A header's tensors by name, so that none is searched for.
pub(super) struct Header<'a> {
    gguf: &'a Gguf,
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Header<'a> {
    pub(super) fn new(gguf: &'a Gguf) -> Header<'a> {
        let names = gguf.tensors.iter().map(|tensor| tensor.name.as_str());
        Header { gguf, by_name: names.zip(0..).collect() }
    }
}

impl Tensors for Header<'_> {
    fn find(&self, name: &str) -> Option<TensorSpec> {
        let tensor = &self.gguf.tensors[*self.by_name.get(name)?];
        let shape = tensor.shape;
        Some(TensorSpec { rows: shape.rows(), cols: shape.cols(), dtype: tensor.dtype })
    }

    fn names(&self) -> Vec<&str> {
        self.gguf.tensors.iter().map(|tensor| tensor.name.as_str()).collect()
    }
}

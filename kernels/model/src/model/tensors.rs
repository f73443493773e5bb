//! Source of tensor shapes and formats for the graph builder.

use std::collections::HashMap;

use crate::formats::DType;
use crate::weights::{Gguf, WeightFile};

/// A source of tensor shapes: a weight file, the header of one, or a [`ModelShape`] without a file.
///
/// [`ModelShape`]: super::shape::ModelShape
pub(super) trait Tensors {
    /// The tensor of that name, if there is one.
    fn find(&self, name: &str) -> Option<TensorSpec>;

    /// Names of all tensors in order, to find unused ones; empty for a shape, which has none.
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

/// Tensors of a header, indexed by name.
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

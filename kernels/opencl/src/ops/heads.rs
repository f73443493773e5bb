//! Sizes of the heads of attention.

/// Values of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeadDims {
    /// Of a query and a key.
    pub(crate) key: usize,
    /// Of a value and an output.
    pub(crate) value: usize,
}

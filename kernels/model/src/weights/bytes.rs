//! Read-only bytes in memory, which parsed values refer to.

use std::ops::Deref;
use std::sync::Arc;

/// Shared, read-only bytes; freed when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Bytes(Arc<Vec<u8>>);

impl Bytes {
    pub(super) fn new(bytes: Vec<u8>) -> Bytes {
        Bytes(Arc::new(bytes))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

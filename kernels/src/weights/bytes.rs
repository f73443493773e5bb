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

    /// The bytes, for reuse; a copy if there is another clone.
    pub(super) fn into_vec(self) -> Vec<u8> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

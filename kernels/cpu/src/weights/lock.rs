//! Packed weights that stay resident.

use super::packed_use::{memories, packed_users};
use lapwing_model::weights::WeightFile;
use std::io;

/// The system did not lock the packed weights in memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot lock {bytes} bytes of weights in memory: {source}{}; leave out the lock, or free memory",
    hint(*limit)
)]
pub struct LockError {
    /// Bytes of all packed weights of the file.
    pub bytes: usize,
    /// Bytes that this process may lock, if the system has such a limit and it is below `bytes`.
    pub limit: Option<u64>,
    /// Error of the system.
    pub source: io::Error,
}

fn hint(limit: Option<u64>) -> String {
    let raise = |limit| format!("; this process may lock {limit} (raise it with `ulimit -l`)");
    limit.map(raise).unwrap_or_default()
}

/// Locks the packed weights of `file` that devices of this process use in memory, so that they are never
/// swapped out, nor dropped if their file is mapped (`mlock`). Weights of a mapped file are read for this, stay shared, and count for
/// the limit of each process that locks them. Other tensors, keys and values are not locked. Returns the locked bytes: 0 if
/// no CPU device holds weights. The lock ends with the weights.
///
/// # Errors
/// [`LockError`] when the system refuses, for example because of its limit on locked memory.
pub fn lock_packed(file: &WeightFile) -> Result<usize, LockError> {
    let used = packed_users(&[file]).weights();
    let memories = memories(&used);
    let bytes = memories.iter().map(|memory| memory.len()).sum();
    let failed = |source| {
        let limit = limit().filter(|limit| *limit < bytes as u64);
        LockError { bytes, limit, source }
    };
    if let Some(beyond) = memories.iter().find_map(|memory| memory.mapped()?.beyond()) {
        return Err(failed(io::Error::new(io::ErrorKind::OutOfMemory, beyond.to_string())));
    }
    memories.iter().try_for_each(|memory| memory.lock()).map_err(failed)?;
    Ok(bytes)
}

/// Bytes that this process may lock; `None` without a limit.
#[cfg(unix)]
fn limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Memlock).current
}

#[cfg(not(unix))]
fn limit() -> Option<u64> {
    None
}

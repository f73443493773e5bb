//! Digests of models, by which clients of Ollama's interface tell models apart.

use std::fs::File;
use std::io::{Read, Result};
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

/// Bytes of the largest file that is read as a whole; larger ones would delay the start.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// Bytes at the start of a larger file that count.
const HEAD_BYTES: u64 = 1 << 20;

/// The digest of a model's file as 64 hex digits: its SHA-256 as recorded when it was fetched, or computed if the file
/// is small. That of a large file without a record is computed from its size, the time of its last change and its first
/// bytes. `bytes` is the size of all of its files.
///
/// # Errors
/// When it cannot be read.
pub(super) fn of_model(path: &Path, bytes: u64) -> Result<String> {
    #[cfg(feature = "fetch")]
    if let Some(recorded) = lapwing_engine::models::recorded_sha256(path) {
        return Ok(recorded);
    }
    let mut file = File::open(path)?;
    let data = file.metadata()?;
    let mut hasher = Sha256::new();
    if bytes > WHOLE_BYTES_MAX {
        let changed = data.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        hasher.update(bytes.to_le_bytes());
        hasher.update(changed.as_nanos().to_le_bytes());
    }
    let most = if bytes > WHOLE_BYTES_MAX { HEAD_BYTES } else { WHOLE_BYTES_MAX };
    let mut head = Vec::new();
    file.by_ref().take(most).read_to_end(&mut head)?;
    hasher.update(&head);
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_with_other_bytes_have_other_digests() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, b"abc").expect("write");
        let whole = of_model(&path, 3).expect("a digest");
        assert_eq!(whole, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let large = of_model(&path, WHOLE_BYTES_MAX + 1).expect("a digest");
        let larger = of_model(&path, WHOLE_BYTES_MAX + 2).expect("a digest");
        assert!(large.len() == 64 && large != whole && large != larger, "{large} {larger}");
        assert_eq!(of_model(&path, WHOLE_BYTES_MAX + 1).expect("a digest"), large, "it stays");
    }
}

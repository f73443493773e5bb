//! SHA-256 of files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::blocking::WorkState;
use super::error::FetchError;

/// Size in bytes and SHA-256 in lower-case hex of a file.
pub(super) fn of_file(path: &Path, state: &WorkState) -> Result<(u64, String), FetchError> {
    let mut file = File::open(path).map_err(FetchError::io("open", path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut buffer).map_err(FetchError::io("read", path))?;
        if count == 0 {
            return Ok((bytes, hex(&hasher.finalize())));
        }
        hasher.update(&buffer[..count]);
        bytes += count as u64;
        state.advance(count as u64).map_err(FetchError::io("read", path))?;
    }
}

/// SHA-256 in lower-case hex of a text with these hashes, each on a line.
pub(super) fn of_hashes<'a>(hashes: impl IntoIterator<Item = &'a str>) -> String {
    let lines: String = hashes.into_iter().map(|hash| format!("{hash}\n")).collect();
    hex(&Sha256::digest(lines.as_bytes()))
}

/// The text in lower case, if it is a SHA-256 in hex.
pub(super) fn as_sha256(text: &str) -> Option<String> {
    (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| text.to_ascii_lowercase())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_equals_the_published_test_vector() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, b"abc").unwrap();
        let (bytes, hash) = of_file(&path, &WorkState::default()).unwrap();
        assert_eq!(bytes, 3);
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_git_object_id_is_not_a_sha256() {
        assert_eq!(as_sha256("c3ab8ff13720e8ad9047dd39466b3c8974e592c2"), None);
        assert_eq!(as_sha256(&"zz".repeat(32)), None);
        assert_eq!(as_sha256(&"AB".repeat(32)), Some("ab".repeat(32)));
    }
}

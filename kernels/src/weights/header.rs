//! Reads as much of a file as its header, metadata and tensor table take.

use super::bytes::Bytes;
use super::data_file::DataFile;
use super::error::{Fault, WeightError};
use super::gguf::Gguf;
use super::split::Reader;

/// Bytes read first; enough for the whole header of a model with a small vocabulary.
const FIRST_BYTES: u64 = 256 << 10;
/// Growth of each further read.
const GROWTH: u64 = 4;
/// Largest accepted header; real ones have a few megabytes.
const HEADER_BYTES_MAX: u64 = 512 << 20;

/// Why the first bytes of a file could not be parsed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: WeightError,
    /// If only more bytes of the file are needed: how many from its start.
    pub(super) missing: Option<u64>,
}

impl From<Failure> for WeightError {
    fn from(failure: Failure) -> WeightError {
        failure.error
    }
}

/// Parses the header of a file; also returns its bytes, which the metadata refers to.
pub(super) fn read(file: &DataFile, reader: Reader) -> Result<(Gguf, Bytes), WeightError> {
    let total = file.len();
    let mut bytes = Bytes::new(Vec::new());
    let mut want = FIRST_BYTES;
    loop {
        bytes = extend(bytes, file, want.min(total))?;
        let Failure { error, missing } = match reader(&bytes, total) {
            Ok(gguf) if gguf.header_bytes == bytes.len() => return Ok((gguf, bytes)),
            Ok(gguf) => {
                // Parsed again without the tensor data after it, so that these are not kept.
                let end = gguf.header_bytes;
                drop(gguf);
                let mut header = bytes.into_vec();
                header.truncate(end);
                header.shrink_to_fit();
                let header = Bytes::new(header);
                return Ok((reader(&header, total)?, header));
            }
            Err(failure) => failure,
        };
        let Some(missing) = missing else { return Err(error) };
        if missing > HEADER_BYTES_MAX {
            let fault = Fault::AboveLimit { found: missing, limit: HEADER_BYTES_MAX };
            let field = "size of metadata and tensor table".to_owned();
            return Err(WeightError::Field { field, offset: 0, fault });
        }
        want = missing.max(want * GROWTH).min(HEADER_BYTES_MAX);
    }
}

/// Reads on, until `bytes` has the first `len` bytes of the file.
fn extend(bytes: Bytes, file: &DataFile, len: u64) -> Result<Bytes, WeightError> {
    let mut bytes = bytes.into_vec();
    let (start, len) = (bytes.len(), len as usize);
    let refused = |error| WeightError::Read { fault: std::io::Error::other(error).into() };
    bytes.try_reserve_exact(len - start).map_err(refused)?;
    bytes.resize(len, 0);
    file.read(start as u64, &mut bytes[start..]).map_err(|fault| WeightError::Read { fault })?;
    Ok(Bytes::new(bytes))
}

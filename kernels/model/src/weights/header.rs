//! Reads as much of a file as its header, metadata and tensor table take.

use super::bytes::Bytes;
use super::data_file::DataFile;
use super::error::{Fault, WeightError};
use super::gguf::Gguf;
use super::skim;
use super::split::Reader;

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
    let (bytes, fault) = skim::header(file, HEADER_BYTES_MAX);
    let bytes = Bytes::new(bytes);
    let Failure { error, missing } = match reader(&bytes, file.bytes_total()) {
        Ok(gguf) => return Ok((gguf, bytes)),
        Err(failure) => failure,
    };
    Err(match (missing, fault) {
        (Some(_), Some(fault)) => WeightError::Read { fault },
        (Some(found), None) if found > HEADER_BYTES_MAX => WeightError::Field {
            field: "size of metadata and tensor table".to_owned(),
            offset: 0,
            fault: Fault::AboveLimit { found, limit: HEADER_BYTES_MAX },
        },
        _ => error,
    })
}

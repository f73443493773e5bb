//! The header of a file of which only the first bytes are here.

use super::bytes::Bytes;
use super::error::WeightError;
use super::gguf::{self, Gguf};
use super::header::Failure;

/// The first bytes of a GGUF file, as far as they can be read.
#[derive(Clone, Debug)]
pub enum HeaderStart {
    /// They hold the whole header: metadata and tensor table.
    Whole(Gguf),
    /// They end within the header: at least so many bytes from the start of the file are needed.
    Needs(u64),
}

/// Reads metadata and tensor table from the first bytes of a GGUF file of `total` bytes. Copies the bytes once, because the
/// metadata refers to them.
///
/// # Errors
/// [`WeightError`] names the invalid field and its byte offset. That a field or the data of a tensor end beyond `total` bytes is
/// such an error.
pub fn parse_start(bytes: &[u8], total: u64) -> Result<HeaderStart, WeightError> {
    // Fewer bytes than the first number has are described as a file that is not GGUF.
    let least = 24;
    if (bytes.len() as u64) < least.min(total) {
        return Ok(HeaderStart::Needs(least.min(total)));
    }
    match gguf::read(&Bytes::new(bytes.to_vec()), total) {
        Ok(gguf) => Ok(HeaderStart::Whole(gguf)),
        Err(Failure { missing: Some(needed), .. }) => Ok(HeaderStart::Needs(needed)),
        Err(Failure { error, missing: None }) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::DType;
    use crate::weights::GgufWriter;

    fn file() -> Vec<u8> {
        let mut file = Vec::new();
        GgufWriter::new()
            .meta("general.architecture", "llama")
            .meta("tokenizer.ggml.tokens", vec!["a".to_owned(), "bc".repeat(40)])
            .tensor("x", &[32, 2], DType::F32, vec![1; 256])
            .write_to(&mut file)
            .unwrap();
        file
    }

    #[test]
    fn every_shorter_start_needs_more_bytes_until_the_header_is_whole() {
        let file = file();
        let total = file.len() as u64;
        let mut whole = None;
        for len in 0..=file.len() {
            match parse_start(&file[..len], total).unwrap() {
                HeaderStart::Needs(needed) => {
                    assert!(whole.is_none(), "{len} bytes need more than {whole:?}");
                    assert!(needed > len as u64 && needed <= total, "{len}: {needed}");
                }
                HeaderStart::Whole(gguf) => {
                    assert_eq!((gguf.tensors.len(), gguf.metadata.len()), (1, 2));
                    whole.get_or_insert(len);
                }
            }
        }
        assert_eq!(whole, Some(252), "neither the data nor the 4 bytes before them are needed");
    }

    #[test]
    fn what_cannot_be_in_a_file_of_that_size_is_an_error_and_no_wish_for_more_bytes() {
        let file = file();
        let total = file.len() as u64;
        let short = parse_start(&file, total - 1).unwrap_err();
        assert!(short.to_string().contains("tensor 0 'x'"), "{short}");
        let mut hostile = file.clone();
        // The number of tensors.
        hostile[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(parse_start(&hostile[..64], total).is_err());
        assert!(parse_start(b"<!doctype html><html><body>", 27).is_err());
        assert!(parse_start(b"", 0).is_err());
    }
}

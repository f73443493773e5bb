//! The header of a file of packed weights:
//!
//! ```text
//! 0   "LWPACKED"
//! 8   u32  version of this format
//! 12  u32  version of the packed values
//! 16  u32  n, bytes of the body
//! 20  u32  CRC-32 of the 20 bytes before and of the body
//! 24  body: u32 length and text of the source, u32 length and text of the matrices, u64 bytes of the
//!     data, u32 CRC-32 of each 1 MiB of the data
//!     zeros up to a multiple of 4096, then the data, to the end of the file
//! ```
//!
//! Numbers are little-endian. A reader builds the expected body and compares: n is the only length
//! in the file that is ever used.

use super::error::CacheReadError;
use super::key::CacheKey;
use crate::packed::file_data::{CHUNK, FileData};

const MAGIC: [u8; 8] = *b"LWPACKED";
/// Version of this format.
const FORMAT: u32 = 1;
/// Version of the packed values; any change of what packing writes must raise it.
const VALUES: u32 = 2;
/// Offset of the body.
const BODY: usize = 24;
/// Bytes that tell the size of the header.
pub(super) const PREFIX: usize = BODY;
/// The data start at a multiple of this, a memory page.
const PAGE: usize = 4096;

/// A valid header.
#[derive(Debug)]
pub(super) struct FileHeader {
    /// The data.
    pub(super) data: FileData,
    /// The header's checksum.
    pub(super) sum: u32,
}

/// The body before the checksums.
fn expected(key: &CacheKey) -> [Vec<u8>; 3] {
    let text = |text: &str| {
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        [&len.to_le_bytes(), text.as_bytes()].concat()
    };
    let bytes = (key.bytes as u64).to_le_bytes().to_vec();
    [text(&key.source), text(&key.matrices), bytes]
}

/// Everything before the data.
pub(super) fn header(key: &CacheKey, checksums: &[u32]) -> Vec<u8> {
    let mut body = expected(key).concat();
    body.extend(checksums.iter().flat_map(|sum| sum.to_le_bytes()));
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut head = MAGIC.to_vec();
    [FORMAT, VALUES, len].iter().for_each(|number| head.extend(number.to_le_bytes()));
    let sum = sum(&head, &body);
    head.extend(sum.to_le_bytes());
    head.extend(body);
    head.resize(head.len().next_multiple_of(PAGE), 0);
    head
}

/// Bytes of everything before the data.
pub(super) fn bytes(key: &CacheKey) -> usize {
    let texts: usize = expected(key).iter().map(Vec::len).sum();
    let sums = key.bytes.div_ceil(CHUNK) * size_of::<u32>();
    (BODY + texts + sums).next_multiple_of(PAGE)
}

fn sum(before: &[u8], body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(before);
    sum.update(body);
    sum.finalize()
}

/// Bytes of a file's start that [`check`] needs, given its first [`PREFIX`] bytes or all of a shorter
/// file.
pub(super) fn bytes_needed(prefix: &[u8]) -> u64 {
    let number = prefix.get(16..).and_then(<[u8]>::first_chunk);
    let body = number.map_or(0, |bytes| u32::from_le_bytes(*bytes));
    (BODY as u64 + u64::from(body)).next_multiple_of(PAGE as u64)
}

/// Checks everything except the checksums of the data. `file` is the start of a file of `len` bytes:
/// as many as [`bytes_needed`], or all of a shorter file.
pub(super) fn check(file: &[u8], len: u64, key: &CacheKey) -> Result<FileHeader, CacheReadError> {
    if !file.starts_with(&MAGIC) {
        return Err(CacheReadError::Foreign);
    }
    let damaged = |what| CacheReadError::Damaged { what };
    let (first, rest) = file.split_at_checked(BODY).ok_or(damaged("it ends early"))?;
    let number = |at: usize| match first.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => 0,
    };
    if (number(8), number(12)) != (FORMAT, VALUES) {
        return Err(CacheReadError::Version {
            found: format!("{}.{}", number(8), number(12)),
            expected: format!("{FORMAT}.{VALUES}"),
        });
    }
    let body = rest.get(..number(16) as usize).ok_or(damaged("it ends early"))?;
    if sum(&first[..20], body) != number(20) {
        return Err(damaged("its header"));
    }
    let [source, matrices, bytes] = expected(key);
    let body = body.strip_prefix(&source[..]).ok_or(CacheReadError::Stale)?;
    let body = body.strip_prefix(&matrices[..]).ok_or(CacheReadError::Other)?;
    let body = body.strip_prefix(&bytes[..]).ok_or(CacheReadError::Other)?;
    let (checksums, []) = body.as_chunks() else { return Err(damaged("its checksums")) };
    if checksums.len() != key.bytes.div_ceil(CHUNK) {
        return Err(damaged("its checksums"));
    }
    let end = BODY + number(16) as usize;
    let start = end.next_multiple_of(PAGE);
    if len.checked_sub(start as u64) != Some(key.bytes as u64) {
        return Err(damaged("its length"));
    }
    if file[end..start].iter().any(|byte| *byte != 0) {
        return Err(damaged("its padding"));
    }
    let range = start..start + key.bytes;
    Ok(FileHeader { data: FileData { range, checksums: checksums.to_vec() }, sum: number(20) })
}

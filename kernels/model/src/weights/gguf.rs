//! Reads GGUF, versions 2 and 3: header, metadata, tensor table, aligned data.
//! Source: the GGUF specification (`docs/gguf.md` of ggml).

use std::collections::HashMap;

use super::bytes::Bytes;
use super::cursor::{Cursor, bad};
use super::error::{Fault, WeightError};
use super::header::Failure;
use super::metadata::Metadata;
use super::tensor::{self, DataSection, TensorInfo};
use super::value::{Value, ValueReader};

/// Metadata key of the tensor data alignment.
pub(super) const ALIGNMENT_KEY: &str = "general.alignment";
/// Default alignment of tensor data, in bytes.
pub(super) const ALIGNMENT: u32 = 32;

/// Maximum key length in the specification, in bytes.
pub(super) const KEY_BYTES_MAX: u64 = 65_535;
/// Maximum number of keys accepted; real files have fewer than 100.
pub(super) const KEYS_MAX: u64 = 65_536;
/// Maximum number of tensors accepted; real files have a few thousand.
pub(super) const TENSORS_MAX: u64 = 262_144;

/// Everything in a GGUF file except the tensor data.
#[derive(Clone, Debug)]
pub struct Gguf {
    /// Format version, 2 or 3.
    pub version: u32,
    /// Metadata: key-value pairs.
    pub metadata: Metadata,
    /// Tensors in file order; [`parse`] has checked that their data is inside the file.
    pub tensors: Vec<TensorInfo>,
    /// Alignment of tensor data in bytes, a power of two.
    pub alignment: u32,
}

/// Reads a GGUF file from memory. Copies the bytes once, because the metadata refers to them;
/// [`WeightFile::open`](super::WeightFile::open) reads only what precedes the tensor data.
///
/// # Errors
/// [`WeightError`] names the invalid field and its byte offset.
pub fn parse(bytes: &[u8]) -> Result<Gguf, WeightError> {
    Ok(read(&Bytes::new(bytes.to_vec()), bytes.len() as u64)?)
}

/// Reads metadata and tensor table from the first bytes of a GGUF file; the tensor data may be
/// missing. Such a model can be planned and simulated, but not run.
///
/// # Errors
/// [`WeightError`] names the invalid field and its byte offset.
pub fn parse_header(bytes: &[u8]) -> Result<Gguf, WeightError> {
    Ok(read_header(&Bytes::new(bytes.to_vec()), bytes.len() as u64)?)
}

/// As [`read`], but the tensor data may be missing.
pub(super) fn read_header(bytes: &Bytes, total: u64) -> Result<Gguf, Failure> {
    read_within(bytes, total, u64::MAX)
}

/// Reads the first bytes of a file of `total` bytes. The metadata keeps a reference to `bytes`.
pub(super) fn read(bytes: &Bytes, total: u64) -> Result<Gguf, Failure> {
    read_within(bytes, total, total)
}

/// As [`read`], with the data section checked against a file length of `file_bytes`.
fn read_within(bytes: &Bytes, total: u64, file_bytes: u64) -> Result<Gguf, Failure> {
    let mut cursor = Cursor::of_start(bytes, total);
    let gguf = read_all(bytes, &mut cursor, file_bytes);
    gguf.map_err(|error| Failure { error, missing: cursor.missing() })
}

fn read_all(bytes: &Bytes, cursor: &mut Cursor<'_>, limit: u64) -> Result<Gguf, WeightError> {
    let version = read_version(bytes, cursor)?;
    let tensor_count = read_count(cursor, "tensor count", TENSORS_MAX, 33)?;
    let key_count = read_count(cursor, "metadata key count", KEYS_MAX, 14)?;
    let (metadata, alignment) = read_metadata(bytes, cursor, key_count)?;
    let table_at = cursor.at();
    let entries = tensor::read_table(cursor, tensor_count)?;
    let start = (cursor.at() as u64)
        .checked_next_multiple_of(alignment.into())
        .ok_or_else(|| bad(format_args!("tensor data"), table_at, Fault::Overflow("its start")))?;
    let data = DataSection { start, alignment: alignment.into(), file_bytes: limit };
    let tensors = tensor::place(entries, &data)?;
    Ok(Gguf { version, metadata, tensors, alignment })
}

fn read_version(bytes: &[u8], cursor: &mut Cursor<'_>) -> Result<u32, WeightError> {
    if !bytes.starts_with(b"GGUF") {
        return Err(WeightError::NotGguf { found: describe_start(bytes) });
    }
    cursor.u32(format_args!("magic"))?;
    let version = cursor.u32(format_args!("version"))?;
    match version {
        2 | 3 => Ok(version),
        _ if (1..=0xffff).contains(&version.swap_bytes()) => {
            Err(WeightError::BigEndian { version: version.swap_bytes() })
        }
        _ => Err(WeightError::Version { found: version }),
    }
}

/// The first bytes of a file that is not GGUF, and the format that they indicate.
fn describe_start(bytes: &[u8]) -> String {
    const KNOWN: [(&[u8], &str); 9] = [
        (b"lmgg", "ggml, older than GGUF: `lapwing convert OLD NEW.gguf` converts it"),
        (b"fmgg", "ggmf, older than GGUF: `lapwing convert OLD NEW.gguf` converts it"),
        (b"tjgg", "ggjt, older than GGUF: `lapwing convert OLD NEW.gguf` converts it"),
        (b"algg", "ggla, a LoRA older than GGUF"),
        (b"FUGG", "big-endian GGUF"),
        (b"PK\x03\x04", "a zip archive or a PyTorch checkpoint"),
        (b"version https://git-lfs", "a Git LFS pointer instead of the file"),
        (b"<", "a web page or XML"),
        (b"{", "JSON"),
    ];
    if bytes.is_empty() {
        return "missing, the file is empty".to_owned();
    }
    let first = &bytes[..bytes.len().min(4)];
    let shown = format!("'{}' ({first:02x?})", first.escape_ascii());
    match KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        Some((_, what)) => format!("{shown}, {what}"),
        None => shown,
    }
}

/// Reads the number of entries of a table, each of at least `least` bytes.
fn read_count(
    cursor: &mut Cursor<'_>,
    field: &str,
    limit: u64,
    least: u64,
) -> Result<u64, WeightError> {
    let at = cursor.at();
    let found = cursor.u64(format_args!("{field}"))?;
    if found.checked_mul(least).is_none_or(|bytes| bytes > cursor.left()) {
        let what = format!("table of {found} entries");
        let fault = Fault::PastEnd { what, left: cursor.left() };
        return Err(bad(format_args!("{field}"), at, fault));
    }
    if found > limit {
        return Err(bad(format_args!("{field}"), at, Fault::AboveLimit { found, limit }));
    }
    Ok(found)
}

fn read_metadata(
    bytes: &Bytes,
    cursor: &mut Cursor<'_>,
    count: u64,
) -> Result<(Metadata, u32), WeightError> {
    let mut entries = Vec::new();
    let mut keys: HashMap<&str, u64> = HashMap::new();
    let mut alignment = ALIGNMENT;
    for index in 0..count {
        let key_at = cursor.at();
        let key = cursor.name(format_args!("metadata key {index}: key"), KEY_BYTES_MAX)?;
        if let Some(first) = keys.insert(key, index) {
            let fault = Fault::Duplicate { first };
            return Err(bad(format_args!("metadata key {index} '{key}'"), key_at, fault));
        }
        let value_at = cursor.at();
        let field = format_args!("metadata key {index} '{key}'");
        let value = ValueReader { bytes, field }.typed(cursor)?;
        if key == ALIGNMENT_KEY {
            alignment = check_alignment(&value).map_err(|fault| bad(field, value_at, fault))?;
        }
        entries.push((key.to_owned(), value));
    }
    Ok((Metadata::new(entries), alignment))
}

fn check_alignment(value: &Value) -> Result<u32, Fault> {
    match value {
        Value::U32(0) => Err(Fault::Zero),
        Value::U32(v) if v.is_power_of_two() => Ok(*v),
        Value::U32(v) => Err(Fault::Unknown { found: (*v).into(), expected: "a power of two" }),
        other => Err(Fault::WrongType { found: other.type_name(), expected: "u32" }),
    }
}

//! Truncated, corrupt or malicious files: each is refused with an error that names the field, and none
//! causes a panic.

use lapwing_kernels::weights::parse;

use crate::gguf_bytes::{Raw, bytes, rich};

const STRING: u32 = 8;
const ARRAY: u32 = 9;
const U32: u32 = 4;
const BOOL: u32 = 7;

/// Description of the defect, the file, and a text that the error must contain.
pub(crate) type Row = (&'static str, Raw, &'static str);

pub(crate) fn check(rows: Vec<Row>) {
    for (what, raw, expected) in rows {
        let error = parse(&raw.0).map(|_| ()).expect_err(what).to_string();
        assert!(error.contains(expected), "{what}: '{error}' does not say '{expected}'");
    }
}

fn raw(bytes: &[u8]) -> Raw {
    Raw(bytes.to_vec())
}

fn key(name: &str) -> Raw {
    Raw::header(0, 1).text(name)
}

#[test]
fn an_invalid_header_is_refused() {
    let magic = b"GGUF";
    check(vec![
        ("empty", raw(b""), "magic at byte 0 is missing, the file is empty"),
        ("short magic", raw(b"GGU"), "magic at byte 0 is 'GGU'"),
        ("ggml", raw(b"lmgg\x01\0\0\0"), "ggml, older than GGUF"),
        ("ggjt", raw(b"tjgg\x03\0\0\0"), "ggjt, older than GGUF"),
        ("zip", raw(b"PK\x03\x04...."), "a zip archive"),
        ("git lfs", raw(b"version https://git-lfs.github.com/spec/v1"), "Git LFS"),
        ("html", raw(b"<html>"), "a web page"),
        ("no version", raw(magic).raw(&[3, 0]), "version at byte 4: a number of 4 bytes"),
        ("version 0", raw(magic).u32(0), "GGUF version 0 is not supported"),
        ("version 1", raw(magic).u32(1), "version 1 is not supported, only 2 and 3 are; convert"),
        ("version 4", raw(magic).u32(4), "version 4 is not supported"),
        ("big-endian", raw(magic).raw(&[0, 0, 0, 3]), "big-endian (version 3)"),
        ("no counts", raw(magic).u32(3), "tensor count at byte 8"),
        ("many tensors", Raw::header(u64::MAX, 0), "tensor count at byte 8: table of 18446744"),
        ("tensors > file", Raw::header(2, 0).raw(&[0; 57]), "tensor count at byte 8: table of 2"),
        ("many keys", Raw::header(0, 1 << 60), "metadata key count at byte 16: table of 11529215"),
        (
            "more tensors than any model",
            Raw::header(262_145, 0).raw(&vec![0; 262_145 * 33]),
            "tensor count at byte 8: 262145 is above the limit of 262144",
        ),
        (
            "more keys than any model",
            Raw::header(0, 65_537).raw(&vec![0; 65_537 * 14]),
            "metadata key count at byte 16: 65537 is above the limit of 65536",
        ),
    ]);
}

#[test]
fn an_invalid_key_is_refused() {
    check(vec![
        ("no key", Raw::header(0, 1).raw(&[0; 14]), "metadata key 0: key at byte 24: it is empty"),
        (
            "key > file",
            Raw::header(0, 1).u64(1 << 40).raw(&[0; 9]),
            "metadata key 0: key at byte 24: string of 1099511627776 bytes does not fit in the 9",
        ),
        (
            "long key",
            Raw::header(0, 1).text(&"k".repeat(65_536)).u32(U32).u32(0),
            "metadata key 0: key: length at byte 24: 65536 is above the limit of 65535",
        ),
        (
            "key not UTF-8",
            Raw::header(0, 1).u64(1).raw(&[0xff]).u32(U32).u32(0),
            "metadata key 0: key at byte 24: it is not valid UTF-8",
        ),
        (
            "the same key twice",
            Raw::header(0, 2).text("a").u32(U32).u32(0).text("a").u32(U32).u32(0),
            "metadata key 1 'a' at byte 41: it is a duplicate of number 0",
        ),
        ("no value type", key("abcd").raw(&[0; 2]), "metadata key 0 'abcd': value type at byte 36"),
        (
            "unknown value type",
            key("a").u32(13).u64(0),
            "metadata key 0 'a': value type at byte 33: 13 is not a value type (0 to 12)",
        ),
    ]);
}

#[test]
fn an_invalid_value_is_refused() {
    check(vec![
        ("no value", key("a").u32(10).raw(&[0; 7]), "metadata key 0 'a' at byte 37"),
        ("bool 2", key("a").u32(BOOL).raw(&[2]), "'a' at byte 37: 2 is not a bool (0 or 1)"),
        (
            "string > file",
            key("a").u32(STRING).u64(u64::MAX),
            "metadata key 0 'a' at byte 37: string of 18446744073709551615 bytes does not fit in \
             the 0 bytes left",
        ),
        (
            "no string length",
            key("a").u32(STRING).raw(&[0; 3]),
            "metadata key 0 'a': string length at byte 37",
        ),
        (
            "no element type",
            key("a").u32(ARRAY).raw(&[0; 3]),
            "metadata key 0 'a': array element type at byte 37",
        ),
        (
            "unknown element type",
            key("a").u32(ARRAY).u32(99).u64(0),
            "metadata key 0 'a': array element type at byte 37: 99 is not a value type",
        ),
        (
            "no array length",
            key("a").u32(ARRAY).u32(U32).u32(0),
            "metadata key 0 'a': array length at byte 41",
        ),
        (
            "10^18 strings",
            key("tokens").u32(ARRAY).u32(STRING).u64(1_000_000_000_000_000_000).raw(&[0; 100]),
            "metadata key 0 'tokens' at byte 46: array of 1000000000000000000 strings does not \
             fit in the 100 bytes left",
        ),
        (
            "size of an array overflows",
            key("a").u32(ARRAY).u32(U32).u64(1 << 62).raw(&[0; 8]),
            "'a' at byte 41: array of 4611686018427387904 u32s does not fit in the 8 bytes left",
        ),
        (
            "one number too few",
            key("a").u32(ARRAY).u32(U32).u64(3).raw(&[0; 11]),
            "'a' at byte 41: array of 3 u32s does not fit in the 11 bytes left",
        ),
        (
            "string in an array > file",
            key("a").u32(ARRAY).u32(STRING).u64(2).text("x").u64(5).raw(&[0; 4]),
            "metadata key 0 'a', element 1 at byte 58: string of 5 bytes does not fit in the 4",
        ),
        (
            "bool 3 in an array",
            key("a").u32(ARRAY).u32(BOOL).u64(3).raw(&[1, 0, 3]),
            "'a' at byte 51: 3 is not a bool",
        ),
        ("deep arrays", deep_arrays(100_000), "'a' at byte 85: arrays are nested more than 4 deep"),
    ]);
}

fn deep_arrays(depth: usize) -> Raw {
    (0..depth).fold(key("a").u32(ARRAY), |raw, _| raw.u32(ARRAY).u64(1)).u32(U32).u64(0)
}

#[test]
fn an_invalid_alignment_is_refused() {
    let aligned = |value: u32| key("general.alignment").u32(U32).u32(value);
    let name = "metadata key 0 'general.alignment' at byte 49: ";
    check(vec![
        ("zero", aligned(0), "metadata key 0 'general.alignment' at byte 49: it is zero"),
        ("48", aligned(48), "metadata key 0 'general.alignment' at byte 49: 48 is not a power of"),
        (
            "u64",
            key("general.alignment").u32(10).u64(32),
            "metadata key 0 'general.alignment' at byte 49: it has type u64, but must be u32",
        ),
        ("string", key("general.alignment").u32(STRING).text("32"), name),
        (
            "data behind the end",
            Raw::header(1, 1)
                .text("general.alignment")
                .u32(U32)
                .u32(1 << 31)
                .tensor("t", &[1], 0, 0)
                .raw(&[0; 100]),
            "tensor 0 't': data offset",
        ),
    ]);
}

#[test]
fn a_file_truncated_at_any_byte_is_refused() {
    let whole = bytes(&rich());
    let gguf = parse(&whole).unwrap();
    let end = gguf.tensors.iter().map(|t| t.range().end).max().unwrap();
    for len in 0..end {
        let error = parse(&whole[..len]).map(|_| ()).expect_err("a part of a file").to_string();
        assert!(error.contains(" at byte "), "cut at {len}: '{error}' names no byte");
    }
    assert!(parse(&whole[..end]).is_ok(), "padding behind the last tensor may be missing");
}

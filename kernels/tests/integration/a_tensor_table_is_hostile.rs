//! Corrupt or malicious tensor tables: each is refused with an error that names the field.

use crate::a_weight_file_is_hostile::check;
use crate::gguf_bytes::Raw;

#[test]
fn an_invalid_tensor_name_is_refused() {
    let one = || Raw::header(1, 0);
    check(vec![
        ("no name", one().text("").raw(&[0; 33]), "tensor 0: name at byte 24: it is empty"),
        (
            "long name",
            one().text(&"n".repeat(257)).raw(&[0; 33]),
            "tensor 0: name: length at byte 24: 257 is above the limit of 256",
        ),
        (
            "name not UTF-8",
            one().u64(1).raw(&[0xff]).raw(&[0; 33]),
            "tensor 0: name at byte 24: it is not valid UTF-8",
        ),
        (
            "name > file",
            one().u64(1 << 50).raw(&[0; 33]),
            "tensor 0: name at byte 24: string of 1125899906842624 bytes does not fit in the 33",
        ),
        (
            "the same name twice",
            Raw::header(2, 0).tensor("t", &[1], 0, 0).tensor("t", &[1], 0, 32).data(64),
            "tensor 1 't': name at byte 57: it is a duplicate of number 0",
        ),
    ]);
}

#[test]
fn an_invalid_tensor_shape_or_type_is_refused() {
    let one = || Raw::header(1, 0);
    check(vec![
        (
            "no dimensions",
            one().tensor("t", &[], 0, 0).data(32),
            "tensor 0 't': number of dimensions at byte 33: 0 is not between 1 and 4",
        ),
        (
            "five dimensions",
            one().tensor("t", &[1; 5], 0, 0).data(32),
            "tensor 0 't': number of dimensions at byte 33: 5 is not between 1 and 4",
        ),
        (
            "zero rows",
            one().tensor("t", &[1, 0], 0, 0).data(32),
            "tensor 0 't': dimension 1 at byte 45: it is zero",
        ),
        (
            "values overflow",
            one().tensor("t", &[1 << 40, 1 << 40], 0, 0).data(32),
            "tensor 0 't': dimensions at byte 33: the number of values overflows",
        ),
        (
            "bytes overflow",
            one().tensor("t", &[1 << 62, 2], 0, 0).data(32),
            "tensor 0 't': dimensions at byte 33: the number of bytes overflows",
        ),
        (
            "part of a block",
            one().tensor("t", &[33], 2, 0).data(64),
            "tensor 0 't': dimension 0 at byte 37: 33 columns are not a multiple of Q4_0's block",
        ),
        (
            "F64",
            one().tensor("blk.0.ffn", &[256], 28, 0).data(2048),
            "tensor 0 'blk.0.ffn': type at byte 53: ggml_type 28 (F64) is not supported; \
             supported are F32, F16",
        ),
        (
            "type without a name",
            one().tensor("t", &[256], 77, 0).data(128),
            "tensor 0 't': type at byte 45: unknown ggml_type 77 is not supported",
        ),
    ]);
}

#[test]
fn an_invalid_tensor_offset_is_refused() {
    let one = || Raw::header(1, 0);
    check(vec![
        (
            "offset not aligned",
            one().tensor("t", &[1], 0, 4).data(64),
            "tensor 0 't': data offset at byte 49: 4 is not a multiple of the alignment 32",
        ),
        (
            "offset behind the end",
            one().tensor("t", &[1], 0, 1 << 60).data(64),
            "tensor 0 't': data offset at byte 49: F32 tensor of 4 bytes at offset 1152921504",
        ),
        (
            "offset overflows",
            one().tensor("t", &[1], 0, u64::MAX - 31).data(64),
            "tensor 0 't': data offset at byte 49",
        ),
        (
            "data > file",
            one().tensor("t", &[9], 0, 0).data(32),
            "data offset at byte 49: F32 tensor of 36 bytes at offset 0 does not fit in the 32",
        ),
        (
            "two tensors in one place",
            Raw::header(2, 0).tensor("a", &[9], 0, 0).tensor("b", &[1], 0, 32).data(96),
            "tensor 1 'b': data offset at byte 82: its data overlaps that of tensor 'a'",
        ),
        (
            "no data section",
            one().tensor("t", &[1], 0, 0),
            "tensor 0 't': data offset at byte 49: F32 tensor of 4 bytes at offset 0 does not \
             fit in the 0 bytes left",
        ),
    ]);
}

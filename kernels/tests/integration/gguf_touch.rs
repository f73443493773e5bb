//! Reads everything in a parsed file, for the mutation tests and the fuzzer.

use std::hint::black_box;

use lapwing_kernels::weights::{Array, Gguf, Value};

/// Reads all metadata and tensors of a parsed file.
pub(crate) fn touch(file: &[u8], gguf: &Gguf) {
    for (key, value) in gguf.metadata.iter() {
        black_box((key, value.to_string(), value.type_name()));
        if let Value::Array(array) = value {
            assert_eq!(touch_array(array), array.len(), "elements of '{key}'");
        }
        let meta = &gguf.metadata;
        black_box((meta.str(key).is_ok(), meta.u32(key).is_ok(), meta.u64(key).is_ok()));
        black_box((meta.f32(key).is_ok(), meta.bool(key).is_ok(), meta.f32s(key).is_ok()));
        black_box((meta.u32s(key).is_ok(), meta.i32s(key).is_ok(), meta.bools(key).is_ok()));
        if let Ok(strings) = meta.strings(key) {
            let len = strings.len();
            assert_eq!(strings.map(black_box).count(), len, "strings of '{key}'");
        }
    }
    for tensor in &gguf.tensors {
        let data = &file[tensor.range()];
        let row = tensor.dtype.row_bytes(tensor.shape.cols()).expect("whole blocks");
        assert_eq!(data.len(), row * tensor.shape.rows(), "bytes of '{}'", tensor.name);
        black_box(sum(data));
    }
}

/// Reads all elements of an array; returns their number.
fn touch_array(array: &Array) -> usize {
    let inner = |value| match value {
        Value::Array(inner) => assert_eq!(touch_array(&inner), inner.len()),
        other => {
            black_box(other.to_string());
        }
    };
    array.values().map(inner).count()
}

/// Sum of all bytes, which reads each of them.
pub(crate) fn sum(data: &[u8]) -> u64 {
    data.iter().map(|b| u64::from(*b)).sum()
}

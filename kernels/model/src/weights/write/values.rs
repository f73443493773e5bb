//! Metadata values, as bytes.

use super::MetaValue;
use crate::weights::value::ValueKind;

pub(in crate::weights) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

pub(in crate::weights) fn put_string(out: &mut Vec<u8>, text: &str) {
    put(out, &(text.len() as u64).to_le_bytes());
    put(out, text.as_bytes());
}

pub(in crate::weights) fn put_kind(out: &mut Vec<u8>, kind: ValueKind) {
    put(out, &(kind as u32).to_le_bytes());
}

pub(in crate::weights) fn put_array<T>(
    out: &mut Vec<u8>,
    kind: ValueKind,
    values: &[T],
    one: impl Fn(&mut Vec<u8>, &T),
) {
    put_kind(out, ValueKind::Array);
    put_kind(out, kind);
    put(out, &(values.len() as u64).to_le_bytes());
    for value in values {
        one(out, value);
    }
}

pub(in crate::weights) fn put_scalar(out: &mut Vec<u8>, kind: ValueKind, bytes: &[u8]) {
    put_kind(out, kind);
    put(out, bytes);
}

pub(in crate::weights) fn put_value(out: &mut Vec<u8>, value: &MetaValue) {
    match value {
        MetaValue::U8(v) => put_scalar(out, ValueKind::U8, &v.to_le_bytes()),
        MetaValue::I8(v) => put_scalar(out, ValueKind::I8, &v.to_le_bytes()),
        MetaValue::U16(v) => put_scalar(out, ValueKind::U16, &v.to_le_bytes()),
        MetaValue::I16(v) => put_scalar(out, ValueKind::I16, &v.to_le_bytes()),
        MetaValue::U32(v) => put_scalar(out, ValueKind::U32, &v.to_le_bytes()),
        MetaValue::I32(v) => put_scalar(out, ValueKind::I32, &v.to_le_bytes()),
        MetaValue::U64(v) => put_scalar(out, ValueKind::U64, &v.to_le_bytes()),
        MetaValue::I64(v) => put_scalar(out, ValueKind::I64, &v.to_le_bytes()),
        MetaValue::F32(v) => put_scalar(out, ValueKind::F32, &v.to_le_bytes()),
        MetaValue::F64(v) => put_scalar(out, ValueKind::F64, &v.to_le_bytes()),
        MetaValue::Bool(v) => put_scalar(out, ValueKind::Bool, &[(*v).into()]),
        MetaValue::String(v) => {
            put_kind(out, ValueKind::String);
            put_string(out, v);
        }
        MetaValue::Strings(v) => {
            put_array(out, ValueKind::String, v, |out, s| put_string(out, s));
        }
        MetaValue::U32s(v) => {
            put_array(out, ValueKind::U32, v, |out, n| put(out, &n.to_le_bytes()));
        }
        MetaValue::I32s(v) => {
            put_array(out, ValueKind::I32, v, |out, n| put(out, &n.to_le_bytes()));
        }
        MetaValue::F32s(v) => {
            put_array(out, ValueKind::F32, v, |out, n| put(out, &n.to_le_bytes()));
        }
        MetaValue::Bools(v) => {
            put_array(out, ValueKind::Bool, v, |out, b| put(out, &[(*b).into()]));
        }
    }
}

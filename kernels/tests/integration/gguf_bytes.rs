//! GGUF files for tests: valid ones from the writer, invalid ones byte by byte.

use lapwing_kernels::formats::DType;
use lapwing_kernels::weights::{GgufWriter, MetaValue};

/// A file with every kind of value that the writer knows, and a tensor of every format.
pub(crate) fn rich() -> GgufWriter {
    let mut writer = GgufWriter::new();
    writer
        .meta("general.architecture", "llama")
        .meta("u8", MetaValue::U8(200))
        .meta("i8", MetaValue::I8(-100))
        .meta("u16", MetaValue::U16(60_000))
        .meta("i16", MetaValue::I16(-30_000))
        .meta("u32", 4_000_000_000u32)
        .meta("i32", -2_000_000_000)
        .meta("u64", u64::MAX)
        .meta("i64", MetaValue::I64(i64::MIN))
        .meta("f32", 1.5f32)
        .meta("f64", MetaValue::F64(2.25))
        .meta("yes", true)
        .meta("no", false)
        .meta("tokens", ["", "a", "grün", "\u{1f426}"].map(str::to_owned).to_vec())
        .meta("scores", vec![0.5f32, -1.0])
        .meta("types", vec![1i32, -3])
        .meta("counts", vec![3u32, u32::MAX])
        .meta("flags", vec![true, false, true])
        .meta("nothing", Vec::<String>::new());
    for (i, dtype) in DType::ALL.into_iter().enumerate() {
        let (cols, rows) = (dtype.block_len(), i + 1);
        let bytes: Vec<u8> = (0..dtype.block_bytes() * rows).map(|b| (b * 7 + i) as u8).collect();
        writer.tensor(&format!("blk.{i}.{dtype}"), &[cols, rows], dtype, bytes);
    }
    writer
}

/// The bytes of a file.
pub(crate) fn bytes(writer: &GgufWriter) -> Vec<u8> {
    let mut out = Vec::new();
    writer.write_to(&mut out).expect("a file that can be written");
    out
}

/// A file built field by field.
#[derive(Clone, Default)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// Magic, version 3 and counts.
    pub(crate) fn header(tensors: u64, keys: u64) -> Raw {
        Raw(b"GGUF".to_vec()).u32(3).u64(tensors).u64(keys)
    }

    pub(crate) fn u32(self, v: u32) -> Raw {
        self.raw(&v.to_le_bytes())
    }

    pub(crate) fn u64(self, v: u64) -> Raw {
        self.raw(&v.to_le_bytes())
    }

    pub(crate) fn text(self, v: &str) -> Raw {
        self.u64(v.len() as u64).raw(v.as_bytes())
    }

    pub(crate) fn raw(mut self, v: &[u8]) -> Raw {
        self.0.extend_from_slice(v);
        self
    }

    /// An entry of the tensor table.
    pub(crate) fn tensor(self, name: &str, dims: &[u64], dtype: u32, offset: u64) -> Raw {
        let raw = self.text(name).u32(dims.len() as u32);
        dims.iter().fold(raw, |raw, dim| raw.u64(*dim)).u32(dtype).u64(offset)
    }

    /// Zeros up to the data section, and `len` zeros in it.
    pub(crate) fn data(mut self, len: usize) -> Raw {
        self.0.resize(self.0.len().next_multiple_of(32) + len, 0);
        self
    }
}

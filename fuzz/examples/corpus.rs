//! Writes the first corpus of the `gguf` target: `cargo run --example corpus` in `fuzz`.

#[path = "../../kernels/tests/integration/gguf_bytes.rs"]
mod gguf_bytes;

use std::path::Path;

use gguf_bytes::{Raw, bytes, rich};
use lapwing_kernels::quant::DType;
use lapwing_kernels::weights::{GgufWriter, MetaValue};

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/gguf");
    std::fs::create_dir_all(&folder)?;
    for (name, file) in files() {
        std::fs::write(folder.join(name), file)?;
    }
    Ok(())
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let mut one = GgufWriter::new();
    one.tensor("t", &[32, 2], DType::Q4_0, [1; 36]);
    let mut aligned = GgufWriter::new();
    aligned.meta("general.alignment", 64u32).tensor("t", &[3], DType::F32, [1; 12]);
    let mut part = GgufWriter::new();
    part.meta("split.no", MetaValue::U16(0))
        .meta("split.count", MetaValue::U16(2))
        .meta("split.tensors.count", 2);
    let mut version_2 = bytes(&one);
    version_2[4] = 2;
    let nested = Raw::header(0, 1).text("n").u32(9).u32(9).u64(2);
    let nested = nested.u32(8).u64(1).text("deep").u32(4).u64(1).u32(7);
    vec![
        ("empty.gguf", bytes(&GgufWriter::new())),
        ("one.gguf", bytes(&one)),
        ("version-2.gguf", version_2),
        ("aligned.gguf", bytes(&aligned)),
        ("part.gguf", bytes(&part)),
        ("nested.gguf", nested.0),
        ("rich.gguf", bytes(&rich())),
        ("cut.gguf", bytes(&rich())[..700].to_vec()),
        ("not-a-tensor.gguf", Raw::header(1, 0).tensor("t", &[256], 10, 0).data(96).0),
    ]
}

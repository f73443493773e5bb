//! Split models: any part opens the whole model, and missing or foreign parts are named.

use std::path::{Path, PathBuf};

use lapwing_kernels::formats::DType;
use lapwing_kernels::weights::{GgufWriter, MetaValue, WeightError, WeightFile};

use crate::gguf_bytes::bytes;

/// A separate folder for each test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder for the test");
    path
}

fn name(no: u16, parts: u16) -> String {
    format!("m-{:05}-of-{parts:05}.gguf", no + 1)
}

struct Split {
    no: u16,
    parts: u16,
    tensors: i32,
    tensor: &'static str,
}

impl Split {
    /// Writes a part with one tensor under `file`.
    fn write(&self, file: &Path) {
        let mut writer = GgufWriter::new();
        if self.no == 0 {
            writer.meta("general.architecture", "llama");
        }
        writer
            .meta("split.no", MetaValue::U16(self.no))
            .meta("split.count", MetaValue::U16(self.parts))
            .meta("split.tensors.count", self.tensors)
            .tensor(self.tensor, &[1], DType::F32, [self.no as u8; 4]);
        std::fs::write(file, bytes(&writer)).expect("a file for the test");
    }
}

fn write_three(folder: &Path) {
    for (no, tensor) in [(0, "a"), (1, "b"), (2, "c")] {
        Split { no, parts: 3, tensors: 3, tensor }.write(&folder.join(name(no, 3)));
    }
}

#[test]
fn any_part_opens_the_whole_model() {
    let folder = folder("split-whole");
    write_three(&folder);
    for first in 0..3 {
        let file = WeightFile::open(&folder.join(name(first, 3))).unwrap();
        let names: Vec<&str> = file.tensors().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(file.paths(), [0, 1, 2].map(|no| folder.join(name(no, 3))));
        assert_eq!(file.metadata().str("general.architecture"), Ok("llama"));
        for (no, tensor) in ["a", "b", "c"].into_iter().enumerate() {
            let tensor = file.tensor(tensor).unwrap();
            assert_eq!(
                (tensor.info().part(), tensor.read().expect("its bytes")),
                (no, vec![no as u8; 4])
            );
        }
        let sizes = file.paths().iter().map(|p| std::fs::metadata(p).unwrap().len());
        assert_eq!(file.bytes_total(), sizes.sum::<u64>());
    }
}

#[test]
fn a_missing_part_is_named() {
    let folder = folder("split-missing");
    write_three(&folder);
    std::fs::remove_file(folder.join(name(1, 3))).unwrap();
    for opened in [0, 2] {
        let error = WeightFile::open(&folder.join(name(opened, 3))).unwrap_err();
        assert!(matches!(error, WeightError::MissingPart { part: 2, parts: 3, .. }), "{error}");
        assert!(error.to_string().contains("m-00002-of-00003.gguf"), "{error}");
    }
}

#[test]
fn a_truncated_part_is_named() {
    let folder = folder("split-truncated");
    write_three(&folder);
    std::fs::write(folder.join(name(2, 3)), b"GGUF").unwrap();
    let error = WeightFile::open(&folder.join(name(0, 3))).unwrap_err().to_string();
    assert!(error.contains("m-00003-of-00003.gguf: version at byte 4"), "{error}");
}

#[test]
fn a_part_of_another_model_is_refused() {
    let cases = [
        (Split { no: 2, parts: 3, tensors: 3, tensor: "b" }, "split.no of "),
        (Split { no: 1, parts: 4, tensors: 3, tensor: "b" }, "split.count of "),
        (Split { no: 1, parts: 3, tensors: 4, tensor: "b" }, "split.tensors.count of "),
        (Split { no: 1, parts: 3, tensors: 3, tensor: "c" }, "tensor 'c' is in both "),
    ];
    for (i, (part, expected)) in cases.into_iter().enumerate() {
        let folder = folder(&format!("split-strange-{i}"));
        write_three(&folder);
        part.write(&folder.join(name(1, 3)));
        let error = WeightFile::open(&folder.join(name(0, 3))).unwrap_err().to_string();
        assert!(error.contains(expected), "'{error}' does not say '{expected}'");
        assert!(error.contains("m-00002-of-00003.gguf"), "{error}");
        let is_named = error.contains("part 2 of 3: split.") || error.contains("is in both");
        assert!(is_named, "{error}");
    }
}

#[test]
fn a_renamed_part_is_refused_with_its_expected_name() {
    let folder = folder("split-renamed");
    let path = folder.join("renamed.gguf");
    Split { no: 0, parts: 2, tensors: 2, tensor: "a" }.write(&path);
    let error = WeightFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("renamed.gguf is not named …-00001-of-00002.gguf"), "{error}");
}

#[test]
fn an_invalid_part_count_is_refused() {
    let folder = folder("split-absurd");
    for (i, count) in
        [MetaValue::U64(u64::MAX), MetaValue::I32(-1), MetaValue::from("2")].into_iter().enumerate()
    {
        let path = folder.join(format!("{i}.gguf"));
        let mut writer = GgufWriter::new();
        writer.meta("split.count", count);
        std::fs::write(&path, bytes(&writer)).unwrap();
        let error = WeightFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("split.count of "), "{error}");
    }
}

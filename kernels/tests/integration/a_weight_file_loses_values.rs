//! Values are read back as written; a missing key and a wrong type are different errors.

use std::path::PathBuf;

use lapwing_kernels::formats::DType;
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::{
    GgufWriter, MetaValue, MetadataError, Shape, Value, ValueKind, WeightError, WeightFile,
    WeightTensor, WriteError, parse, parse_header,
};

use crate::gguf_bytes::{Raw, bytes, rich};

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("a file for the test");
    path
}

#[test]
fn scalars_are_read_as_written() {
    let meta = parse(&bytes(&rich())).unwrap().metadata;
    assert_eq!(meta.len(), 19);
    assert_eq!(meta.str("general.architecture"), Ok("llama"));
    assert_eq!(meta.u32("u8"), Ok(200));
    assert_eq!(meta.u32("u16"), Ok(60_000));
    assert_eq!(meta.u32("u32"), Ok(4_000_000_000));
    assert_eq!(meta.u64("u64"), Ok(u64::MAX));
    assert_eq!(meta.f32("f32"), Ok(1.5));
    assert_eq!(meta.f32("f64"), Ok(2.25));
    assert_eq!(meta.bool("yes"), Ok(true));
    assert_eq!(meta.bool("no"), Ok(false));
    assert!(matches!(meta.get("i8"), Some(Value::I8(-100))));
    assert!(matches!(meta.get("i16"), Some(Value::I16(-30_000))));
    assert!(matches!(meta.get("i32"), Some(Value::I32(-2_000_000_000))));
    assert!(matches!(meta.get("i64"), Some(Value::I64(i64::MIN))));
    let shown: Vec<String> = meta.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(shown[0], "general.architecture=llama");
    assert_eq!(shown[8], format!("i64={}", i64::MIN));
    assert_eq!(shown[13], "tokens=array of 4 string");
}

#[test]
fn arrays_are_read_as_written() {
    let meta = parse(&bytes(&rich())).unwrap().metadata;
    let tokens = meta.strings("tokens").unwrap();
    assert_eq!(tokens.len(), 4);
    assert_eq!(tokens.collect::<Vec<_>>(), ["", "a", "grün", "\u{1f426}"]);
    assert_eq!(meta.strings("nothing").unwrap().len(), 0);
    assert_eq!(meta.f32s("scores"), Ok(vec![0.5, -1.0]));
    assert_eq!(meta.i32s("types"), Ok(vec![1, -3]));
    assert_eq!(meta.u32s("counts"), Ok(vec![3, u32::MAX]));
    assert_eq!(meta.bools("flags"), Ok(vec![true, false, true]));
    assert!(meta.get("flags").unwrap().is_array());
}

#[test]
fn a_missing_key_and_a_wrong_type_are_different_errors() {
    let meta = parse(&bytes(&rich())).unwrap().metadata;
    let missing = |key: &str| MetadataError::Missing { key: key.to_owned() };
    assert_eq!(meta.u32("x").unwrap_err(), missing("x"));
    assert_eq!(meta.strings("x").map(|_| ()).unwrap_err(), missing("x"));
    assert_eq!(meta.opt_u32("x"), Ok(None));
    assert_eq!(meta.opt_str("x"), Ok(None));
    assert_eq!(meta.opt_i32s("x"), Ok(None));
    assert!(meta.opt_strings("x").unwrap().is_none());

    let wrong = |error: MetadataError, expected: &str| {
        assert!(matches!(error, MetadataError::WrongType { .. }), "{error}");
        assert_eq!(error.to_string(), expected);
    };
    let text = |key, found, expected| {
        format!("metadata key '{key}' has type {found}, but must be {expected}")
    };
    wrong(meta.opt_u32("f32").unwrap_err(), &text("f32", "f32", "an integer"));
    wrong(meta.u32("yes").unwrap_err(), &text("yes", "bool", "an integer"));
    wrong(meta.f32("u32").unwrap_err(), &text("u32", "u32", "f32 or f64"));
    wrong(meta.bool("u8").unwrap_err(), &text("u8", "u8", "bool"));
    wrong(meta.str("u8").unwrap_err(), &text("u8", "u8", "a string"));
    let scores = meta.strings("scores").map(|_| ()).unwrap_err();
    wrong(scores, &text("scores", "array of 2 f32", "an array of strings"));
    let scalar = meta.strings("u8").map(|_| ()).unwrap_err();
    wrong(scalar, &text("u8", "u8", "an array of strings"));
    wrong(
        meta.i32s("tokens").unwrap_err(),
        &text("tokens", "array of 4 string", "an array of integers"),
    );
    wrong(
        meta.f32s("nothing").unwrap_err(),
        &text("nothing", "array of 0 string", "an array of f32 or f64"),
    );
}

#[test]
fn integers_that_do_not_fit_are_errors() {
    let meta = parse(&bytes(&rich())).unwrap().metadata;
    for error in [
        meta.u32("u64").unwrap_err(),
        meta.u32("i8").unwrap_err(),
        meta.u64("i64").map(|_| ()).unwrap_err(),
        meta.i32s("counts").map(|_| ()).unwrap_err(),
        meta.u32s("types").map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, MetadataError::OutOfRange { .. }), "{error}");
    }
}

#[test]
fn strings_that_are_not_utf8_are_errors() {
    let raw = Raw::header(0, 2)
        .text("one")
        .u32(8)
        .u64(1)
        .raw(&[0xff])
        .text("many")
        .u32(9)
        .u32(8)
        .u64(2)
        .text("a")
        .u64(2)
        .raw(&[0xc3, 0x28]);
    let meta = parse(&raw.0).unwrap().metadata;
    let bad = |key: &str, index| MetadataError::NotUtf8 { key: key.to_owned(), index };
    assert_eq!(meta.str("one").unwrap_err(), bad("one", None));
    assert_eq!(meta.strings("many").map(|_| ()).unwrap_err(), bad("many", Some(1)));
    assert_eq!(meta.get("one").unwrap().to_string(), "\u{fffd}");
}

#[test]
fn nested_arrays_are_read_as_written() {
    let inner = |raw: Raw, v: u32| raw.u32(4).u64(1).u32(v);
    let raw = Raw::header(0, 2).text("nested").u32(9).u32(9).u64(2);
    let raw = inner(inner(raw, 7), 8).text("after").u32(4).u32(5);
    let meta = parse(&raw.0).unwrap().metadata;
    let Some(Value::Array(outer)) = meta.get("nested") else { panic!("not an array") };
    assert_eq!(outer.kind(), ValueKind::Array);
    let numbers: Vec<String> = outer
        .values()
        .map(|inner| match inner {
            Value::Array(inner) => inner.values().map(|v| v.to_string()).collect(),
            other => panic!("{other:?} in an array of arrays"),
        })
        .collect();
    assert_eq!(numbers, ["7", "8"]);
    assert_eq!(meta.u32("after"), Ok(5));
}

#[test]
fn tensors_are_read_as_written() {
    let path = file("tensors_are_read_as_written.gguf", &bytes(&rich()));
    let file = WeightFile::open(&path).unwrap();
    assert_eq!(file.paths(), std::slice::from_ref(&path));
    assert_eq!(file.bytes_total(), std::fs::metadata(&path).unwrap().len());
    assert_eq!(file.tensors().len(), DType::ALL.len());
    for (i, (info, dtype)) in file.tensors().zip(DType::ALL).enumerate() {
        assert_eq!(info.name, format!("blk.{i}.{dtype}"));
        let tensor = file.tensor(&info.name).unwrap();
        assert_eq!((tensor.dtype(), tensor.info()), (dtype, info));
        assert_eq!((tensor.shape().cols(), tensor.shape().rows()), (dtype.block_len(), i + 1));
        assert_eq!(tensor.shape().len(), dtype.block_len() * (i + 1));
        let expected: Vec<u8> = (0..info.bytes).map(|b| (b * 7 + i) as u8).collect();
        assert_eq!(tensor.read().unwrap(), expected);
        assert_eq!(info.range().start % 32, 0);
    }
    assert!(file.tensor("blk").is_none());
}

#[test]
fn tensors_and_metadata_keep_the_file_open() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<WeightTensor>();
    shared::<WeightFile>();
    let path = file("tensors_keep_the_file_open.gguf", &bytes(&rich()));
    let opened = WeightFile::open(&path).unwrap();
    let (tensor, meta) = (opened.tensor("blk.0.F32").unwrap(), opened.metadata().clone());
    drop(opened);
    assert_eq!(tensor.read().unwrap(), [0, 7, 14, 21]);
    assert_eq!(meta.str("general.architecture"), Ok("llama"));
}

#[test]
fn data_is_found_with_any_alignment_and_version() {
    let mut writer = GgufWriter::new();
    writer.meta("general.alignment", 256u32).tensor("a", &[3], DType::F32, [1; 12]).tensor(
        "b",
        &[2, 2, 1, 2],
        DType::F16,
        [2; 16],
    );
    let mut all = bytes(&writer);
    for version in [2, 3] {
        all[4] = version;
        let gguf = parse(&all).unwrap();
        assert_eq!((gguf.version, gguf.alignment), (version.into(), 256));
        assert_eq!(gguf.tensors[1].range().start % 256, 0);
        assert_eq!(all[gguf.tensors[0].range()], [1; 12]);
        assert_eq!(all[gguf.tensors[1].range()], [2; 16]);
        assert_eq!(gguf.tensors[1].shape.dims(), [2, 2, 1, 2]);
        assert_eq!(gguf.tensors[1].shape.rows(), 4);
    }
}

#[test]
fn the_writer_refuses_inconsistent_tensors_and_alignments() {
    let write = |writer: &GgufWriter| writer.write_to(&mut Vec::new()).unwrap_err();
    let mut short = GgufWriter::new();
    short.tensor("t", &[2], DType::F32, [0; 7]);
    assert!(matches!(write(&short), WriteError::Bytes { found: 7, expected: 8, .. }));
    let mut partial = GgufWriter::new();
    partial.tensor("t", &[33], DType::Q8_0, [0; 34]);
    assert!(matches!(write(&partial), WriteError::Shape { .. }));
    let mut odd = GgufWriter::new();
    odd.meta("general.alignment", MetaValue::U64(32));
    assert!(matches!(write(&odd), WriteError::Alignment { .. }));
    assert!(Shape::new(&[]).is_none() && Shape::new(&[1, 0]).is_none());
    assert!(Shape::new(&[usize::MAX, 2]).is_none() && Shape::new(&[1; 5]).is_none());
}

#[test]
fn paths_that_are_not_weight_files_are_refused() {
    let missing = WeightFile::open("no/such.gguf".as_ref()).unwrap_err();
    assert!(matches!(missing, WeightError::Open { .. }));
    let text = missing.to_string();
    assert!(text.starts_with("cannot open no/such.gguf: "), "{text}");
    assert!(text.ends_with("; check the path"), "{text}");
    let folder = WeightFile::open(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap_err();
    assert!(folder.to_string().contains("not a regular file"), "{folder}");
    let empty = WeightFile::open(&file("empty.gguf", b"")).unwrap_err().to_string();
    assert!(empty.contains("empty.gguf") && empty.contains("the file is empty"), "{empty}");
}

#[test]
fn a_header_without_data_gives_the_same_graph() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/reference/tiny");
    for name in ["llama", "qwen2", "gemma3", "internlm2"] {
        let path = format!("{dir}/{name}.gguf");
        let bytes = std::fs::read(&path).expect("a file");
        let file = WeightFile::open(std::path::Path::new(&path)).expect("a model");
        let data = file.tensors().map(|tensor| tensor.range().start).min().expect("tensors");
        let header = parse_header(&bytes[..data]).expect("a header");
        let (short, whole) = (Model::from_header(&header), Model::from_weights(&file));
        assert_eq!(short.expect("a graph").graph, whole.expect("a graph").graph, "{name}");
        assert!(parse_header(&bytes[..data / 2]).is_err(), "{name}");
        let cut =
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-cut.gguf"));
        std::fs::write(&cut, &bytes[..data]).expect("write");
        assert!(WeightFile::open(&cut).is_err(), "{name}");
        let header = WeightFile::header(&cut).expect("a header");
        assert_eq!((header.version, header.tensors.len()), (3, file.tensors().len()), "{name}");
        assert!(Model::from_header(&header).is_ok(), "{name}");
    }
}

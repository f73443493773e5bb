//! A model that is requantised when it is opened computes the same as a file that was quantised before.

use super::{device, exact_names, folder, ids, is_emulated, logits, reference, run};
use std::sync::Arc;

use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_kernels::device::{Batch, TensorSet};
use lapwing_kernels::formats::DType;
use lapwing_kernels::model::Model;
use lapwing_kernels::reference::dequantize;
use lapwing_kernels::requant::{Group, Requant};
use lapwing_kernels::weights::{GgufWriter, MetaValue, Value, WeightFile, WeightTensor};

fn meta(value: &Value) -> MetaValue {
    let array = match value {
        Value::Bool(v) => return MetaValue::Bool(*v),
        Value::U32(v) => return MetaValue::U32(*v),
        Value::I32(v) => return MetaValue::I32(*v),
        Value::F32(v) => return MetaValue::F32(*v),
        Value::U64(v) => return MetaValue::U64(*v),
        Value::String(v) => return MetaValue::String(v.to_str().expect("UTF-8").to_owned()),
        Value::Array(array) => array,
        other => panic!("{}", other.type_name()),
    };
    match array.values().next() {
        Some(Value::String(_)) => array
            .values()
            .map(|v| match v {
                Value::String(v) => v.to_str().expect("UTF-8").to_owned(),
                other => panic!("{}", other.type_name()),
            })
            .collect::<Vec<String>>()
            .into(),
        Some(Value::I32(_)) => array
            .values()
            .map(|v| if let Value::I32(v) = v { v } else { panic!("{}", v.type_name()) })
            .collect::<Vec<i32>>()
            .into(),
        Some(Value::F32(_)) => array
            .values()
            .map(|v| if let Value::F32(v) = v { v } else { panic!("{}", v.type_name()) })
            .collect::<Vec<f32>>()
            .into(),
        other => panic!("array of {:?}", other.map(|v| v.type_name())),
    }
}

/// Stored bytes of a requantised tensor; `None` for tensors that stay as stored: vectors, an embedding
/// table if there is a separate output matrix, and formats of no more bits. The bits of a scale and a minimum
/// per row count once.
fn quantised(
    file: &WeightFile,
    tensor: &WeightTensor,
    format: Requant,
) -> Option<(DType, Vec<u8>)> {
    let format = format.within(tensor.shape().cols())?;
    let name = &*tensor.info().name;
    let is_table = name == "token_embd.weight" && file.tensor("output.weight").is_some();
    let bits = |dtype: DType| dtype.block_bytes() as f64 / dtype.block_len() as f64;
    let is_matrix = tensor.shape().rows() > 1 && !is_table;
    let (cols, stored, blocks) =
        (tensor.shape().cols(), bits(tensor.dtype()), bits(format.dtype()));
    let own = match (format.dtype(), format.group()) {
        (DType::Q4_1, Group::Row) => 0.5 + 4.0 / cols as f64,
        _ => blocks,
    };
    let has_more = stored >= blocks && stored > own;
    if !is_matrix || !has_more || !cols.is_multiple_of(32) {
        return None;
    }
    let values = dequantize(tensor.dtype(), &tensor.read().expect("bytes"));
    Some((format.dtype(), format.quantize(&values, cols).expect("finite values")))
}

/// The same model with matrices requantised to `format`, and their number.
fn requantised_file(file: &WeightFile, format: Requant) -> (GgufWriter, usize) {
    let mut writer = GgufWriter::new();
    // The parts of a split model become one file.
    for (key, value) in file.metadata().iter().filter(|(key, _)| !key.starts_with("split.")) {
        writer.meta(key, meta(value));
    }
    let mut changed = 0;
    for info in file.tensors() {
        let tensor = file.tensor(&info.name).expect("a tensor");
        let shape = tensor.shape();
        match quantised(file, &tensor, format) {
            Some((dtype, bytes)) => {
                writer.tensor(&info.name, shape.dims(), dtype, bytes);
                changed += 1;
            }
            None => {
                writer.tensor(
                    &info.name,
                    shape.dims(),
                    tensor.dtype(),
                    tensor.read().expect("bytes"),
                );
            }
        }
    }
    (writer, changed)
}

/// Logits of all positions with requantised matrices, and the number of those.
fn requantised_logits(file: &WeightFile, ids: &[u32], format: Requant) -> (Vec<Vec<f32>>, usize) {
    let mut model = Model::from_weights(file).expect("a model");
    let report = model.graph.requantize(format);
    let graph = Arc::new(model.graph);
    let cpu = Cpu::new(2, Isa::best());
    let (mut device, lease) = device(&model.config, &graph, file, ids.len(), cpu);
    let mut batch = Batch::default();
    batch.push(ids, 0, lease.page_ids().to_vec(), 0..ids.len());
    let mut tensors = TensorSet::default();
    run(&mut device, &graph, 0..graph.nodes().len(), &batch, &mut tensors);
    let tensor = tensors.take(graph.output()).expect("logits");
    ((0..tensor.rows()).map(|r| tensor.row(r).to_vec()).collect(), report.changed)
}

#[test]
fn a_requantised_model_computes_the_same_as_a_file_in_that_format() {
    let folder_of_copies = tempfile::tempdir().expect("a folder");
    let mut changed = 0;
    let by_row = Requant::Q4_1.with_group(Group::Row).expect("a form");
    let searched = [DType::Iq4Nl, DType::Q2K].map(|dtype| Requant::of(dtype).expect("a form"));
    // The search for scales is the same on every instruction set.
    let searched = searched.into_iter().filter(|_| !is_emulated());
    let formats = || Requant::GROUPED.into_iter().chain([by_row]).chain(searched.clone());
    for name in exact_names() {
        let reference = reference(&name);
        let file = folder().join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        let ids = ids(&reference);
        let stored = logits(&file, &ids, 512, Cpu::new(2, Isa::best()));
        for format in formats() {
            let (writer, want_changed) = requantised_file(&file, format);
            let copy = folder_of_copies.path().join("copy.gguf");
            let _ = std::fs::remove_file(&copy);
            let mut out = std::fs::File::create(&copy).expect("a file");
            writer.write_to(&mut out).expect("written");
            let copy = WeightFile::open(&copy).expect("a weight file");
            let want = logits(&copy, &ids, 512, Cpu::new(2, Isa::best()));
            let (got, got_changed) = requantised_logits(&file, &ids, format);
            assert_eq!(got_changed, want_changed, "{name} to {format}");
            assert!(got == want, "{name} to {format}");
            assert_eq!(got != stored, got_changed > 0, "{name} to {format}");
            changed += got_changed;
        }
    }
    assert!(changed > 500, "only {changed} matrices");
}

//! Factors on products with matrices in NVFP4.

use super::{Tiny, logits};
use std::path::Path;

use lapwing_kernels::cpu::{Cpu, Isa};
use lapwing_kernels::formats::DType;
use lapwing_kernels::model::{Model, ModelError};
use lapwing_kernels::op::{Op, TableRow};
use lapwing_kernels::weights::{GgufWriter, WeightFile};

/// A copy of a file with a bias of 256 ones for the matrix `blk.0.{role}.weight`.
fn with_bias(file: &WeightFile, role: &str, path: &Path) -> WeightFile {
    let mut writer = GgufWriter::new();
    for (key, value) in file.metadata().iter() {
        writer.meta_of(key, value);
    }
    for info in file.tensors() {
        let tensor = file.tensor(&info.name).expect("a tensor");
        let bytes = tensor.read().expect("bytes");
        writer.tensor(&info.name, tensor.shape().dims(), tensor.dtype(), bytes);
    }
    let ones = 1f32.to_le_bytes().repeat(256);
    writer.tensor(&format!("blk.0.{role}.bias"), &[256], DType::F32, ones);
    writer.write_to(&mut std::fs::File::create(path).expect("a file")).expect("written");
    WeightFile::open(path).expect("a weight file")
}

#[test]
fn a_factor_comes_before_a_bias_and_is_refused_beside_one_in_feed_forward_blocks() {
    let (tiny, folder) = (Tiny::open("format-nvfp4"), tempfile::tempdir().expect("a folder"));
    for role in ["ffn_gate", "ffn_up", "ffn_down"] {
        let file = with_bias(&tiny.file, role, &folder.path().join(role));
        let error = Model::from_weights(&file).expect_err(role);
        let name = format!("blk.0.{role}");
        assert!(matches!(&error, ModelError::ScaleAndBias { matrix } if *matrix == name));
        assert!(error.to_string().contains(&name), "{error}");
    }
    let file = with_bias(&tiny.file, "attn_q", &folder.path().join("attn_q"));
    let graph = Model::from_weights(&file).expect("a model").graph;
    let at = graph
        .nodes()
        .iter()
        .position(|node| matches!(node.op, Op::AddRow { row: TableRow::First, .. }));
    let before = &graph.nodes()[at.expect("a bias") - 1];
    assert!(matches!(before.op, Op::ScaleBy { .. }), "{:?}", before.op);
    let of = |file: &WeightFile| logits(file, &tiny.ids, 512, Cpu::new(1, Isa::best()));
    assert_ne!(of(&file), of(&tiny.file));
}

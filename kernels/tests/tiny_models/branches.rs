//! The rows of a token tree through the whole graph: with the bits of a sequence without branches.

use super::masks::MODELS;
use super::{Tiny, device, isas, run};
use lapwing_kernels::cpu::Cpu;
use lapwing_kernels::device::{Batch, Fork, TensorSet};
use lapwing_kernels::kv::{KvLease, KvSharing};
use lapwing_kernels::model::Model;
use std::sync::Arc;

/// Branches: tokens, the row before the first one, and the piece that has it; the first piece has the rows of the text.
const BRANCHES: [(&[u32], usize, usize); 4] =
    [(&[9, 4, 11], 0, 0), (&[5, 12], 2, 0), (&[13], 7, 1), (&[21, 22], 8, 1)];

/// The logits of the last 7 rows of a text, and of branches after the first of them; with the path of each.
fn tree(model: &Model, at: &super::WeightFile, ids: &[u32], cpu: Cpu) -> Vec<(Vec<u32>, Vec<f32>)> {
    let graph = Arc::new(model.graph.clone());
    let rows = ids.len() + 8;
    let (mut device, all) =
        device(&model.config, &graph, at, 8 * model.config.kv_layout().page_rows, cpu);
    let page_rows = model.config.kv_layout().page_rows;
    assert!(rows <= page_rows * 2, "two pages each");
    let root = ids.len() - 7;
    let mut run = |batch: &Batch| {
        let mut tensors = TensorSet::default();
        run(&mut device, &graph, 0..graph.nodes().len(), batch, &mut tensors);
        let logits = tensors.take(graph.output()).expect("logits");
        (0..logits.rows()).map(|row| logits.row(row).to_vec()).collect::<Vec<_>>()
    };
    let mut free = all.pages().iter().cloned();
    let mut lease_of = |shared: &KvLease, start: usize, end: usize| {
        let mut pages = shared.pages()[..start / page_rows].to_vec();
        let missing = end.div_ceil(page_rows) - pages.len();
        pages.extend(free.by_ref().take(missing));
        KvLease::new(pages)
    };
    let mut leases = vec![lease_of(&KvLease::default(), 0, ids.len())];
    let mut batch = Batch::default();
    batch.push(&ids[..root], 0, leases[0].page_ids().clone(), 0..0);
    _ = run(&batch);
    let mut batch = Batch::default();
    batch.push(&ids[root..], root, leases[0].page_ids().clone(), 0..7);
    let mut paths: Vec<Vec<u32>> = (root..ids.len()).map(|end| ids[..=end].to_vec()).collect();
    for (tokens, after, parent) in BRANCHES {
        let start = paths[after].len();
        let lease = lease_of(&leases[parent], start, start + tokens.len());
        let page = |lease: &KvLease| lease.page_ids()[start / page_rows];
        let copy =
            (!start.is_multiple_of(page_rows)).then(|| (page(&leases[parent]), page(&lease)));
        batch.push_branch(tokens, start, lease.page_ids().clone(), Fork { after, copy });
        let mut path = paths[after].clone();
        for token in tokens {
            path.push(*token);
            paths.push(path.clone());
        }
        leases.push(lease);
    }
    paths.into_iter().zip(run(&batch)).collect()
}

#[test]
fn the_rows_of_a_tree_have_the_logits_of_their_paths() {
    for name in MODELS {
        let Tiny { file, ids } = Tiny::open(name);
        for sharing in [None, Some("layers=2")] {
            let mut model = Model::from_weights(&file).expect("a model");
            if let Some(sharing) = sharing {
                let sharing: KvSharing = sharing.parse().expect("a sharing");
                model.share_kv(&sharing).expect("it fits");
            }
            for isa in isas() {
                for (path, logits) in tree(&model, &file, &ids, Cpu::new(2, isa)) {
                    let alone = linear(&model, &file, &path, Cpu::new(1, isa));
                    assert!(logits == alone, "{name} {} {path:?}", isa.name());
                }
            }
        }
    }
}

/// The logits of the last row of a text.
fn linear(model: &Model, file: &super::WeightFile, ids: &[u32], cpu: Cpu) -> Vec<f32> {
    let graph = Arc::new(model.graph.clone());
    let (mut device, lease) = device(&model.config, &graph, file, ids.len(), cpu);
    let mut batch = Batch::default();
    batch.push(ids, 0, lease.page_ids().clone(), ids.len() - 1..ids.len());
    let mut tensors = TensorSet::default();
    run(&mut device, &graph, 0..graph.nodes().len(), &batch, &mut tensors);
    tensors.take(graph.output()).expect("logits").row(0).to_vec()
}

//! Layers that have the same block of the file, and layers that lack a block.

use std::collections::BTreeSet;

use super::Tiny;
use lapwing_kernels::model::Model;
use lapwing_kernels::op::Op;

#[test]
fn layers_of_one_block_share_its_weights_and_have_keys_of_their_own() {
    for (name, blocks) in [("nanbeige", vec![0, 1, 0, 1]), ("hrm_text", vec![0, 0, 1, 0, 0, 1])] {
        let Model { config, graph, .. } =
            Model::from_weights(&Tiny::open(name).file).expect("a model");
        assert_eq!(config.blocks, blocks, "{name}");
        let names: BTreeSet<&str> = graph.weights().iter().map(|spec| &*spec.name).collect();
        assert_eq!(names.len(), graph.weights().len(), "{name}: each weight once");
        let attended = graph.nodes().iter().filter_map(|node| match &node.op {
            Op::Attention(op) => Some((node.layer, op.layer)),
            _ => None,
        });
        let own: Vec<_> = (0..blocks.len()).map(|layer| (Some(layer), layer)).collect();
        assert_eq!(attended.collect::<Vec<_>>(), own, "{name}");
        assert_eq!(config.kv_layout().layers.len(), blocks.len(), "{name}");
    }
}

#[test]
fn layers_without_attention_have_no_rows_of_keys() {
    let Model { config, graph, .. } =
        Model::from_weights(&Tiny::open("deci").file).expect("a model");
    let heads: Vec<usize> = config.kv_layout().layers.iter().map(|heads| heads.count).collect();
    assert_eq!(heads, [2, 1], "of the first and the last layer");
    let layers: BTreeSet<_> = graph.nodes().iter().filter_map(|node| node.layer).collect();
    assert_eq!(layers, BTreeSet::from([0, 1, 2, 4]), "layer 3 has nothing");
}

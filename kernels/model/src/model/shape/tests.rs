//! Shapes against the numbers that their authors publish.

use super::*;

/// Weights of all matmuls and experts.
fn read_weights(shape: &ModelShape) -> usize {
    let graph = shape.model().expect("a model").graph;
    let matrices = graph.nodes().iter().flat_map(|node| node.op.matrices());
    matrices.map(|id| &graph.weights()[id.0]).map(|weight| weight.rows * weight.cols).sum()
}

/// `rope_theta` and `rms_norm_eps` of each source.
#[test]
fn shapes_have_the_published_rope_base_and_epsilon() {
    let published = [
        ("llama-3-8b", 500_000.0, 1e-5),
        ("llama-2-7b", 10_000.0, 1e-5),
        ("llama-3.2-3b", 500_000.0, 1e-5),
        ("internlm2-1.8b", 1_000_000.0, 1e-5),
        ("qwen1.5-1.8b", 1_000_000.0, 1e-6),
        ("qwen2-1.5b", 1_000_000.0, 1e-6),
        ("qwen3-30b-a3b", 1_000_000.0, 1e-6),
        ("gpt-oss-20b", 150_000.0, 1e-5),
    ];
    assert_eq!(published.len(), ModelShape::all().len());
    for (name, base, eps) in published {
        let model = ModelShape::by_name(name).expect("is known").model().expect("a model");
        assert_eq!((model.config.rope_base, model.config.norm_eps), (base, eps), "{name}");
        assert_eq!(model.graph.ropes()[0].base, base, "{name}");
    }
}

#[test]
fn shapes_have_the_published_number_of_weights() {
    // 7.505 G for Llama-3-8B. The others are the authors' parameter counts, without the
    // embedding table unless it is also the output matrix.
    let published = [
        ("llama-3-8b", 7.505e9),
        ("llama-2-7b", 6.607e9),
        ("llama-3.2-3b", 3.213e9),
        ("internlm2-1.8b", 1.699e9),
        ("qwen1.5-1.8b", 1.525e9),
        ("qwen2-1.5b", 1.543e9),
        ("qwen3-30b-a3b", 30.221e9),
        ("gpt-oss-20b", 20.336e9),
    ];
    assert_eq!(published.len(), ModelShape::all().len());
    for (name, want) in published {
        let found = read_weights(ModelShape::by_name(name).expect("is known")) as f64;
        assert!((found / want - 1.0).abs() < 2e-3, "{name}: {found:e} {want:e}");
    }
}

//! The memory that the weights of a graph would take, without the weights.

use super::uses;
use crate::packed::layout::Layout;
use lapwing_model::graph::Graph;

/// Bytes of the weights of a graph on CPUs: packed matrices, and vectors in f32. Rows of an embedding table that is no matrix of
/// a matmul are read from the file when they are used, so they take none. Saturates.
pub fn packed_bytes(graph: &Graph) -> u64 {
    let each = graph.weights().iter().zip(uses(graph)).map(|(spec, uses)| {
        let matrix = || Layout::new(spec.dtype, spec.cols).bytes(spec.rows) as u64;
        let vector = || (spec.rows * spec.cols * size_of::<f32>()) as u64;
        u64::from(uses.matmul) * matrix() + u64::from(uses.vector) * vector()
    });
    each.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Cpu;
    use crate::isa::Isa;
    use crate::weights::Weights;
    use lapwing_model::model::Model;
    use lapwing_model::requant::Requant;
    use lapwing_model::weights::WeightFile;

    #[test]
    fn the_bytes_that_are_predicted_are_those_that_are_packed() {
        let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/reference/tiny");
        let cpu = Cpu::new(1, Isa::best());
        for name in ["llama", "qwen2", "format-q4_k", "format-q6_k", "format-iq4_xs", "gemma2"] {
            let file = WeightFile::open(format!("{tiny}/{name}.gguf").as_ref()).unwrap();
            for requant in [None, Some(Requant::Q4_0)] {
                let mut graph = Model::from_weights(&file).unwrap().graph;
                requant.map(|form| graph.requantize(form));
                let weights = Weights::of(&cpu, &graph, &file).unwrap();
                let vectors: usize = weights.weights.iter().map(|w| 4 * w.vector.len()).sum();
                let all = (weights.packed_bytes() + vectors) as u64;
                assert_eq!(packed_bytes(&graph), all, "{name} {requant:?}");
            }
        }
    }
}

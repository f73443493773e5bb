//! A stand-in for a model whose weights are not here: a file of zeros with some of its layers.

use std::collections::HashSet;

use lapwing_kernels::graph::{Graph, RowSet};
use lapwing_kernels::op::Op;
use lapwing_kernels::part::Part;
use lapwing_kernels::weights::{Gguf, GgufWriter, TensorInfo, Value, WriteError};
use lapwing_plan::shape::OpShape;
use tempfile::TempPath;

/// Bytes of tensors that a stand-in has at most, unless fewer layers would lack an op of the model. Several times the caches of
/// large processors: each layer is read from memory, as in the model.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// A file with the first layers of a model, and zeros for weights. It is removed when this is dropped.
pub(crate) struct Sample {
    pub(crate) path: TempPath,
}

impl Sample {
    /// Writes a file with the first `layers` layers of the model of a header.
    ///
    /// # Errors
    /// [`WriteError`] if the folder of temporary files cannot be written.
    pub(crate) fn new(gguf: &Gguf, layers: usize) -> Result<Sample, WriteError> {
        let mut writer = GgufWriter::new();
        let prefix = gguf.metadata.opt_str("general.architecture").ok().flatten();
        let prefix = format!("{}.", prefix.unwrap_or_default());
        let all = blocks(gguf, &prefix);
        for (key, value) in gguf.metadata.iter().filter(|(key, _)| !key.starts_with("split.")) {
            let own = key.strip_prefix(&prefix).filter(|_| layers < all);
            match (own, value) {
                (Some("block_count"), _) => writer.meta(key, layers as u32),
                (Some("nextn_predict_layers"), _) => writer.meta(key, 0u32),
                // One element for each layer.
                (Some(_), Value::Array(array)) if array.len() == all => {
                    let first = array.first(layers).map(Value::Array);
                    writer.meta_of(key, first.as_ref().unwrap_or(value))
                }
                _ => writer.meta_of(key, value),
            };
        }
        let kept = |tensor: &&TensorInfo| layer_of(&tensor.name).is_none_or(|layer| layer < layers);
        for tensor in gguf.tensors.iter().filter(kept) {
            writer.tensor_later(&tensor.name, tensor.shape.dims(), tensor.dtype);
        }
        let file = tempfile::Builder::new().prefix("lapwing-fit-").suffix(".gguf").tempfile();
        let (mut file, path) = file?.into_parts();
        writer.write_zeros(&mut file)?;
        Ok(Sample { path })
    }
}

/// Layers of the model that a stand-in needs: as many of the first as have every op of the others, of all rows where those are, and as
/// many more as fit into so many bytes. Also the number of layers of the model.
pub(crate) fn layers_of_sample(gguf: &Gguf, graph: &Graph, bytes_max: u64) -> (usize, usize) {
    let nodes = graph.nodes();
    let layers = nodes.iter().filter_map(|node| node.layer);
    let all = layers.max().map_or(1, |last| last + 1);
    let (mut known, mut needed) = (HashSet::new(), 1);
    for (at, node) in nodes.iter().enumerate() {
        let Some(layer) = node.layer else { continue };
        if matches!(node.op, Op::SelectRows) || !known.insert(OpShape::of(graph, at, &Part::WHOLE))
        {
            continue;
        }
        // A stand-in selects rows behind the last op that mixes them, as the model does.
        let is_of_all = graph.value(node.output).rows != RowSet::Selected;
        let mixes = nodes[at..].iter().find(|node| is_of_all && mixes_rows(&node.op));
        needed = needed.max(1 + mixes.and_then(|node| node.layer).unwrap_or(layer));
    }
    let bytes_below = |layers: usize| {
        let tensors = gguf.tensors.iter();
        let kept = tensors.filter(|t| layer_of(&t.name).is_none_or(|layer| layer < layers));
        kept.map(|tensor| tensor.bytes as u64).fold(0, u64::saturating_add)
    };
    let most = (needed..=all).rev().find(|layers| bytes_below(*layers) <= bytes_max);
    (most.unwrap_or(needed), all)
}

/// Whether what an op makes of a row depends on others.
fn mixes_rows(op: &Op) -> bool {
    matches!(op, Op::Attention(_)) || op.state().is_some()
}

/// Layers of the file, those included that the model does not run.
fn blocks(gguf: &Gguf, prefix: &str) -> usize {
    let count = gguf.metadata.opt_u64(&format!("{prefix}block_count")).ok().flatten();
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// The layer of a tensor `blk.N.…`; `None` outside of the layers.
fn layer_of(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lapwing_kernels::formats::DType;
    use lapwing_kernels::model::Model;
    use lapwing_kernels::weights::{WeightFile, parse_header};

    use super::*;

    fn header(name: &str) -> Gguf {
        let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
        WeightFile::header(&tiny.join(name)).expect("a header")
    }

    /// The shapes of the ops of a graph: of those that compute all rows, and of all.
    fn shapes(graph: &Graph) -> [HashSet<OpShape>; 2] {
        let of = |at: usize| OpShape::of(graph, at, &Part::WHOLE);
        let nodes = graph.nodes().iter().enumerate();
        let of_all = nodes.filter(|(_, node)| graph.value(node.output).rows != RowSet::Selected);
        [of_all.map(|(at, _)| of(at)).collect(), (0..graph.nodes().len()).map(of).collect()]
    }

    /// Whether a graph computes all rows where another one does, and has all of its ops.
    fn covers(graph: &Graph, other: &Graph) -> bool {
        let (own, other) = (shapes(graph), shapes(other));
        own.iter().zip(&other).all(|(own, other)| own.is_superset(other))
    }

    #[test]
    fn the_first_layers_with_zeros_are_a_model_with_the_same_ops() {
        for name in [
            "llama.gguf",
            "llama-split-00001-of-00003.gguf",
            "gemma3.gguf",
            "qwen3.gguf",
            "lfm2.gguf",
            "qwen35-mtp.gguf",
            "nemotron_h.gguf",
            "jamba-dense.gguf",
            "qwen3moe.gguf",
        ] {
            let gguf = header(name);
            let whole = Model::from_header(&gguf).expect("a model");
            let mut least = usize::MAX;
            for layers in (1..=whole.config.layers).rev() {
                let sample = Sample::new(&gguf, layers).expect("written");
                let file = WeightFile::open(&sample.path).expect("a weight file");
                let model = Model::from_weights(&file).expect("a model");
                assert_eq!(model.config.layers, layers, "{name}");
                if covers(&model.graph, &whole.graph) {
                    least = layers;
                }
                let path = sample.path.to_path_buf();
                drop((file, sample));
                assert!(!path.exists(), "{}", path.display());
            }
            let all = whole.config.layers;
            let (needed, _) = layers_of_sample(&gguf, &whole.graph, 0);
            assert!(needed == least || needed == least + 1, "{name}: {needed} for {least}");
            assert_eq!(layers_of_sample(&gguf, &whole.graph, BYTES_MAX), (all, all), "{name}");
        }
    }

    #[test]
    fn a_format_of_one_layer_is_measured_on_all_rows() {
        let mut gguf = header("smollm3.gguf");
        let down = gguf.tensors.iter_mut().find(|tensor| tensor.name == "blk.0.ffn_down.weight");
        let down = down.expect("a matrix");
        assert_ne!(down.dtype, DType::F16);
        down.dtype = DType::F16;
        let whole = Model::from_header(&gguf).expect("a model");
        // The last layer of a stand-in has this matrix for selected rows only.
        let (needed, _) = layers_of_sample(&gguf, &whole.graph, 0);
        assert!((2..whole.config.layers).contains(&needed), "{needed} layers");
        for layers in [1, needed] {
            let sample = Sample::new(&gguf, layers).expect("written");
            let file = WeightFile::open(&sample.path).expect("a weight file");
            let model = Model::from_weights(&file).expect("a model");
            assert_eq!(covers(&model.graph, &whole.graph), layers == needed, "{layers} layers");
        }
    }

    #[test]
    fn lists_with_an_element_for_each_layer_are_cut_to_the_layers() {
        let mut bytes = Vec::new();
        GgufWriter::new()
            .meta("general.architecture", "x")
            .meta("x.block_count", 3u32)
            .meta("x.nextn_predict_layers", 1u32)
            .meta("x.of_layers", vec![7u32, 8, 9])
            .meta("x.of_others", vec![1.0f32, 2.0])
            .meta("y.of_layers", vec![true, true, false])
            .meta("split.count", 2u32)
            .write_to(&mut bytes)
            .expect("written");
        let gguf = parse_header(&bytes).expect("a header");
        let sample = Sample::new(&gguf, 2).expect("written");
        let file = WeightFile::open(&sample.path).expect("a weight file");
        let metadata = file.metadata();
        assert_eq!(metadata.u32("x.block_count").ok(), Some(2));
        assert_eq!(metadata.u32("x.nextn_predict_layers").ok(), Some(0));
        assert_eq!(metadata.u32s("x.of_layers").ok(), Some(vec![7, 8]));
        assert_eq!(metadata.f32s("x.of_others").ok(), Some(vec![1.0, 2.0]));
        assert_eq!(metadata.bools("y.of_layers").ok(), Some(vec![true, true, false]));
        assert!(metadata.get("split.count").is_none());
        let whole = WeightFile::open(&Sample::new(&gguf, 3).expect("written").path);
        assert_eq!(whole.expect("a file").metadata().u32("x.nextn_predict_layers").ok(), Some(1));
    }

    #[test]
    fn a_layer_is_the_number_after_blk() {
        assert_eq!(layer_of("blk.12.attn_q.weight"), Some(12));
        for name in ["output.weight", "blk.x.weight", "v.blk.1.weight", "blk"] {
            assert_eq!(layer_of(name), None, "{name}");
        }
    }
}

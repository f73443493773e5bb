//! Strategies by name.

use std::sync::Arc;

use super::auto::Auto;
use super::auto_place::AutoPlace;
use super::barrier_per_op::BarrierPerOp;
use super::chunk_graph::ChunkGraph;
use super::chunked::Chunked;
use super::cpu_only::CpuOnly;
use super::gpu_only::GpuOnly;
use super::hybrid_cut::HybridCut;
use super::interface::Strategy;
use super::layer_level::LayerLevel;
use super::layer_split::LayerSplit;
use super::multi_sequence_cut::MultiSequenceCut;
use super::npu_padding::NpuPadding;
use super::online_prepare::OnlinePrepare;
use super::options::StrategyOptions;
use super::pipe::Pipe;
use super::row_cut::RowCut;
use super::sequence_cut::SequenceCut;
use super::tensor_level::TensorLevel;

/// A built-in strategy.
#[derive(Clone, Copy, Debug)]
pub struct StrategyEntry {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Creates the strategy.
    pub make: fn(&StrategyOptions) -> Arc<dyn Strategy>,
}

/// All built-in strategies, simplest first.
pub fn registry() -> &'static [StrategyEntry] {
    REGISTRY
}

/// The strategy of that name with these options; `None` if the name is unknown.
pub fn by_name(name: &str, options: &StrategyOptions) -> Option<Arc<dyn Strategy>> {
    REGISTRY.iter().find(|entry| entry.name == name).map(|entry| (entry.make)(options))
}

/// Every strategy with these options, in the order of [`registry`].
pub fn all(options: &StrategyOptions) -> Vec<Arc<dyn Strategy>> {
    REGISTRY.iter().map(|entry| (entry.make)(options)).collect()
}

const REGISTRY: &[StrategyEntry] = &[
    StrategyEntry { name: "cpu-only", about: "all ops on the CPU", make: |_| Arc::new(CpuOnly) },
    StrategyEntry { name: "gpu-only", about: "all ops on the GPU", make: |_| Arc::new(GpuOnly) },
    StrategyEntry {
        name: "barrier-per-op",
        about: "each op on its fastest device, with a barrier after each op",
        make: |o| Arc::new(BarrierPerOp { order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "layer-split",
        about: "an equal number of consecutive layers on each device that runs every op",
        make: |_| Arc::new(LayerSplit),
    },
    StrategyEntry {
        name: "npu-padding",
        about: "static ops on the NPU, padded to the next standard size (300 to 512)",
        make: |o| Arc::new(NpuPadding { order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "online-prepare",
        about: "static ops on the NPU in graphs of the exact length, prepared on demand",
        make: |o| Arc::new(OnlinePrepare { order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "pipe",
        about: "static ops on the NPU in several standard sizes (600 = 512 + 64 + 32)",
        make: |o| Arc::new(Pipe { order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "chunked",
        about: "static ops on the NPU, prompts cut into chunks of one standard size",
        make: |o| {
            let chunk = o.chunk.unwrap_or(Chunked::CHUNK);
            Arc::new(Chunked { chunk, order_swap: o.order_swap })
        },
    },
    StrategyEntry {
        name: "layer-level",
        about: "matmuls on the NPU, other ops and decode on the GPU or CPU",
        make: |o| Arc::new(LayerLevel { order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "row-cut",
        about: "output channels of every matmul divided between devices, also in decode",
        make: |o| Arc::new(RowCut { ratio: o.ratio.clone(), order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "sequence-cut",
        about: "rows divided at one standard size (300 = 256 ‖ 44)",
        make: |o| Arc::new(SequenceCut { order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "multi-sequence-cut",
        about: "rows divided, with several standard sizes on the NPU (600 = 512 + 32 ‖ 56)",
        make: |o| {
            let StrategyOptions { edge_rows, order_swap, .. } = *o;
            Arc::new(MultiSequenceCut { edge_rows, order_swap })
        },
    },
    StrategyEntry {
        name: "hybrid-cut",
        about: "output channels divided, the NPU's rows padded to the next standard size",
        make: |o| {
            Arc::new(HybridCut {
                ratio: o.ratio.clone().unwrap_or_default(),
                order_swap: o.order_swap,
            })
        },
    },
    StrategyEntry {
        name: "chunk-graph",
        about: "attention of a chunk on the CPU overlaps linear layers of the next chunk on the NPU",
        make: |o| {
            let chunk = o.chunk.unwrap_or(ChunkGraph::CHUNK);
            Arc::new(ChunkGraph { chunk, order_swap: o.order_swap })
        },
    },
    StrategyEntry {
        name: "auto-place",
        about: "each block of ops on one device, with the least predicted time of the whole chain",
        make: |o| Arc::new(AutoPlace { order_swap: o.order_swap }),
    },
    StrategyEntry {
        name: "tensor-level",
        about: "each block divided, or not, as the solver predicts to be fastest",
        make: |_| Arc::new(TensorLevel::new()),
    },
    StrategyEntry {
        name: "auto",
        about: "the strategy with the least predicted time for each prompt length",
        make: |o| {
            let others = REGISTRY.iter().filter(|entry| entry.name != "auto");
            let candidates = others.map(|entry| (entry.make)(o)).collect();
            Arc::new(Auto::new(candidates, o.in_flight))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_creates_its_strategy() {
        let options = StrategyOptions::default();
        for entry in registry() {
            let strategy = by_name(entry.name, &options).expect("is known");
            assert_eq!(strategy.name(), entry.name);
            assert_eq!(registry().iter().filter(|e| e.name == entry.name).count(), 1);
        }
        assert!(by_name("no-such-strategy", &options).is_none());
        assert_eq!(all(&options).len(), registry().len());
    }
}

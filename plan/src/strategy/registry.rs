//! Strategies by name.

use std::sync::Arc;

use super::{
    Auto, BarrierPerOp, ChunkGraph, Chunked, CpuOnly, GpuOnly, HybridCut, LayerLevel, LayerSplit,
    MultiSequenceCut, NpuPadding, OnlinePrepare, Pipe, RowCut, SequenceCut, Strategy,
    StrategyOptions, TensorLevel,
};
use crate::place::AutoPlace;

/// A strategy that can be asked for by name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Makes it.
    pub make: fn(&StrategyOptions) -> Arc<dyn Strategy>,
}

/// Every strategy that comes with Lapwing, the simplest first.
pub fn known() -> &'static [Known] {
    KNOWN
}

/// The strategy of that name, with those settings; `None` if there is none.
pub fn by_name(name: &str, options: &StrategyOptions) -> Option<Arc<dyn Strategy>> {
    KNOWN.iter().find(|known| known.name == name).map(|known| (known.make)(options))
}

/// Every strategy, with those settings, in the order of [`known`].
pub fn all(options: &StrategyOptions) -> Vec<Arc<dyn Strategy>> {
    KNOWN.iter().map(|known| (known.make)(options)).collect()
}

const KNOWN: &[Known] = &[
    Known { name: "cpu-only", about: "everything on the CPU", make: |_| Arc::new(CpuOnly) },
    Known { name: "gpu-only", about: "everything on the GPU", make: |_| Arc::new(GpuOnly) },
    Known {
        name: "barrier-per-op",
        about: "every op alone on its best device, a barrier after each",
        make: |o| Arc::new(BarrierPerOp { order_swap: o.order_swap }),
    },
    Known {
        name: "layer-split",
        about: "whole layers in equal runs over all devices that run every op",
        make: |_| Arc::new(LayerSplit),
    },
    Known {
        name: "npu-padding",
        about: "static ops on the NPU, padded to one next standard size (300 to 512)",
        make: |o| Arc::new(NpuPadding { order_swap: o.order_swap }),
    },
    Known {
        name: "online-prepare",
        about: "static ops on the NPU in graphs of the exact length, prepared when needed",
        make: |o| Arc::new(OnlinePrepare { order_swap: o.order_swap }),
    },
    Known {
        name: "pipe",
        about: "static ops on the NPU in several standard sizes (600 = 512 + 64 + 32)",
        make: |o| Arc::new(Pipe { order_swap: o.order_swap }),
    },
    Known {
        name: "chunked",
        about: "static ops on the NPU, prompts in chunks of one standard size",
        make: |o| {
            let chunk = o.chunk.unwrap_or(Chunked::CHUNK);
            Arc::new(Chunked { chunk, order_swap: o.order_swap })
        },
    },
    Known {
        name: "layer-level",
        about: "products on the NPU, everything else and decode on the GPU or CPU",
        make: |o| Arc::new(LayerLevel { order_swap: o.order_swap }),
    },
    Known {
        name: "row-cut",
        about: "features of every product divided between the processors, also in decode",
        make: |o| Arc::new(RowCut { ratio: o.ratio.clone(), order_swap: o.order_swap }),
    },
    Known {
        name: "sequence-cut",
        about: "tokens divided at one standard size (300 = 256 ‖ 44)",
        make: |o| Arc::new(SequenceCut { order_swap: o.order_swap }),
    },
    Known {
        name: "multi-sequence-cut",
        about: "tokens divided, several standard sizes on the NPU (600 = 512 + 32 ‖ 56)",
        make: |o| {
            let StrategyOptions { edge_rows, order_swap, .. } = *o;
            Arc::new(MultiSequenceCut { edge_rows, order_swap })
        },
    },
    Known {
        name: "hybrid-cut",
        about: "features divided, the NPU's rows padded to one standard size",
        make: |o| Arc::new(HybridCut { ratio: o.ratio.clone(), order_swap: o.order_swap }),
    },
    Known {
        name: "chunk-graph",
        about: "chunks whose attention on the CPU overlaps the next one's linear layers on the NPU",
        make: |o| {
            let chunk = o.chunk.unwrap_or(ChunkGraph::CHUNK);
            Arc::new(ChunkGraph { chunk, order_swap: o.order_swap })
        },
    },
    Known {
        name: "auto-place",
        about: "each block of ops where the predicted time of the whole chain is least",
        make: |o| Arc::new(AutoPlace { order_swap: o.order_swap }),
    },
    Known {
        name: "tensor-level",
        about: "each block divided as the solver predicts to be fastest, or not at all",
        make: |_| Arc::new(TensorLevel::new()),
    },
    Known {
        name: "auto",
        about: "for each prompt length the strategy with the least predicted time",
        make: |o| {
            let others = KNOWN.iter().filter(|known| known.name != "auto");
            let candidates = others.map(|known| (known.make)(o)).collect();
            Arc::new(Auto::new(candidates, o.in_flight))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_the_strategy_that_bears_it() {
        let options = StrategyOptions::default();
        for known in known() {
            let strategy = by_name(known.name, &options).expect("is known");
            assert_eq!(strategy.name(), known.name);
            assert_eq!(super::known().iter().filter(|k| k.name == known.name).count(), 1);
        }
        assert!(by_name("no-such-strategy", &options).is_none());
        assert_eq!(all(&options).len(), known().len());
    }
}

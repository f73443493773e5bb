//! How products are cut for registers and caches.

use lapwing_kernels::cpu::{Caches, Cpu, TileShape};
use serde::Serialize;

/// How products are cut for registers and caches.
#[derive(Debug, Serialize)]
pub(super) struct BlocksReport {
    pub(super) caches: CachesReport,
    pub(super) int8: BlockReport,
    pub(super) f32: BlockReport,
    /// Rows that do not share panels, at most.
    pub(super) direct_rows: usize,
    /// None without panels.
    pub(super) panel_columns: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct CachesReport {
    pub(super) first_bytes: usize,
    pub(super) second_bytes: usize,
    pub(super) last_bytes: Option<usize>,
    pub(super) known: bool,
    /// Whether weights are asked for past the second level, which AVX-512 alone does.
    pub(super) past_second: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct BlockReport {
    pub(super) rows: usize,
    pub(super) features: usize,
}

impl BlocksReport {
    pub(super) fn of(cpu: &Cpu) -> BlocksReport {
        let Caches { first, second, last, known, past_second } = cpu.caches();
        let shape = cpu.isa().shape();
        let block = |rows, tiles| BlockReport { rows, features: tiles * TileShape::FEATURES };
        BlocksReport {
            caches: CachesReport {
                first_bytes: first,
                second_bytes: second,
                last_bytes: last,
                known,
                past_second: past_second && cpu.isa().name().starts_with("avx512"),
            },
            int8: block(shape.rows, shape.tiles),
            f32: block(shape.float_rows, shape.float_tiles),
            direct_rows: shape.direct_rows,
            panel_columns: cpu.panel_columns(),
        }
    }
}

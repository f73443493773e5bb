//! Block sizes of matmuls for registers and caches.

use lapwing_kernels::cpu::{Caches, Cpu, PrefetchHint, TileShape};
use serde::{Serialize, Serializer};

/// Block sizes of matmuls for registers and caches.
#[derive(Debug, Serialize)]
pub(super) struct BlocksReport {
    pub(super) caches: CachesReport,
    pub(super) int8: BlockReport,
    pub(super) f32: BlockReport,
    /// Maximum rows that do not share panels.
    pub(super) direct_rows: usize,
    /// Maximum columns of a panel; `None` without panels.
    pub(super) panel_columns: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct CachesReport {
    pub(super) first_bytes: usize,
    pub(super) second_bytes: usize,
    pub(super) last_bytes: Option<usize>,
    pub(super) known: bool,
    #[serde(serialize_with = "level")]
    pub(super) ask_into: PrefetchHint,
}

#[derive(Debug, Serialize)]
pub(super) struct BlockReport {
    pub(super) rows: usize,
    pub(super) features: usize,
}

impl BlocksReport {
    pub(super) fn of(cpu: &Cpu) -> BlocksReport {
        let Caches { l1, l2, largest, detected, prefetch_hint } = cpu.caches();
        let shape = cpu.isa().shape();
        let block = |rows, tiles| BlockReport { rows, features: tiles * TileShape::CHANNELS };
        BlocksReport {
            caches: CachesReport {
                first_bytes: l1,
                second_bytes: l2,
                last_bytes: largest,
                known: detected,
                ask_into: prefetch_hint,
            },
            int8: block(shape.rows, shape.tiles),
            f32: block(shape.float_rows, shape.float_tiles),
            direct_rows: shape.direct_rows,
            panel_columns: cpu.panel_columns(),
        }
    }
}

fn level<S: Serializer>(ask_into: &PrefetchHint, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match ask_into {
        PrefetchHint::AllLevels => "all",
        PrefetchHint::L2Only => "second",
        PrefetchHint::L1Only => "first",
    })
}

//! The CPU back end: ops over row-major `f32` activations, on one thread pool, with the
//! inner loops of one instruction set.
//!
//! The result of a row never depends on how many rows are computed with it, on the number
//! of threads, or on how the work was divided: every output value is accumulated in one
//! fixed order.

mod act;
mod ahead;
mod attention;
mod caches;
mod device;
mod embed;
mod isa;
mod logits;
mod matrix;
mod norm;
mod packed;
mod pool;
mod products;
mod quantize;
pub mod roofline;
mod rope;
mod softmax;
mod tile;
mod unpack;
mod weights;

pub use crate::quant::Activations;
pub use act::{add, add_assign, gated, scale, soft_cap};
pub use attention::{AttentionJob, AttentionMask, AttentionSpan, attention};
pub use caches::{AskInto, Caches};
pub use device::{CpuDevice, CpuDeviceParts};
pub use embed::{EmbedError, Table, embed_rows};
pub use isa::{Isa, TileShape};
pub use logits::{argmax, logprob};
pub use matrix::{Matrix, MatrixError};
pub use norm::rms_norm;
pub use packed::{CacheFault, Features, KeepError, PackCache, PackError, PackReport, Packed};
pub use pool::{ColumnBlock, Grid, Pool, THREADS_MAX};
pub use products::matmul;
pub(crate) use rope::Turn;
pub use rope::{RopeAngles, RopeFreqs, RopeShape, rope};
pub use weights::{BindError, Weights};

use crate::kv::KvDtype;

/// Where CPU ops run: a thread pool and an instruction set.
#[derive(Debug)]
pub struct Cpu {
    pool: Pool,
    isa: Isa,
    activations: Activations,
    caches: Caches,
}

impl Cpu {
    /// A CPU of `threads` threads (the caller included) that uses `isa`.
    pub fn new(threads: usize, isa: Isa) -> Cpu {
        Cpu {
            pool: Pool::new(threads),
            isa,
            activations: Activations::default(),
            caches: Caches::of_machine(),
        }
    }

    /// The same with another treatment of activations.
    #[must_use]
    pub fn with_activations(self, activations: Activations) -> Cpu {
        Cpu { activations, ..self }
    }

    /// The same, cutting its products for caches of these sizes instead of the machine's.
    #[must_use]
    pub fn with_caches(self, caches: Caches) -> Cpu {
        Cpu { caches, ..self }
    }

    /// The thread pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// How activations meet quantised weights.
    pub fn activations(&self) -> Activations {
        self.activations
    }

    /// The caches that products are cut for.
    pub fn caches(&self) -> Caches {
        self.caches
    }

    /// Most columns of weights that a product unpacks at once for many rows, in panels of
    /// [`TileShape::tiles`] tiles; a matrix that has more is cut at multiples of 256. `None` where its
    /// instruction set has no panels.
    pub fn panel_columns(&self) -> Option<usize> {
        let has_panels = self.isa.shape().panel_group_bytes > 0;
        has_panels.then(|| self.panel_groups() * packed::GROUP)
    }

    /// The same in groups of 32 columns, any number where there are no panels.
    pub(crate) fn panel_groups(&self) -> usize {
        products::panel_groups(&self.caches, &self.isa.shape())
    }

    pub(crate) fn kernels(&self) -> &'static isa::Kernels {
        self.isa.kernels()
    }

    /// How attention multiplies pairs of keys and values that are kept so; none where it multiplies
    /// them in f32.
    pub(crate) fn paired(&self, kv: KvDtype) -> Option<&'static isa::paired::Paired> {
        let rounds = self.activations == Activations::Int8 && kv != KvDtype::F32;
        self.kernels().paired.filter(|_| rounds)
    }

    /// Rows per task, so that `rows` rows of `row_len` values make a few tasks per thread
    /// and none is too small to be worth a claim.
    pub(crate) fn rows_per_task(&self, rows: usize, row_len: usize) -> usize {
        let worth = TASK_VALUES_MIN.div_ceil(row_len.max(1));
        rows.div_ceil(self.pool.threads() * 4).max(worth).max(1)
    }
}

/// Fewest values that an element-wise task handles.
const TASK_VALUES_MIN: usize = 4096;

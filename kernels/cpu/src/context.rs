//! The context of every CPU op: a thread pool, an instruction set, and the precision of activations.

use crate::caches::Caches;
use crate::isa::Isa;
use crate::isa::kernels::Kernels;
use crate::loops::quantize::QuantScheme;
use crate::loops::quantize_row::{InputScheme, RowScheme};
use crate::packed::layout::GROUP;
use crate::pool::{CoreSet, CoresError, Pool};
use lapwing_model::formats::DType;
use lapwing_model::quant::Activations;
use std::sync::Arc;

/// Where CPU ops run: a thread pool and an instruction set. Clones share the pool.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Arc<Pool>,
    isa: Isa,
    activations: Activations,
    caches: Caches,
}

impl Cpu {
    /// A CPU of `threads` threads (the caller included) that uses `isa`.
    pub fn new(threads: usize, isa: Isa) -> Cpu {
        Cpu::with_pool(Pool::new(threads), isa)
    }

    /// As [`Cpu::new`], with threads pinned to `cores` if there are any, as by [`Pool::on_cores`].
    ///
    /// # Errors
    /// Those of [`Pool::on_cores`].
    pub fn on_cores(threads: usize, cores: Option<&CoreSet>, isa: Isa) -> Result<Cpu, CoresError> {
        let pool = match cores {
            Some(cores) => Pool::on_cores(threads, cores)?,
            None => Pool::new(threads),
        };
        Ok(Cpu::with_pool(pool, isa))
    }

    fn with_pool(pool: Pool, isa: Isa) -> Cpu {
        let pool = Arc::new(pool);
        Cpu { pool, isa, activations: Activations::default(), caches: Caches::of_machine() }
    }

    /// The same CPU with another precision of activations.
    #[must_use]
    pub fn with_activations(self, activations: Activations) -> Cpu {
        Cpu { activations, ..self }
    }

    /// The same CPU, blocking its matmuls for these cache sizes instead of the machine's.
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

    /// Precision of the activations that quantised weights are multiplied with.
    pub fn activations(&self) -> Activations {
        self.activations
    }

    /// The caches that matmuls are blocked for.
    pub fn caches(&self) -> Caches {
        self.caches
    }

    /// Most columns of weights (k) that a matmul of many rows unpacks at once, in panels of
    /// [`TileShape::tiles`](crate::TileShape::tiles) tiles; a matrix with more columns is cut at
    /// multiples of 256. `None` where the instruction set has no panels.
    pub fn panel_columns(&self) -> Option<usize> {
        let has_panels = self.isa.shape().panel_group_bytes > 0;
        has_panels.then(|| self.panel_groups() * GROUP)
    }

    /// [`panel_columns`](Cpu::panel_columns) in groups of 32 columns; any number without panels.
    pub(crate) fn panel_groups(&self) -> usize {
        self.isa.shape().panel_groups(self.caches.l1)
    }

    pub(crate) fn kernels(&self) -> &'static Kernels {
        self.isa.kernels()
    }

    /// How activations are quantised for weights of this format; `None` where the matmul takes them in
    /// f32: with float weights, and with [`Activations::F32`].
    pub(crate) fn quant_scheme(&self, weights: DType) -> Option<InputScheme> {
        let blocks = QuantScheme::of_format(weights)?;
        let row = |with_min| Some(InputScheme::Row(RowScheme { blocks, with_min }));
        match self.activations {
            Activations::Int8 => Some(InputScheme::Blocks(blocks)),
            Activations::Int8Row => row(false),
            Activations::Int8RowMin => row(true),
            Activations::F32 => None,
        }
    }

    /// As [`quant_scheme`](Cpu::quant_scheme), where a part of a row can be quantised without the others.
    pub(crate) fn block_scheme(&self, weights: DType) -> Option<QuantScheme> {
        match self.quant_scheme(weights)? {
            InputScheme::Blocks(scheme) => Some(scheme),
            InputScheme::Row(_) => None,
        }
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

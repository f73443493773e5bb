//! The thread pool of the CPU back end, and how matrices are divided among its tasks.

mod blocks;
mod cores;
mod grids;
mod grouped_rows;
mod idle_prefetch;
mod job;
mod partition;
mod pinned;
mod places;
mod task_queue;
mod thread_pool;

pub use blocks::{ColumnBlock, Grid};
pub use cores::{CoreSet, CoresError, PinnedThread};
pub(crate) use grids::{AfterBlock, BlockGrid, GridList, NextBlock};
pub(crate) use grouped_rows::{GroupedRows, RowGroup};
pub(crate) use idle_prefetch::IdlePrefetch;
pub(crate) use partition::{GroupedMatrix, PartitionedMatrix};
pub(crate) use places::{Before, PlaceParts, PlacedGroup, PlacedRows};
pub use thread_pool::{Pool, THREADS_MAX};

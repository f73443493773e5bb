//! The thread pool of the CPU back end, and how matrices are divided among its tasks.

mod blocks;
mod cores;
mod idle_prefetch;
mod job;
mod partition;
mod pinned;
mod task_queue;
mod thread_pool;

pub use blocks::{ColumnBlock, Grid};
pub use cores::{CoreSet, CoresError, PinnedThread};
pub(crate) use idle_prefetch::IdlePrefetch;
pub(crate) use partition::{AfterBlock, BlockGrid, NextBlock, PartitionedMatrix};
pub use thread_pool::{Pool, THREADS_MAX};

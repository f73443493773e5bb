//! The interface of every processor: work is submitted to it and completes later.

pub(crate) mod batch;
pub(crate) mod blocking;
pub(crate) mod error;
pub(crate) mod graphs;
pub(crate) mod info;
pub(crate) mod observer;
mod own_memory;
mod per_model;
pub(crate) mod room;
mod runs;
pub(crate) mod work;

pub use crate::tensor::{
    DeviceBuffer, MappedMemory, Slot, SlotPool, SlotSource, SlotStats, Tensor, TensorSet, TopLogit,
};
pub use batch::{Batch, BatchSpan, Fork, ModelId, SpanStates};
pub use blocking::{Blocking, BlockingDevice, StageRun};
pub use error::DeviceError;
pub use graphs::{GraphKey, Prepare, Prepared, Preparer};
pub use info::{Arithmetic, DeviceInfo, DeviceKind, GraphBudget, MemoryDomain, OpSet};
pub use observer::{ExpertLoad, Observer, RowsOfExpert, Step};
pub use own_memory::OwnMemory;
pub use per_model::PerModel;
pub use room::{CacheBytes, NodeOnDevice, Packing, Room, RoomNeed};
pub use runs::Runs;
pub use work::{Completed, Device, Notify, Payload, RunId, Stamps, Task, Work};

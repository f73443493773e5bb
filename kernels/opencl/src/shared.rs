//! Memory of a device that all devices of an engine use in place: values at borders, and keys and values.

use std::sync::Arc;

use super::discovery::{OpenClInfo, SharedKind};
use super::error::OpenClError;
use super::session::{Copier, Session, SharedBuffer, SharedSlot};
use lapwing_model::device::{MappedMemory, SlotSource};

/// How often a probe writes and reads each buffer.
const PROBE_TURNS: u32 = 4;

/// Memory that the host and an OpenCL device share without a copy, as a source for a
/// [`SlotPool`](lapwing_model::device::SlotPool) and a [`KvStore`](lapwing_model::kv::KvStore). Devices with this memory state the memory
/// domain of the host.
#[derive(Debug)]
pub struct SharedMemory {
    pub(super) session: Arc<Session>,
    kind: SharedKind,
}

impl SharedMemory {
    /// Opens the shared memory of a device. `Ok(Err)` says why it has none.
    ///
    /// # Errors
    /// If the device cannot be used at all.
    pub fn open(device: &OpenClInfo) -> Result<Result<Arc<SharedMemory>, String>, OpenClError> {
        let Some(kind) = device.shared_kind() else {
            return Ok(Err("the device has memory of its own".to_owned()));
        };
        SharedMemory::of_kind(device, kind)
    }

    /// As [`open`](SharedMemory::open), for memory of this kind.
    ///
    /// # Errors
    /// If the device cannot be used at all.
    pub fn of_kind(
        device: &OpenClInfo,
        kind: SharedKind,
    ) -> Result<Result<Arc<SharedMemory>, String>, OpenClError> {
        let session = Session::open(device)?;
        let memory = SharedMemory { session, kind };
        Ok(memory.probe().map(|()| Arc::new(memory)))
    }

    /// How it is shared.
    pub fn kind(&self) -> SharedKind {
        self.kind
    }

    /// Bytes of the device's memory.
    pub fn device_bytes(&self) -> u64 {
        self.session.info().memory
    }

    /// Bytes of the largest piece that the driver allocates.
    pub fn largest_bytes(&self) -> u64 {
        self.session.info().buffer_max
    }

    fn buffer(&self, values: usize) -> Option<SharedBuffer> {
        SharedBuffer::allocate(&self.session, self.kind, values)
    }

    /// Checks that the driver gives memory, and that each side sees what the other wrote where the standard does not
    /// promise it.
    fn probe(&self) -> Result<(), String> {
        let none = || format!("the driver gives no {}", self.kind);
        if self.kind == SharedKind::FineGrain {
            return self.buffer(1).map(drop).ok_or_else(none);
        }
        let mut copier = Copier::new(&self.session).map_err(|error| error.to_string())?;
        for values in [32, 5000, 1 << 18] {
            let mut slots = [(); 2].map(|()| self.buffer(values).map(SharedSlot::new));
            let [Some(from), Some(to)] = &mut slots else { return Err(none()) };
            for turn in 0..PROBE_TURNS {
                let value = |at: usize| (at as u32 ^ (turn << 20)) as f32;
                from.values_mut().iter_mut().enumerate().for_each(|(at, from)| *from = value(at));
                let copied = copier.copy(&self.session, from.shared(), to.shared());
                copied.map_err(|error| error.to_string())?;
                if to.values().iter().enumerate().any(|(at, found)| *found != value(at)) {
                    return Err("host and device do not see what the other writes".to_owned());
                }
            }
        }
        Ok(())
    }
}

impl SlotSource for SharedMemory {
    fn allocate(&self, values: usize) -> Option<Box<dyn MappedMemory>> {
        Some(Box::new(SharedSlot::new(self.buffer(values)?)))
    }
}

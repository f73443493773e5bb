//! Host buffers for tensors, which return to their pool when they are dropped.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::sync::{Arc, Mutex, lock};

/// A pool of host buffers, shared by all devices of one address space and reused by every layer
/// (HeteroLLM, section 4.2). Clones share the buffers.
#[derive(Clone, Debug)]
pub struct SlotPool(pub(super) Arc<Mutex<Slots>>);

#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) free: Vec<Storage>,
    /// Memory that a device owns and the host has mapped, in place of the host's own.
    source: Option<std::sync::Arc<dyn SlotSource>>,
    stats: SlotStats,
}

/// Memory of a device that the host reads and writes in place. It stays mapped while this value
/// lives; dropping it gives the memory back.
pub trait MappedMemory: Send + Sync + fmt::Debug {
    /// The values.
    fn values(&self) -> &[f32];

    /// The values, to be changed.
    fn values_mut(&mut self) -> &mut [f32];

    /// The concrete type, by which its device finds the memory object again.
    fn as_any(&self) -> &dyn Any;
}

/// Allocates mapped memory of a device, for a [`SlotPool`] on a machine with unified memory.
pub trait SlotSource: Send + Sync + fmt::Debug {
    /// Memory for at least `values` values; `None` where the device has none left, and the pool
    /// takes memory of the host.
    fn allocate(&self, values: usize) -> Option<Box<dyn MappedMemory>>;
}

/// The memory of a slot.
#[derive(Debug)]
pub(super) enum Storage {
    /// Host memory. Its length is what it has ever held, so that memory is touched only when used.
    Owned(Vec<f32>),
    Mapped(Box<dyn MappedMemory>),
}

impl Default for Storage {
    fn default() -> Storage {
        Storage::Owned(Vec::new())
    }
}

impl Storage {
    pub(super) fn touched(&self) -> usize {
        match self {
            Storage::Owned(values) => values.len(),
            Storage::Mapped(memory) => memory.values().len(),
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Storage::Owned(values) => values.capacity(),
            Storage::Mapped(memory) => memory.values().len(),
        }
    }
}

/// How a pool has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStats {
    /// Slots taken and not given back.
    pub in_use: usize,
    /// Most slots in use at once.
    pub in_use_max: usize,
    /// Slots that had to be allocated or enlarged because none was free and large enough.
    pub made: usize,
    /// Bytes of all slots, free ones and those in use.
    pub bytes: usize,
}

impl SlotPool {
    /// A pool with `slots` slots of `values` values. The memory is reserved here and touched when
    /// it is first used.
    pub fn new(slots: usize, values: usize) -> SlotPool {
        let free = (0..slots).map(|_| Storage::Owned(Vec::with_capacity(values))).collect();
        SlotPool::of(Slots { free, ..Slots::default() })
    }

    /// As [`new`](SlotPool::new), with memory from `source`: on unified memory a value in such a
    /// slot crosses between host and device without a copy.
    pub fn mapped(slots: usize, values: usize, source: std::sync::Arc<dyn SlotSource>) -> SlotPool {
        let allocate = |_| match source.allocate(values) {
            Some(memory) => Storage::Mapped(memory),
            None => Storage::Owned(Vec::with_capacity(values)),
        };
        let free = (0..slots).map(allocate).collect();
        SlotPool::of(Slots { free, source: Some(source), ..Slots::default() })
    }

    fn of(mut slots: Slots) -> SlotPool {
        slots.stats.bytes = slots.free.iter().map(|s| s.capacity() * size_of::<f32>()).sum();
        SlotPool(Arc::new(Mutex::new(slots)))
    }

    /// A slot of `len` values; their content is undefined. Among the smallest free slots that are
    /// large enough, it is the one that touches the least new memory, then the shortest: values of
    /// a few lengths keep to few slots, however often they come and go.
    pub fn take(&self, len: usize) -> Slot {
        let mut slots = lock(&self.0);
        let all = || slots.free.iter().enumerate();
        let new = |slot: &Storage| len.saturating_sub(slot.touched());
        let fits = all().filter(|(_, slot)| slot.capacity() >= len);
        let best = fits.min_by_key(|(_, slot)| (slot.capacity(), new(slot), slot.touched()));
        let at = best.or_else(|| all().max_by_key(|(_, slot)| slot.capacity())).map(|(at, _)| at);
        let mut storage = at.map(|at| slots.free.swap_remove(at)).unwrap_or_default();
        let before = storage.capacity();
        if before < len {
            // Its old content is not needed, so a reallocation would copy it in vain.
            storage = match slots.source.as_ref().and_then(|source| source.allocate(len)) {
                Some(memory) => Storage::Mapped(memory),
                None => Storage::Owned(Vec::with_capacity(len)),
            };
            slots.stats.made += 1;
            slots.stats.bytes += (storage.capacity() - before) * size_of::<f32>();
        }
        slots.stats.in_use += 1;
        slots.stats.in_use_max = slots.stats.in_use_max.max(slots.stats.in_use);
        drop(slots);
        // It never shrinks: a shorter value does not have to be filled again later.
        if let Storage::Owned(values) = &mut storage
            && values.len() < len
        {
            values.resize(len, 0.0);
        }
        Slot { storage, len, home: Some(self.clone()) }
    }

    /// How it has been used.
    pub fn stats(&self) -> SlotStats {
        lock(&self.0).stats
    }

    fn give_back(&self, storage: Storage) {
        let mut slots = lock(&self.0);
        slots.stats.in_use -= 1;
        slots.free.push(storage);
    }
}

impl Default for SlotPool {
    /// A pool that grows on demand.
    fn default() -> SlotPool {
        SlotPool::new(0, 0)
    }
}

/// Values in a host buffer, which returns to its pool when this is dropped.
#[derive(Debug, Default)]
pub struct Slot {
    storage: Storage,
    /// At most the length of the storage.
    len: usize,
    home: Option<SlotPool>,
}

impl Slot {
    /// The device memory behind it, if a device owns it and the host has mapped it.
    pub fn mapped(&self) -> Option<&dyn MappedMemory> {
        match &self.storage {
            Storage::Owned(_) => None,
            Storage::Mapped(memory) => Some(&**memory),
        }
    }
}

impl From<Vec<f32>> for Slot {
    /// Values outside any pool.
    fn from(data: Vec<f32>) -> Slot {
        Slot { len: data.len(), storage: Storage::Owned(data), home: None }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.give_back(std::mem::take(&mut self.storage));
        }
    }
}

impl Deref for Slot {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.storage {
            Storage::Owned(values) => &values[..self.len],
            Storage::Mapped(memory) => &memory.values()[..self.len],
        }
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [f32] {
        match &mut self.storage {
            Storage::Owned(values) => &mut values[..self.len],
            Storage::Mapped(memory) => &mut memory.values_mut()[..self.len],
        }
    }
}

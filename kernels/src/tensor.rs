//! Matrices that cross the borders between stages, and the buffers that hold them.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::device::{DeviceError, MemoryDomain};
use crate::graph::ValueId;
use crate::quant::DType;
use crate::sync::{Arc, Mutex, lock};

/// A pool of host buffers, shared by all devices of one address space and reused by every layer
/// (HeteroLLM, section 4.2). Clones share the buffers.
#[derive(Clone, Debug)]
pub struct SlotPool(Arc<Mutex<Slots>>);

#[derive(Debug, Default)]
struct Slots {
    free: Vec<Storage>,
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
enum Storage {
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
    fn touched(&self) -> usize {
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

/// Values in the memory of a device.
pub trait DeviceBuffer: Send + Sync + fmt::Debug {
    /// The memory that holds them.
    fn domain(&self) -> MemoryDomain;

    /// Number of values.
    fn len(&self) -> usize;

    /// Whether there is no value.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their format.
    fn dtype(&self) -> DType;

    /// Copies all values to the host, as f32. Waits for the copy, and for the run that writes the
    /// buffer.
    ///
    /// # Errors
    /// [`DeviceError`] when the device has failed.
    fn read(&self, values: &mut [f32]) -> Result<(), DeviceError>;

    /// The concrete type, by which its device finds the memory object again.
    fn as_any(&self) -> &dyn Any;
}

/// A matrix `[rows, width]`, row-major: f32 in host memory, or in the format and memory of a
/// device.
#[derive(Debug, Default)]
pub struct Tensor {
    /// Values per row.
    pub width: usize,
    buffer: Buffer,
}

#[derive(Debug)]
enum Buffer {
    Host(Slot),
    Device(std::sync::Arc<dyn DeviceBuffer>),
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::Host(Slot::default())
    }
}

/// A matrix as the host sees it.
#[derive(Debug)]
pub enum HostView<'a> {
    /// It is in host memory.
    InPlace(&'a [f32]),
    /// A copy of device memory.
    Copied(Slot),
}

impl Deref for HostView<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            HostView::InPlace(values) => values,
            HostView::Copied(slot) => slot,
        }
    }
}

impl Tensor {
    /// A matrix in host memory, of rows of `width` values.
    pub fn new(width: usize, data: impl Into<Slot>) -> Tensor {
        Tensor { width, buffer: Buffer::Host(data.into()) }
    }

    /// A matrix in a device's memory, of rows of `width` values.
    pub fn in_device(width: usize, buffer: std::sync::Arc<dyn DeviceBuffer>) -> Tensor {
        Tensor { width, buffer: Buffer::Device(buffer) }
    }

    /// Where it is.
    pub fn domain(&self) -> MemoryDomain {
        match &self.buffer {
            Buffer::Host(_) => MemoryDomain::Host,
            Buffer::Device(buffer) => buffer.domain(),
        }
    }

    /// Format of its values.
    pub fn dtype(&self) -> DType {
        match &self.buffer {
            Buffer::Host(_) => DType::F32,
            Buffer::Device(buffer) => buffer.dtype(),
        }
    }

    /// Its values, if they are in host memory.
    pub fn host(&self) -> Option<&[f32]> {
        self.slot().map(|slot| &**slot)
    }

    /// Its values, to be changed, if they are in host memory.
    pub fn host_mut(&mut self) -> Option<&mut [f32]> {
        match &mut self.buffer {
            Buffer::Host(slot) => Some(slot),
            Buffer::Device(_) => None,
        }
    }

    /// Its host buffer, if it is in host memory.
    pub fn slot(&self) -> Option<&Slot> {
        match &self.buffer {
            Buffer::Host(slot) => Some(slot),
            Buffer::Device(_) => None,
        }
    }

    /// Its buffer in a device's memory, if it is there.
    pub fn device_buffer(&self) -> Option<&std::sync::Arc<dyn DeviceBuffer>> {
        match &self.buffer {
            Buffer::Host(_) => None,
            Buffer::Device(buffer) => Some(buffer),
        }
    }

    /// Its values on the host: in place, or copied into a slot of `slots` after a wait for the
    /// device.
    ///
    /// # Errors
    /// [`DeviceError`] when the device has failed.
    pub fn host_view(&self, slots: &SlotPool) -> Result<HostView<'_>, DeviceError> {
        match &self.buffer {
            Buffer::Host(slot) => Ok(HostView::InPlace(slot)),
            Buffer::Device(buffer) => {
                let mut slot = slots.take(buffer.len());
                buffer.read(&mut slot)?;
                Ok(HostView::Copied(slot))
            }
        }
    }

    /// One row.
    ///
    /// # Panics
    /// When the matrix is not in host memory, or has no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        let values = self.host().expect("a matrix in host memory");
        &values[row * self.width..(row + 1) * self.width]
    }

    fn len(&self) -> usize {
        match &self.buffer {
            Buffer::Host(slot) => slot.len(),
            Buffer::Device(buffer) => buffer.len(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.len().checked_div(self.width).unwrap_or(0)
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        (self.len() * self.dtype().block_bytes() / self.dtype().block_len()) as u64
    }
}

/// Values that cross the border between two stages.
#[derive(Debug, Default)]
pub struct TensorSet {
    tensors: Vec<(ValueId, Tensor)>,
}

impl TensorSet {
    /// Adds a value; one with the same id is replaced.
    pub fn put(&mut self, id: ValueId, tensor: Tensor) {
        self.tensors.retain(|(other, _)| *other != id);
        self.tensors.push((id, tensor));
    }

    /// A value, if it is here.
    pub fn get(&self, id: ValueId) -> Option<&Tensor> {
        self.tensors.iter().find(|(other, _)| *other == id).map(|(_, t)| t)
    }

    /// A value, to be changed.
    pub fn get_mut(&mut self, id: ValueId) -> Option<&mut Tensor> {
        self.tensors.iter_mut().find(|(other, _)| *other == id).map(|(_, t)| t)
    }

    /// Takes a value out.
    pub fn take(&mut self, id: ValueId) -> Option<Tensor> {
        let at = self.tensors.iter().position(|(other, _)| *other == id)?;
        Some(self.tensors.swap_remove(at).1)
    }

    /// Drops every value that is not among `ids`.
    pub fn keep(&mut self, ids: &[ValueId]) {
        self.tensors.retain(|(id, _)| ids.contains(id));
    }

    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = (ValueId, &Tensor)> {
        self.tensors.iter().map(|(id, tensor)| (*id, tensor))
    }

    /// Adds all values of another set.
    pub fn append(&mut self, other: TensorSet) {
        other.tensors.into_iter().for_each(|(id, tensor)| self.put(id, tensor));
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|(_, tensor)| tensor.bytes()).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_to_its_pool_and_is_used_again() {
        let pool = SlotPool::new(2, 100);
        let (a, b) = (pool.take(100), pool.take(7));
        assert_eq!((a.len(), b.len()), (100, 7));
        assert_eq!(pool.stats().in_use, 2);
        drop((a, b));
        let again = pool.take(90);
        assert_eq!(again.len(), 90);
        let stats = pool.stats();
        assert_eq!((stats.in_use, stats.in_use_max, stats.made), (1, 2, 0));
    }

    #[test]
    fn values_that_come_and_go_keep_to_few_slots() {
        let pool = SlotPool::new(12, 300);
        let kept = pool.take(100);
        for layer in 0..30 {
            let three = [100, 40, 40].map(|len| pool.take(len));
            let other = pool.take(100);
            drop(three);
            drop((other, pool.take(300)));
            // In another order, so that what is free lies in another one, too.
            drop((0..layer % 4).map(|_| pool.take(40)).collect::<Vec<Slot>>());
        }
        drop(kept);
        let touched: usize = lock(&pool.0).free.iter().map(Storage::touched).sum();
        assert_eq!(touched, 100 + 2 * 300 + 2 * 40, "five are in use at once, two of them long");
    }

    #[test]
    fn what_does_not_fit_is_made_and_counted() {
        let pool = SlotPool::new(1, 10);
        let bytes = pool.stats().bytes;
        let slot = pool.take(11);
        assert_eq!(pool.stats().made, 1);
        assert!(pool.stats().bytes > bytes);
        drop(slot);
        drop(pool.take(11));
        assert_eq!(pool.stats().made, 1, "the larger slot is used again");
    }

    /// Memory that a device owns and the host has mapped.
    #[derive(Debug)]
    struct Mapped {
        values: Vec<f32>,
        live: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    }

    impl Drop for Mapped {
        fn drop(&mut self) {
            self.live.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    impl MappedMemory for Mapped {
        fn values(&self) -> &[f32] {
            &self.values
        }

        fn values_mut(&mut self) -> &mut [f32] {
            &mut self.values
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    /// A device with room for two slots.
    #[derive(Debug, Default)]
    struct Source(std::sync::Arc<std::sync::atomic::AtomicUsize>);

    impl SlotSource for Source {
        fn allocate(&self, values: usize) -> Option<Box<dyn MappedMemory>> {
            let live = std::sync::Arc::clone(&self.0);
            if live.load(std::sync::atomic::Ordering::Relaxed) == 2 {
                return None;
            }
            live.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Some(Box::new(Mapped { values: vec![0.0; values], live }))
        }
    }

    #[test]
    fn slots_use_mapped_memory_as_long_as_the_device_has_some() {
        let live = std::sync::Arc::default();
        let source = std::sync::Arc::new(Source(std::sync::Arc::clone(&live)));
        let pool = SlotPool::mapped(1, 8, source);
        let (mut first, second, third) = (pool.take(8), pool.take(4), pool.take(4));
        assert!(first.mapped().is_some() && second.mapped().is_some());
        assert!(third.mapped().is_none(), "the device has no more");
        first[7] = 3.0;
        let tensor = Tensor::new(4, first);
        // The device finds its memory object behind the tensor, with the values in place.
        let memory = tensor.slot().and_then(Slot::mapped).expect("mapped memory");
        let mapped = memory.as_any().downcast_ref::<Mapped>().expect("the device's own");
        assert_eq!((mapped.values[7], tensor.row(1)[3]), (3.0, 3.0));
        drop((tensor, second, third));
        assert_eq!(pool.stats().in_use, 0);
        drop(pool);
        assert_eq!(live.load(std::sync::atomic::Ordering::Relaxed), 0, "memory is given back");
    }

    /// f16 values in a device's memory.
    #[derive(Debug)]
    struct Remote(Vec<half::f16>);

    impl DeviceBuffer for Remote {
        fn domain(&self) -> MemoryDomain {
            MemoryDomain::Device(1)
        }

        fn len(&self) -> usize {
            self.0.len()
        }

        fn dtype(&self) -> DType {
            DType::F16
        }

        fn read(&self, values: &mut [f32]) -> Result<(), DeviceError> {
            values.iter_mut().zip(&self.0).for_each(|(to, from)| *to = from.to_f32());
            Ok(())
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    #[test]
    fn a_host_view_is_in_place_on_the_host_and_a_copy_of_device_memory() {
        let pool = SlotPool::default();
        let here = Tensor::new(2, vec![1.0, 2.0]);
        assert!(matches!(here.host_view(&pool), Ok(HostView::InPlace([1.0, 2.0]))));
        let there = Remote([1.0, 2.0, 0.5, 4.0].map(half::f16::from_f32).to_vec());
        let there = Tensor::in_device(2, std::sync::Arc::new(there));
        assert_eq!((there.rows(), there.bytes(), there.dtype()), (2, 8, DType::F16));
        assert!(there.host().is_none() && there.slot().is_none());
        let view = there.host_view(&pool).expect("a copy");
        assert_eq!(&view[..], [1.0, 2.0, 0.5, 4.0]);
        drop(view);
        assert_eq!(pool.stats().in_use, 0);
    }
}

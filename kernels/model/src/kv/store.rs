//! Storage of keys and values.

pub(crate) mod copies;
mod duplicate;
mod layer;
mod paged;
pub(crate) mod panel;
mod state;

use copies::{Copies, KvPart};
pub use copies::{KvAccess, KvCopies, KvCopyId, KvMirror};
pub use duplicate::DuplicatePage;
pub use layer::{KvElements, KvLayer};
use paged::Paged;
pub use state::StateLayer;

use super::{KvDtype, KvHeads, KvLayout, KvPool, KvSize, KvTooLarge, PageId};
use crate::device::{DeviceError, MappedMemory, SlotSource};
use crate::sync::{Mutex, lock};
use std::io;
use std::sync::Arc;

/// Storage of all KV pages, shared by the devices of one address space. In host memory, a page
/// takes physical memory when it is first written; in shared memory of a device, from the start. Each layer has its own lock, which a
/// device holds during attention: chunks in different layers do not wait for each other.
///
/// Within a page, keys are `[kv_head][key_dim][row]`, so that the scores of a page are sums over
/// vectors of neighbouring keys; values are `[kv_head][row][value_dim]`. For [`KvDtype::I8`], both are
/// followed by the scales of keys and of values, each `[kv_head][row]`. A layer starts at a memory
/// page, so that a head's keys (or values) of 4096 bytes, a common size, are within one.
///
/// States are in memory of the same kind, each layer's by themselves, with a lock of their own.
///
/// A device with its own memory keeps copies of pages and states and attaches a [`KvMirror`]; what one side
/// writes is copied to the other, page by page and place by place, when that needs it.
#[derive(Debug)]
pub struct KvStore {
    layout: KvLayout,
    pages: usize,
    pool: KvPool,
    layers: Vec<Mutex<Data>>,
    state_pool: KvPool,
    /// The states of each layer that has one, in the order of their places.
    states: Vec<Mutex<Paged<f32>>>,
    copies: Copies,
}

#[derive(Debug)]
enum Data {
    F32(Paged<f32>),
    F16(Paged<u16>),
    I8(Paged<i8>),
}

impl Data {
    fn zeroed(dtype: KvDtype, len: usize, source: Option<&dyn SlotSource>) -> io::Result<Data> {
        Ok(match dtype {
            KvDtype::F32 => Data::F32(Paged::zeroed_in(len, source)?),
            KvDtype::F16 => Data::F16(Paged::zeroed_in(len, source)?),
            KvDtype::I8 => Data::I8(Paged::zeroed_in(len, source)?),
        })
    }

    /// Its shared memory; `None` in host memory.
    fn mapped(&self) -> Option<&dyn MappedMemory> {
        match self {
            Data::F32(data) => data.mapped(),
            Data::F16(data) => data.mapped(),
            Data::I8(data) => data.mapped(),
        }
    }

    /// Copies the elements in this range to another place.
    fn copy_within(&mut self, from: std::ops::Range<usize>, to: usize) {
        match self {
            Data::F32(data) => data.copy_within(from, to),
            Data::F16(data) => data.copy_within(from, to),
            Data::I8(data) => data.copy_within(from, to),
        }
    }

    /// Bytes of the stored elements in this range.
    fn bytes_mut(&mut self, of: std::ops::Range<usize>) -> &mut [u8] {
        match self {
            Data::F32(data) => bytemuck::cast_slice_mut(&mut data[of]),
            Data::F16(data) => bytemuck::cast_slice_mut(&mut data[of]),
            Data::I8(data) => bytemuck::cast_slice_mut(&mut data[of]),
        }
    }
}

impl KvStore {
    /// Zeroed storage.
    ///
    /// # Errors
    /// [`KvTooLarge`] if the system does not have that much memory.
    pub fn new(layout: KvLayout, size: impl Into<KvSize>) -> Result<KvStore, KvTooLarge> {
        KvStore::in_memory_of(layout, size.into(), None)
    }

    /// As [`new`](KvStore::new), but allocates each layer and each state from `source`, as memory that a device shares with the
    /// host, and fills it with zeros. One for which `source` has no memory is allocated in host memory.
    ///
    /// # Errors
    /// As [`new`](KvStore::new).
    pub fn in_memory_of(
        layout: KvLayout,
        size: KvSize,
        source: Option<&dyn SlotSource>,
    ) -> Result<KvStore, KvTooLarge> {
        let (pages, places) = (size.pages as usize, size.states as usize);
        let (page_bytes, state_bytes) = (layout.page_bytes(), layout.state_bytes());
        let too_large = KvTooLarge { pages, page_bytes, states: places, state_bytes };
        let all = size.bytes(&layout).ok_or(too_large)?;
        // As one piece first: each layer may fit while all of them do not.
        Paged::<u8>::zeroed(all).map_err(|_| too_large)?;
        let len = |layer| layout.layer(layer).page_len() * pages;
        let data =
            (0..layout.layers.len()).map(|layer| Data::zeroed(layout.dtype, len(layer), source));
        let data = data.map(|data| data.map(Mutex::new));
        let layers = data.collect::<io::Result<_>>().map_err(|_| too_large)?;
        let zeroed = |values: usize| Paged::zeroed_in(values * places, source);
        let states = layout.states.iter().map(|state| zeroed(state.values));
        let states = states.map(|state| state.map(Mutex::new));
        let states = states.collect::<io::Result<_>>().map_err(|_| too_large)?;
        let (pool, state_pool) = (KvPool::new(size.pages), KvPool::new(size.states));
        let copies = Copies::new(layout.clone(), size);
        Ok(KvStore { layout, pages, pool, layers, state_pool, states, copies })
    }

    /// A store without layers and pages, for a device that computes no attention.
    pub fn none() -> KvStore {
        let layout = KvLayout::uniform(0, KvHeads::new(0, 0), 1, KvDtype::default());
        let (pool, state_pool) = (KvPool::new(0), KvPool::new(0));
        let copies = Copies::new(layout.clone(), 0.into());
        let (layers, states) = (Vec::new(), Vec::new());
        KvStore { layout, pages: 0, pool, layers, state_pool, states, copies }
    }

    /// Shape of the cache.
    pub fn layout(&self) -> &KvLayout {
        &self.layout
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// The allocator of its pages. A device that is lost withholds those that its commands may still write.
    pub fn pool(&self) -> &KvPool {
        &self.pool
    }

    /// The allocator of the places of states.
    pub fn state_pool(&self) -> &KvPool {
        &self.state_pool
    }

    /// Pages and states that were copied between the host and devices with their own memory.
    pub fn copies(&self) -> KvCopies {
        self.copies.stats()
    }

    /// Number of layers and states in host memory, which a device must copy.
    pub fn layers_of_host(&self) -> usize {
        let states = self.states.iter().filter(|state| lock(state).mapped().is_none()).count();
        self.layers.iter().filter(|layer| lock(layer).mapped().is_none()).count() + states
    }

    /// Applies `find` to the shared memory of a layer; `None` for a layer in host memory.
    pub fn memory_of<T>(
        &self,
        layer: usize,
        find: impl FnOnce(&dyn MappedMemory) -> Option<T>,
    ) -> Option<T> {
        find(lock(&self.layers[layer]).mapped()?)
    }

    /// Prepares rows of a layer for a device that reads and writes the host's pages in place.
    ///
    /// # Errors
    /// [`DeviceError`] of another device that alone holds a page.
    pub fn bring_to_shared(&self, layer: usize, access: &KvAccess<'_>) -> Result<(), DeviceError> {
        // Only a device with copies takes pages away from the host.
        if self.copies.is_alone() {
            return Ok(());
        }
        self.layer(layer).bring_to_host(access).map(drop)
    }

    /// Registers copies of the pages and states in a device's memory; `None` if there are too many devices.
    pub fn attach(&self, mirror: Arc<dyn KvMirror>) -> Option<KvCopyId> {
        self.copies.attach(mirror)
    }

    /// Prepares rows of a layer for a device that reads and writes them: `upload` receives each page
    /// that the device lacks.
    ///
    /// # Errors
    /// [`DeviceError`] of another device that holds a page.
    pub fn bring_to_device(
        &self,
        layer: usize,
        copy: KvCopyId,
        access: &KvAccess<'_>,
        mut upload: impl FnMut(PageId, &[u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let missing = self.copies.claim(layer, copy, access);
        if missing.is_empty() {
            return Ok(());
        }
        let of_layer = self.layout.layer(layer);
        let len = of_layer.page_len();
        let mut data = lock(&self.layers[layer]);
        self.copies.count_to_device(missing.len(), of_layer.page_bytes());
        for (page, from) in missing {
            let bytes = data.bytes_mut(page as usize * len..(page as usize + 1) * len);
            if from != KvCopyId::HOST {
                self.copies.fetch(KvPart::Pages(layer), page, from, bytes)?;
            }
            upload(page, bytes)?;
        }
        Ok(())
    }

    /// Sets the first `pages` pages of all layers to zero, so that later writes cause no page faults.
    pub fn clear(&self, pages: usize) {
        for (number, layer) in self.layers.iter().enumerate() {
            let len = self.layout.layer(number).page_len() * pages.min(self.pages);
            match &mut *lock(layer) {
                Data::F32(data) => data[..len].fill(0.0),
                Data::F16(data) => data[..len].fill(0),
                Data::I8(data) => data[..len].fill(0),
            }
        }
    }
}

#[cfg(test)]
mod tests;

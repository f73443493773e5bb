//! Storage of keys and values.

pub(crate) mod copies;
mod paged;
pub(crate) mod panel;
mod rows;

use copies::Copies;
pub use copies::{KvAccess, KvCopies, KvCopyId, KvMirror};
use paged::Paged;
use panel::Panel;
pub(crate) use rows::ROTARY_DIM_MAX;

use super::{KvDtype, KvLayout, KvTooLarge, PageId};
use crate::cpu::context::Cpu;
use crate::cpu::rope::Rotation;
use crate::device::DeviceError;
use crate::sync::{Mutex, MutexGuard, lock};
use rows::Rows;
use std::io;
use std::sync::Arc;

/// Storage of all KV pages, shared by the devices of one address space. Pages that were never
/// written occupy no physical memory. Each layer has its own lock, which a device holds during
/// attention: chunks in different layers do not wait for each other.
///
/// Within a page, keys are `[kv_head][head_dim][row]`, so that the scores of a page are sums over
/// vectors of neighbouring keys; values are `[kv_head][row][head_dim]`. For [`KvDtype::I8`], both are
/// followed by the scales of keys and of values, each `[kv_head][row]`. A layer starts at a memory
/// page, so that a head's keys (or values) of 4096 bytes, a common size, are within one.
///
/// A device with its own memory keeps copies of pages and attaches a [`KvMirror`]; rows that one side
/// writes are copied to the other page by page when it needs them.
#[derive(Debug)]
pub struct KvStore {
    layout: KvLayout,
    pages: usize,
    layers: Vec<Mutex<Data>>,
    copies: Copies,
}

#[derive(Debug)]
enum Data {
    F32(Paged<f32>),
    F16(Paged<u16>),
    I8(Paged<i8>),
}

impl Data {
    fn zeroed(dtype: KvDtype, len: usize) -> io::Result<Data> {
        Ok(match dtype {
            KvDtype::F32 => Data::F32(Paged::zeroed(len)?),
            KvDtype::F16 => Data::F16(Paged::zeroed(len)?),
            KvDtype::I8 => Data::I8(Paged::zeroed(len)?),
        })
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

/// Stored elements of a page in one layer.
fn page_len(layout: &KvLayout) -> usize {
    match layout.dtype {
        KvDtype::F32 | KvDtype::F16 => 2 * layout.part_len(),
        KvDtype::I8 => 2 * layout.part_len() + 2 * layout.scale_bytes(),
    }
}

impl KvStore {
    /// Zeroed storage for `pages` pages.
    ///
    /// # Errors
    /// [`KvTooLarge`] if the system does not have that much memory.
    pub fn new(layout: KvLayout, pages: u32) -> Result<KvStore, KvTooLarge> {
        let pages = pages as usize;
        let too_large = KvTooLarge { pages, page_bytes: layout.page_bytes() };
        let all = layout.page_bytes().checked_mul(pages).ok_or(too_large)?;
        // As one piece first: each layer may fit while all of them do not.
        Paged::<u8>::zeroed(all).map_err(|_| too_large)?;
        let layer = page_len(&layout) * pages;
        let data = (0..layout.layers).map(|_| Data::zeroed(layout.dtype, layer).map(Mutex::new));
        let layers = data.collect::<io::Result<_>>().map_err(|_| too_large)?;
        Ok(KvStore { layout, pages, layers, copies: Copies::new(layout.layers) })
    }

    /// A store without layers and pages, for a device that computes no attention.
    pub fn none() -> KvStore {
        let dtype = KvDtype::default();
        let layout = KvLayout { layers: 0, kv_heads: 0, head_dim: 0, page_rows: 1, dtype };
        KvStore { layout, pages: 0, layers: Vec::new(), copies: Copies::new(0) }
    }

    /// Shape of the cache.
    pub fn layout(&self) -> &KvLayout {
        &self.layout
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Bytes of a page in one layer.
    pub(crate) fn layer_page_bytes(&self) -> usize {
        self.layout.page_bytes() / self.layout.layers.max(1)
    }

    /// Pages that were copied between the host and devices with their own memory.
    pub fn copies(&self) -> KvCopies {
        self.copies.stats(self.layer_page_bytes())
    }

    /// Registers copies of the pages in a device's memory; `None` if there are too many devices.
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
        (copy, access): (KvCopyId, &KvAccess<'_>),
        mut upload: impl FnMut(PageId, &[u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let missing = self.copies.claim((layer, self.pages), &self.layout, (copy, access));
        if missing.is_empty() {
            return Ok(());
        }
        let len = page_len(&self.layout);
        let mut data = lock(&self.layers[layer]);
        self.copies.count_to_device(missing.len());
        for (page, from) in missing {
            let bytes = data.bytes_mut(page as usize * len..(page as usize + 1) * len);
            if from != KvCopyId::HOST {
                self.copies.fetch((layer, page), from, bytes)?;
            }
            upload(page, bytes)?;
        }
        Ok(())
    }

    /// Sets the first `pages` pages of all layers to zero, so that later writes cause no page faults.
    pub fn clear(&self, pages: usize) {
        let len = page_len(&self.layout) * pages.min(self.pages);
        for layer in &self.layers {
            match &mut *lock(layer) {
                Data::F32(data) => data[..len].fill(0.0),
                Data::F16(data) => data[..len].fill(0),
                Data::I8(data) => data[..len].fill(0),
            }
        }
    }

    /// Locks a layer's keys and values; waits while another thread holds the lock.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn layer(&self, layer: usize) -> KvLayer<'_> {
        KvLayer {
            layout: self.layout,
            pages: self.pages,
            page_len: page_len(&self.layout),
            part_len: self.layout.part_len(),
            head_len: self.layout.head_len(),
            layer,
            copies: &self.copies,
            data: lock(&self.layers[layer]),
        }
    }
}

/// Keys and values of one layer, locked.
#[derive(Debug)]
pub struct KvLayer<'a> {
    layout: KvLayout,
    pages: usize,
    /// Stored elements of a page, of its keys (or values), and of one head's keys (or values).
    page_len: usize,
    part_len: usize,
    head_len: usize,
    layer: usize,
    copies: &'a Copies,
    data: MutexGuard<'a, Data>,
}

impl KvLayer<'_> {
    /// Shape of the cache.
    pub fn layout(&self) -> &KvLayout {
        &self.layout
    }

    /// A byte of a page, for tests.
    #[cfg(test)]
    pub(super) fn byte(&mut self, page: PageId, at: usize) -> u8 {
        let start = page as usize * self.page_len;
        self.data.bytes_mut(start..start + self.page_len)[at]
    }

    /// Prepares rows for the host, which reads and writes them: copies the pages that only devices
    /// hold. Returns the number of bytes copied.
    ///
    /// # Errors
    /// [`DeviceError`] of a device that holds a page.
    pub(crate) fn bring_to_host(&mut self, access: &KvAccess<'_>) -> Result<usize, DeviceError> {
        if self.copies.is_alone() {
            return Ok(0);
        }
        let at = (self.layer, self.pages);
        let missing = self.copies.claim(at, &self.layout, (KvCopyId::HOST, access));
        let mut copied = 0;
        for (page, from) in missing {
            let start = page as usize * self.page_len;
            let bytes = self.data.bytes_mut(start..start + self.page_len);
            self.copies.fetch((self.layer, page), from, bytes)?;
            copied += bytes.len();
        }
        Ok(copied)
    }

    /// Writes the rows of one sequence from position `start_pos` on: `k` and `v` are
    /// `[rows][kv_heads][head_dim]` and are converted to the storage type.
    ///
    /// # Panics
    /// If `k` and `v` are not equally many whole rows, or `pages` has too few, unknown or repeated
    /// pages.
    pub fn write(&mut self, cpu: &Cpu, pages: &[PageId], start_pos: usize, kv: (&[f32], &[f32])) {
        self.write_rotated(cpu, (pages, start_pos), kv, None);
    }

    /// As [`write`](KvLayer::write), with rotary embedding applied to the keys.
    ///
    /// # Panics
    /// As [`write`](KvLayer::write), or if keys are rotated and heads have more than
    /// [`ROTARY_DIM_MAX`] values.
    pub(crate) fn write_rotated(
        &mut self,
        cpu: &Cpu,
        (pages, start_pos): (&[PageId], usize),
        (k, v): (&[f32], &[f32]),
        rotation: Option<Rotation<'_>>,
    ) {
        let layout = self.layout;
        let (page_rows, width) = (layout.page_rows, layout.kv_heads * layout.head_dim);
        assert!(
            k.len() == v.len() && k.len().is_multiple_of(width),
            "k and v are not equally many whole rows"
        );
        if k.is_empty() {
            return;
        }
        let end_pos = start_pos + k.len() / width;
        let first = start_pos / page_rows;
        let pages = &pages[first..end_pos.div_ceil(page_rows)];
        for page in pages {
            assert!((*page as usize) < self.pages, "KV page {page} of {}", self.pages);
        }
        let rows = |i: usize| {
            let page_start = (first + i) * page_rows;
            let from = page_start.max(start_pos);
            let to = (page_start + page_rows).min(end_pos);
            let first = from - start_pos;
            let values = first * width..(to - start_pos) * width;
            let (k, v) = (&k[values.clone()], &v[values]);
            let rotation = rotation.map(|rotation| (cpu, rotation, first));
            Rows { layout, at: from - page_start, k, v, rotation }
        };
        let (pool, len) = (cpu.pool(), self.page_len);
        let f32_to_f16 = cpu.kernels().f32_to_f16;
        match &mut *self.data {
            Data::F32(data) => pool.picks_mut(data, len, pages, |i, page| {
                rows(i).put(page, |x, to| to.copy_from_slice(x));
            }),
            Data::F16(data) => {
                pool.picks_mut(data, len, pages, |i, page| rows(i).put(page, f32_to_f16));
            }
            Data::I8(data) => {
                pool.picks_mut(data, len, pages, |i, page| rows(i).put_quantized(page));
            }
        }
    }

    /// Keys of a page and head: `[head_dim][page_rows]`.
    ///
    /// # Panics
    /// If there is no such page or head.
    #[inline]
    pub(crate) fn keys(&self, page: PageId, kv_head: usize) -> Panel<'_> {
        self.panel(page, kv_head, 0)
    }

    /// Values of a page and head: `[page_rows][head_dim]`.
    ///
    /// # Panics
    /// If there is no such page or head.
    #[inline]
    pub(crate) fn values(&self, page: PageId, kv_head: usize) -> Panel<'_> {
        self.panel(page, kv_head, self.part_len)
    }

    /// Keys or values of a page and head; `part` is their first element in a page.
    #[inline]
    fn panel(&self, page: PageId, kv_head: usize, part: usize) -> Panel<'_> {
        assert!((page as usize) < self.pages, "KV page {page} of {}", self.pages);
        assert!(kv_head < self.layout.kv_heads, "KV head {kv_head} of {}", self.layout.kv_heads);
        let start = page as usize * self.page_len + part + kv_head * self.head_len;
        let of = start..start + self.head_len;
        match &*self.data {
            Data::F32(data) => Panel::F32(&data[of]),
            Data::F16(data) => Panel::F16(&data[of]),
            Data::I8(data) => Panel::I8(&data[of]),
        }
    }

    /// Bytes of the scales of keys and of values of a page and head, one f32 per row; empty unless
    /// the storage type is I8.
    ///
    /// # Panics
    /// If there is no such page or head.
    pub(crate) fn scales(&self, page: PageId, kv_head: usize) -> [&[i8]; 2] {
        let Data::I8(data) = &*self.data else { return [&[], &[]] };
        let rows = size_of::<f32>() * self.layout.page_rows;
        let page = &data[page as usize * self.page_len..][..self.page_len];
        let (keys, values) = page[2 * self.part_len..].split_at(self.layout.scale_bytes());
        [keys, values].map(|scales| &scales[kv_head * rows..][..rows])
    }
}

#[cfg(test)]
mod tests;

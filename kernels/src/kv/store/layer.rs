//! Keys and values of one layer: writing rows, and the panels that attention reads.

#[cfg(doc)]
use super::ROTARY_DIM_MAX;
use super::copies::{Copies, KvAccess, KvCopyId};
use super::panel::Panel;
use super::rows::Rows;
use super::{Data, KvStore, page_len};
use crate::cpu::context::Cpu;
use crate::cpu::rope::Rotation;
use crate::device::DeviceError;
use crate::kv::{KvLayout, PageId};
use crate::sync::{MutexGuard, lock};

impl KvStore {
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
    pub(in crate::kv) fn byte(&mut self, page: PageId, at: usize) -> u8 {
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

    /// Copies all rows of the page `from` to the page `to`, in this layer. The host must hold the current rows.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn copy_page(&mut self, from: PageId, to: PageId) {
        for page in [from, to] {
            assert!((page as usize) < self.pages, "KV page {page} of {}", self.pages);
        }
        let start = from as usize * self.page_len;
        self.data.copy_within(start..start + self.page_len, to as usize * self.page_len);
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

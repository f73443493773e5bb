//! Keys and values of one layer: writing rows, and the panels that attention reads.

use super::copies::{Copies, KvAccess, KvCopyId};
use super::panel::Panel;
use super::{Data, KvStore, page_len};
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

/// Elements of keys and values in their storage type, to write to.
#[derive(Debug)]
pub enum KvElements<'a> {
    /// f32.
    F32(&'a mut [f32]),
    /// Bits of binary16.
    F16(&'a mut [u16]),
    /// int8, and bytes of scales.
    I8(&'a mut [i8]),
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

    /// Sets all bytes of a page, for tests.
    #[cfg(test)]
    pub(in crate::kv) fn fill(&mut self, page: PageId, byte: u8) {
        let start = page as usize * self.page_len;
        self.data.bytes_mut(start..start + self.page_len).fill(byte);
    }

    /// Prepares rows for the host, which reads and writes them: copies the pages that only devices
    /// hold. Returns the number of bytes copied.
    ///
    /// # Errors
    /// [`DeviceError`] of a device that holds a page.
    pub fn bring_to_host(&mut self, access: &KvAccess<'_>) -> Result<usize, DeviceError> {
        if self.copies.is_alone() {
            return Ok(0);
        }
        let missing = self.copies.claim(self.layer, KvCopyId::HOST, access);
        let mut copied = 0;
        for (page, from) in missing {
            let start = page as usize * self.page_len;
            let bytes = self.data.bytes_mut(start..start + self.page_len);
            self.copies.fetch(self.layer, page, from, bytes)?;
            copied += bytes.len();
        }
        Ok(copied)
    }

    /// Stored elements of all pages, one page after another, to write to.
    pub fn elements_mut(&mut self) -> KvElements<'_> {
        match &mut *self.data {
            Data::F32(data) => KvElements::F32(data),
            Data::F16(data) => KvElements::F16(data),
            Data::I8(data) => KvElements::I8(data),
        }
    }

    /// Stored elements of a page: its keys, its values, and for [`KvDtype::I8`](crate::kv::KvDtype::I8) the bytes of their
    /// scales.
    pub fn page_len(&self) -> usize {
        self.page_len
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.pages
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
    pub fn keys(&self, page: PageId, kv_head: usize) -> Panel<'_> {
        self.panel(page, kv_head, 0)
    }

    /// Values of a page and head: `[page_rows][head_dim]`.
    ///
    /// # Panics
    /// If there is no such page or head.
    #[inline]
    pub fn values(&self, page: PageId, kv_head: usize) -> Panel<'_> {
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
    pub fn scales(&self, page: PageId, kv_head: usize) -> [&[i8]; 2] {
        let Data::I8(data) = &*self.data else { return [&[], &[]] };
        let rows = size_of::<f32>() * self.layout.page_rows;
        let page = &data[page as usize * self.page_len..][..self.page_len];
        let (keys, values) = page[2 * self.part_len..].split_at(self.layout.scale_bytes());
        [keys, values].map(|scales| &scales[kv_head * rows..][..rows])
    }
}

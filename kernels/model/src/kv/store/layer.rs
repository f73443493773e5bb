//! Keys and values of one layer: writing rows, and the panels that attention reads.

use super::copies::{Copies, KvAccess, KvCopyId, KvPart};
use super::panel::Panel;
use super::{Data, KvStore};
use crate::device::DeviceError;
use crate::kv::{KvPageLayout, PageId};
use crate::sync::{MutexGuard, lock};

impl KvStore {
    /// Locks a layer's keys and values; waits while another thread holds the lock.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn layer(&self, layer: usize) -> KvLayer<'_> {
        let layout = self.layout.layer(layer);
        KvLayer {
            layout,
            pages: self.pages,
            page_len: layout.page_len(),
            keys_len: layout.keys_len(),
            key_len: layout.heads.key_dim * layout.page_rows,
            value_len: layout.heads.value_dim * layout.page_rows,
            layer,
            copies: &self.copies,
            data: lock(&self.layers[layer]),
        }
    }
}

/// Keys and values of one layer, locked.
#[derive(Debug)]
pub struct KvLayer<'a> {
    layout: KvPageLayout,
    pages: usize,
    /// Stored elements of a page, of its keys, and of one head's keys and values.
    page_len: usize,
    keys_len: usize,
    key_len: usize,
    value_len: usize,
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
    /// Shape of the layer's pages.
    pub fn layout(&self) -> &KvPageLayout {
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
            self.copies.fetch(KvPart::Pages(self.layer), page, from, bytes)?;
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

    /// Keys of a page and head: `[key_dim][page_rows]`.
    ///
    /// # Panics
    /// If there is no such page or head.
    #[inline]
    pub fn keys(&self, page: PageId, kv_head: usize) -> Panel<'_> {
        self.panel(page, kv_head, 0, self.key_len)
    }

    /// Values of a page and head: `[page_rows][value_dim]`.
    ///
    /// # Panics
    /// If there is no such page or head.
    #[inline]
    pub fn values(&self, page: PageId, kv_head: usize) -> Panel<'_> {
        self.panel(page, kv_head, self.keys_len, self.value_len)
    }

    /// Keys or values of a page and head: `len` elements for each head, of which those of the first head begin at
    /// element `part` of a page.
    #[inline]
    fn panel(&self, page: PageId, kv_head: usize, part: usize, len: usize) -> Panel<'_> {
        let heads = self.layout.heads.count;
        assert!((page as usize) < self.pages, "KV page {page} of {}", self.pages);
        assert!(kv_head < heads, "KV head {kv_head} of {heads}");
        let start = page as usize * self.page_len + part + kv_head * len;
        let of = start..start + len;
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
        let values_end = self.keys_len + self.layout.values_len();
        let (keys, values) = page[values_end..].split_at(self.layout.scale_bytes());
        [keys, values].map(|scales| &scales[kv_head * rows..][..rows])
    }
}

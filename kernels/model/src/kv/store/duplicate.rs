//! Whole pages: copies of one in another, and their bytes.

use super::copies::KvCopyId;
use super::{Data, KvStore, page_len};
use crate::device::DeviceError;
#[cfg(doc)]
use crate::kv::KvLayout;
use crate::kv::PageId;
use crate::sync::lock;
use std::fmt;
use std::ops::Range;

/// Pages that can be copied.
pub trait DuplicatePage: Send + Sync + fmt::Debug {
    /// Copies all rows of the page `from` to the page `to`, in all layers.
    ///
    /// # Errors
    /// [`DeviceError`] of a device that alone holds the page and has failed.
    fn duplicate_page(&self, from: PageId, to: PageId) -> Result<(), DeviceError>;
}

impl DuplicatePage for KvStore {
    /// Waits for the attention of other chunks in each layer. The host's copy of `to` is the only one
    /// afterwards.
    fn duplicate_page(&self, from: PageId, to: PageId) -> Result<(), DeviceError> {
        let to_at = to as usize * page_len(&self.layout);
        for layer in 0..self.layout.layers {
            let mut data = lock(&self.layers[layer]);
            let range = self.brought_to_host(layer, from, &mut data)?;
            self.copies.claim_write(layer, to);
            data.copy_within(range, to_at);
        }
        Ok(())
    }
}

impl KvStore {
    /// Brings a page of a layer to the host; returns its elements' place.
    fn brought_to_host(
        &self,
        layer: usize,
        page: PageId,
        data: &mut Data,
    ) -> Result<Range<usize>, DeviceError> {
        let len = page_len(&self.layout);
        let range = page as usize * len..(page as usize + 1) * len;
        let holder = self.copies.claim_read(layer, page);
        if holder != KvCopyId::HOST {
            self.copies.fetch(layer, page, holder, data.bytes_mut(range.clone()))?;
        }
        Ok(range)
    }

    /// Copies the bytes of a page, one layer after another, to `to`, which has [`KvLayout::page_bytes`] bytes.
    ///
    /// # Errors
    /// [`DeviceError`] of a device that alone holds the page and has failed.
    pub fn read_page(&self, page: PageId, to: &mut [u8]) -> Result<(), DeviceError> {
        for (layer, to) in to.chunks_exact_mut(self.layer_page_bytes()).enumerate() {
            let mut data = lock(&self.layers[layer]);
            let range = self.brought_to_host(layer, page, &mut data)?;
            to.copy_from_slice(data.bytes_mut(range));
        }
        Ok(())
    }

    /// Fills a page with bytes that [`read_page`](KvStore::read_page) has copied.
    pub fn write_page(&self, page: PageId, from: &[u8]) {
        let len = page_len(&self.layout);
        for (layer, from) in from.chunks_exact(self.layer_page_bytes()).enumerate() {
            let mut data = lock(&self.layers[layer]);
            self.copies.claim_write(layer, page);
            data.bytes_mut(page as usize * len..(page as usize + 1) * len).copy_from_slice(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{KvDtype, KvLayout};

    #[test]
    fn a_copy_has_all_rows_of_all_layers_and_is_its_own() {
        for dtype in KvDtype::ALL {
            let layout = KvLayout { layers: 2, kv_heads: 1, head_dim: 4, page_rows: 4, dtype };
            let store = KvStore::new(layout, 3).expect("memory");
            let bytes = layout.page_bytes() / layout.layers;
            let rows: Vec<u8> = (0..bytes).map(|i| (i % 255) as u8 + 1).collect();
            store.write_page(1, &rows.repeat(layout.layers));
            store.duplicate_page(1, 2).expect("no device");
            store.layer(1).fill(1, 0);
            let page = |layer: usize, page| -> Vec<u8> {
                let mut layer = store.layer(layer);
                (0..bytes).map(|at| layer.byte(page, at)).collect()
            };
            assert!(page(0, 2).iter().any(|byte| *byte != 0), "{dtype}");
            assert_eq!(page(0, 2), page(0, 1), "{dtype}");
            assert_eq!(page(1, 2), page(0, 2), "{dtype}: written later than it was copied");
            assert_ne!(page(1, 2), page(1, 1), "{dtype}");
            assert_eq!(page(0, 0), vec![0; bytes], "{dtype}: another page");
            let mut copy = vec![0; layout.page_bytes()];
            store.read_page(2, &mut copy).expect("no device");
            store.write_page(0, &copy);
            assert_eq!([page(0, 0), page(1, 0)], [page(0, 2), page(1, 2)], "{dtype}: by its bytes");
        }
    }
}

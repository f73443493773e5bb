//! Whole pages: copies of one in another, and their bytes.

use super::copies::KvPart;
use super::{Data, KvStore};
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
        for layer in 0..self.layout.layers.len() {
            let to_at = to as usize * self.layout.layer(layer).page_len();
            let mut data = lock(&self.layers[layer]);
            let range = self.brought_to_host(layer, from, &mut data)?;
            self.copies.claim_write(KvPart::Pages(layer), to);
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
        let len = self.layout.layer(layer).page_len();
        let range = page as usize * len..(page as usize + 1) * len;
        let part = KvPart::Pages(layer);
        if let Some(holder) = self.copies.claim_read(part, page) {
            self.copies.fetch(part, page, holder, data.bytes_mut(range.clone()))?;
        }
        Ok(range)
    }

    /// Copies the bytes of a page, one layer after another, to `to`, which has [`KvLayout::page_bytes`] bytes.
    ///
    /// # Errors
    /// [`DeviceError`] of a device that alone holds the page and has failed.
    ///
    /// # Panics
    /// If `to` has fewer bytes.
    pub fn read_page(&self, page: PageId, to: &mut [u8]) -> Result<(), DeviceError> {
        let mut rest = to;
        for layer in 0..self.layout.layers.len() {
            let mut data = lock(&self.layers[layer]);
            let range = self.brought_to_host(layer, page, &mut data)?;
            let from = data.bytes_mut(range);
            let (to, others) = rest.split_at_mut(from.len());
            to.copy_from_slice(from);
            rest = others;
        }
        Ok(())
    }

    /// Fills a page with bytes that [`read_page`](KvStore::read_page) has copied.
    ///
    /// # Panics
    /// If `from` has fewer bytes than a page.
    pub fn write_page(&self, page: PageId, from: &[u8]) {
        let mut rest = from;
        for layer in 0..self.layout.layers.len() {
            let len = self.layout.layer(layer).page_len();
            let mut data = lock(&self.layers[layer]);
            self.copies.claim_write(KvPart::Pages(layer), page);
            let to = data.bytes_mut(page as usize * len..(page as usize + 1) * len);
            let (from, others) = rest.split_at(to.len());
            to.copy_from_slice(from);
            rest = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{KvDtype, KvHeads, KvLayout};
    use std::sync::Arc;

    /// Two layers of different heads.
    fn layout(dtype: KvDtype) -> KvLayout {
        let wide = KvHeads { count: 2, key_dim: 6, value_dim: 4 };
        let layers = [KvHeads::new(1, 4), wide].into();
        KvLayout { layers, states: Arc::new([]), page_rows: 4, dtype }
    }

    #[test]
    fn a_copy_has_all_rows_of_all_layers_and_is_its_own() {
        for dtype in KvDtype::ALL {
            let layout = layout(dtype);
            let store = KvStore::new(layout.clone(), 3).expect("memory");
            let rows: Vec<u8> = (0..layout.page_bytes()).map(|i| (i % 255) as u8 + 1).collect();
            store.write_page(1, &rows);
            store.duplicate_page(1, 2).expect("no device");
            store.layer(1).fill(1, 0);
            let page = |layer: usize, page| -> Vec<u8> {
                let bytes = layout.layer(layer).page_bytes();
                let mut layer = store.layer(layer);
                (0..bytes).map(|at| layer.byte(page, at)).collect()
            };
            assert_eq!([page(0, 2), page(1, 2)].concat(), rows, "{dtype}");
            assert_eq!(page(0, 2), page(0, 1), "{dtype}");
            assert_ne!(page(1, 2), page(1, 1), "{dtype}: written later than it was copied");
            assert!(page(0, 0).iter().all(|byte| *byte == 0), "{dtype}: another page");
            let mut copy = vec![0; layout.page_bytes()];
            store.read_page(2, &mut copy).expect("no device");
            assert_eq!(copy, rows, "{dtype}");
            store.write_page(0, &copy);
            assert_eq!([page(0, 0), page(1, 0)], [page(0, 2), page(1, 2)], "{dtype}: by its bytes");
        }
    }
}

//! Copies of one page in another.

use super::copies::KvCopyId;
use super::{KvStore, page_len};
use crate::device::DeviceError;
use crate::kv::PageId;
use crate::sync::lock;
use std::fmt;

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
        let len = page_len(&self.layout);
        let [from_at, to_at] = [from, to].map(|page| page as usize * len);
        for layer in 0..self.layout.layers {
            let mut data = lock(&self.layers[layer]);
            let holder = self.copies.claim_duplicate((layer, self.pages), from, to);
            if holder != KvCopyId::HOST {
                let bytes = data.bytes_mut(from_at..from_at + len);
                self.copies.fetch((layer, from), holder, bytes)?;
            }
            data.copy_within(from_at..from_at + len, to_at);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Cpu, Isa};
    use crate::kv::{KvDtype, KvLayout};

    #[test]
    fn a_copy_has_all_rows_of_all_layers_and_is_its_own() {
        for dtype in KvDtype::ALL {
            let layout = KvLayout { layers: 2, kv_heads: 1, head_dim: 4, page_rows: 4, dtype };
            let store = KvStore::new(layout, 3).expect("memory");
            let cpu = Cpu::new(1, Isa::best());
            let rows: Vec<f32> = (1..17).map(|x| x as f32).collect();
            (0..2).for_each(|layer| store.layer(layer).write(&cpu, &[1], 0, (&rows, &rows)));
            store.duplicate_page(1, 2).expect("no device");
            let zeros = [0.0; 16];
            store.layer(1).write(&cpu, &[1], 0, (&zeros, &zeros));
            let bytes = layout.page_bytes() / layout.layers;
            let page = |layer: usize, page| -> Vec<u8> {
                let mut layer = store.layer(layer);
                (0..bytes).map(|at| layer.byte(page, at)).collect()
            };
            assert!(page(0, 2).iter().any(|byte| *byte != 0), "{dtype}");
            assert_eq!(page(0, 2), page(0, 1), "{dtype}");
            assert_eq!(page(1, 2), page(0, 2), "{dtype}: written later than it was copied");
            assert_ne!(page(1, 2), page(1, 1), "{dtype}");
            assert_eq!(page(0, 0), vec![0; bytes], "{dtype}: another page");
        }
    }
}

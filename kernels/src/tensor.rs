//! Matrices that cross the borders between stages, and the slots that they lie in.

use std::ops::{Deref, DerefMut};

use crate::graph::ValueId;
use crate::sync::{Arc, Mutex, lock};

/// A pool of buffers, shared by every device of one address space and used again by every layer
/// (S2-34, S3-7). Clones share the buffers.
#[derive(Clone, Debug)]
pub struct SlotPool(Arc<Mutex<Slots>>);

#[derive(Debug, Default)]
struct Slots {
    free: Vec<Vec<f32>>,
    stats: SlotStats,
}

/// How a pool has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStats {
    /// Slots taken and not given back.
    pub in_use: usize,
    /// Most slots in use at once.
    pub in_use_max: usize,
    /// Slots that had to be made or enlarged because none was free and large enough.
    pub made: usize,
    /// Bytes of all slots, free ones and those in use.
    pub bytes: usize,
}

impl SlotPool {
    /// A pool with `slots` slots of `values` values. The memory is reserved here and touched when
    /// it is first used.
    pub fn new(slots: usize, values: usize) -> SlotPool {
        let free = (0..slots).map(|_| Vec::with_capacity(values)).collect::<Vec<Vec<f32>>>();
        let bytes = free.iter().map(|slot| slot.capacity() * size_of::<f32>()).sum();
        let stats = SlotStats { bytes, ..SlotStats::default() };
        SlotPool(Arc::new(Mutex::new(Slots { free, stats })))
    }

    /// A slot of `len` values; their content is whatever it was. Of the smallest with room for them,
    /// it is one that touches least memory for the first time, then one that held least: so values of
    /// a few lengths keep to as few places, however often they come and go.
    pub fn take(&self, len: usize) -> Slot {
        let mut slots = lock(&self.0);
        let all = || slots.free.iter().enumerate();
        let new = |slot: &Vec<f32>| len.saturating_sub(slot.len());
        let fits = all().filter(|(_, slot)| slot.capacity() >= len);
        let best = fits.min_by_key(|(_, slot)| (slot.capacity(), new(slot), slot.len()));
        let at = best.or_else(|| all().max_by_key(|(_, slot)| slot.capacity())).map(|(at, _)| at);
        let mut data = at.map(|at| slots.free.swap_remove(at)).unwrap_or_default();
        let before = data.capacity();
        if before < len {
            // What it held is of no use: a copy of it would be made in vain.
            data = Vec::with_capacity(len);
            slots.stats.made += 1;
            slots.stats.bytes += (data.capacity() - before) * size_of::<f32>();
        }
        slots.stats.in_use += 1;
        slots.stats.in_use_max = slots.stats.in_use_max.max(slots.stats.in_use);
        drop(slots);
        // Kept as long as it ever was: what a shorter one holds need not be filled again.
        if data.len() < len {
            data.resize(len, 0.0);
        }
        Slot { data, len, home: Some(self.clone()) }
    }

    /// How it has been used.
    pub fn stats(&self) -> SlotStats {
        lock(&self.0).stats
    }

    fn give_back(&self, data: Vec<f32>) {
        let mut slots = lock(&self.0);
        slots.stats.in_use -= 1;
        slots.free.push(data);
    }
}

impl Default for SlotPool {
    /// A pool that grows with what is asked of it.
    fn default() -> SlotPool {
        SlotPool::new(0, 0)
    }
}

/// Values in a buffer that returns to its pool when this is dropped.
#[derive(Debug, Default)]
pub struct Slot {
    data: Vec<f32>,
    /// At most as long as `data`.
    len: usize,
    home: Option<SlotPool>,
}

impl From<Vec<f32>> for Slot {
    /// Values that belong to no pool.
    fn from(data: Vec<f32>) -> Slot {
        Slot { len: data.len(), data, home: None }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.give_back(std::mem::take(&mut self.data));
        }
    }
}

impl Deref for Slot {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data[..self.len]
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[..self.len]
    }
}

/// A matrix of f32 `[rows, width]`, row-major.
#[derive(Debug, Default)]
pub struct Tensor {
    /// Values per row.
    pub width: usize,
    /// `rows · width` values.
    pub data: Slot,
}

impl Tensor {
    /// A matrix of `data`, whose rows have `width` values.
    pub fn new(width: usize, data: impl Into<Slot>) -> Tensor {
        Tensor { width, data: data.into() }
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.width..(row + 1) * self.width]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        size_of_val::<[f32]>(&self.data) as u64
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
        let touched: usize = lock(&pool.0).free.iter().map(Vec::len).sum();
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
}

//! Slots come back and are reused; tensors know where they are.

use std::any::Any;

use super::slot::Storage;
use super::*;
use crate::device::{DeviceError, MemoryDomain};
use crate::formats::DType;
use crate::sync::lock;

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
        // Released in a different order, so the free list has a different order, too.
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

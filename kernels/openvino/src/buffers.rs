//! Buffers that the library reads or writes during a run.
#![expect(unsafe_code, reason = "shares memory with a C library")]

use std::ops::Range;
use std::ptr::NonNull;

use lapwing_npu::buffers::{LINE, places};

/// The values of all ports of a border in one buffer, and their owner between runs.
pub(super) struct Border {
    /// Owned; as a pointer, because the library keeps pointers into it.
    values: NonNull<[f32]>,
    places: Vec<Range<usize>>,
}

impl Border {
    /// Zeros, for values of these lengths.
    pub(super) fn new(lens: impl IntoIterator<Item = usize>) -> Border {
        let (places, len) = places::<f32>(lens);
        let values = vec![0.0; len + LINE / size_of::<f32>()].into_boxed_slice();
        let values = NonNull::from(Box::leak(values));
        let first = values.cast::<f32>().align_offset(LINE);
        let aligned = |place: Range<usize>| first + place.start..first + place.end;
        Border { values, places: places.into_iter().map(aligned).collect() }
    }

    /// The values of a port, as memory of the library.
    ///
    /// # Panics
    /// If there is no such port.
    pub(super) fn at(&self, port: usize) -> NonNull<[f32]> {
        let place = &self.places[port];
        // SAFETY: the place is within the buffer.
        let first = unsafe { self.values.cast::<f32>().add(place.start) };
        NonNull::slice_from_raw_parts(first, place.len())
    }
}

impl Drop for Border {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of the leaked box.
        drop(unsafe { Box::from_raw(self.values.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_aligned_and_apart_in_one_buffer() {
        let border = Border::new([3, 0, 100]);
        let ports = [0, 1, 2].map(|port| border.at(port));
        assert_eq!(ports.map(|port| port.len()), [3, 0, 100]);
        let starts = ports.map(|port| port.cast::<f32>().addr().get());
        assert!(starts.iter().all(|start| start.is_multiple_of(LINE)), "{starts:?}");
        assert_eq!(starts[2] - starts[0], LINE);
    }
}

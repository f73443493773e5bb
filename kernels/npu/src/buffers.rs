//! All values that cross a border of a graph in one direction, packed into one buffer.

use std::ops::Range;

/// Bytes to which each value is aligned.
pub const LINE: usize = 64;

/// Packs values of these lengths into one buffer. Returns the range of each value and the length of the buffer, in elements
/// of `T`. Each value starts at a multiple of 64 bytes. A processor with memory of its own registers one buffer per border.
pub fn places<T>(lens: impl IntoIterator<Item = usize>) -> (Vec<Range<usize>>, usize) {
    let line = LINE / size_of::<T>();
    let mut end = 0;
    let place = |len: usize| {
        let place = end..end + len;
        end += len.next_multiple_of(line);
        place
    };
    let places = lens.into_iter().map(place).collect();
    (places, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_behind_each_other_at_cache_lines() {
        let (found, len) = places::<u16>([1, 0, 33, 64]);
        assert_eq!((&found[..], len), (&[0..1, 32..32, 32..65, 96..160][..], 160));
        let (found, len) = places::<f32>([16, 17]);
        assert_eq!((&found[..], len), (&[0..16, 16..33][..], 48));
        assert_eq!(places::<f32>([]), (vec![], 0));
    }
}

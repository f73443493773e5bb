//! Weights that are larger than memory.

use std::fmt;

/// Weights that do not fit into the memory that was free when they were opened: they are read from the disk when they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeyondMemory {
    /// Bytes of the packed weights.
    pub bytes: u64,
    /// Bytes of memory that were free.
    pub free: u64,
}

impl BeyondMemory {
    /// Weights of `bytes`, if they are more than are `free`, and that is known.
    pub(crate) fn of(bytes: usize, free: Option<u64>) -> Option<BeyondMemory> {
        let bytes = bytes as u64;
        free.filter(|free| bytes > *free).map(|free| BeyondMemory { bytes, free })
    }

    /// How many times the free memory the weights are; infinite if none is free.
    pub fn times(&self) -> f64 {
        self.bytes as f64 / self.free as f64
    }
}

/// As in `4.71 GB of packed weights are 1.3 times the 3.62 GB of memory that are free`.
impl fmt::Display for BeyondMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bytes, free] = [self.bytes, self.free].map(Size);
        let times = self.times();
        write!(
            f,
            "{bytes} of packed weights are {times:.1} times the {free} of memory that are free"
        )
    }
}

/// A number of bytes with three digits.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 as f64 {
            bytes if bytes >= 1e9 => write!(f, "{:.2} GB", bytes / 1e9),
            bytes if bytes >= 1e6 => write!(f, "{:.1} MB", bytes / 1e6),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_beyond_memory_if_it_is_known_to_be_smaller() {
        assert_eq!(BeyondMemory::of(100, None), None);
        assert_eq!(BeyondMemory::of(100, Some(100)), None);
        let beyond = BeyondMemory::of(4_710_000_000, Some(3_620_000_000)).expect("beyond");
        let text = "4.71 GB of packed weights are 1.3 times the 3.62 GB of memory that are free";
        assert_eq!(beyond.to_string(), text);
        let beyond = BeyondMemory::of(2_500_000, Some(500)).expect("beyond");
        assert!(
            beyond
                .to_string()
                .starts_with("2.5 MB of packed weights are 5000.0 times the 500 bytes")
        );
    }
}

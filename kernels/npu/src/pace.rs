//! How long a device takes to make graphs and to read them from disk, measured by its callers.

use std::time::Duration;

/// Sums over the graphs that were made, and over those that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    made: Sum,
    read: Sum,
}

/// Bytes of memory of graphs, and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    bytes: u64,
    nanos: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64, time: Duration) {
        // Halved from time to time, so that later graphs count more.
        if self.nanos > Sum::NANOS_MAX {
            (self.bytes, self.nanos) = (self.bytes / 2, self.nanos / 2);
        }
        self.bytes += bytes;
        self.nanos += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    }

    const NANOS_MAX: u64 = 60_000_000_000;

    fn time(&self, bytes: u64) -> Option<Duration> {
        let nanos = self.nanos as f64 / self.bytes as f64 * bytes as f64;
        (self.bytes > 0).then(|| Duration::from_nanos(nanos as u64))
    }
}

impl Pace {
    /// Records that graphs of so many bytes took a time: to be read from disk, or to be made.
    pub(super) fn record(&mut self, are_read: bool, bytes: u64, time: Duration) {
        let sum = if are_read { &mut self.read } else { &mut self.made };
        sum.add(bytes, time);
    }

    /// Time of a graph of so many bytes; `None` before the first one.
    pub(super) fn time(&self, is_read: bool, bytes: u64) -> Option<Duration> {
        if is_read { self.read.time(bytes) } else { self.made.time(bytes) }
    }

    /// As bytes, to be kept on disk.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Pace { made, read } = self;
        let numbers = [made.bytes, made.nanos, read.bytes, read.nanos];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The pace that these bytes hold; `None` if they are others.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Pace> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let [made, made_nanos, read, read_nanos] = numbers else { return None };
        let sum = |bytes: &[u8; 8], nanos: &[u8; 8]| Sum {
            bytes: u64::from_le_bytes(*bytes),
            nanos: u64::from_le_bytes(*nanos),
        };
        let pace = Pace { made: sum(made, made_nanos), read: sum(read, read_nanos) };
        rest.is_empty().then_some(pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_that_of_the_graphs_before_by_their_bytes() {
        let mut pace = Pace::default();
        assert_eq!((pace.time(false, 10), pace.time(true, 10)), (None, None));
        pace.record(false, 100, Duration::from_millis(300));
        pace.record(false, 300, Duration::from_millis(500));
        pace.record(true, 100, Duration::from_millis(10));
        assert_eq!(pace.time(false, 100), Some(Duration::from_millis(200)));
        assert_eq!(pace.time(true, 50), Some(Duration::from_millis(5)));
        assert_eq!(Pace::from_bytes(&pace.to_bytes()), Some(pace));
        assert_eq!(Pace::from_bytes(&pace.to_bytes()[1..]), None);
    }

    #[test]
    fn later_graphs_count_more() {
        let mut pace = Pace::default();
        for _ in 0..200 {
            pace.record(false, 1, Duration::from_secs(1));
        }
        for _ in 0..200 {
            pace.record(false, 1, Duration::from_secs(3));
        }
        let time = pace.time(false, 1).expect("a time");
        assert!(time > Duration::from_millis(2800), "{time:?}");
    }
}

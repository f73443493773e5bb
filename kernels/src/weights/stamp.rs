//! By what a weight file is known again without reading all of it.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the file system says of a file: two equal stamps of a settled file mean equal contents, as
/// far as the file system tells; samples of the contents are the second line of defence.
///
/// On Unix: size, times of the last change of contents and of anything, to the nanosecond, device
/// and number of the file. A program can set the first time back, but not the second. Elsewhere:
/// size, times of the last change of contents, which can be set back, and of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: Moment,
    /// Last change of anything; where it is not known, creation.
    other: Moment,
    device: u64,
    number: u64,
}

/// Seconds since the epoch, and nanoseconds.
type Moment = (i64, u32);

impl Stamp {
    pub(super) fn of(data: &fs::Metadata) -> Stamp {
        let modified = moment(data.modified());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let other = (data.ctime(), u32::try_from(data.ctime_nsec()).unwrap_or(0));
            Stamp { bytes: data.len(), modified, other, device: data.dev(), number: data.ino() }
        }
        #[cfg(not(unix))]
        Stamp { bytes: data.len(), modified, other: moment(data.created()), device: 0, number: 0 }
    }

    pub(super) fn of_path(path: &Path) -> io::Result<Stamp> {
        Ok(Stamp::of(&fs::metadata(path)?))
    }

    /// Whether a change after this stamp was taken would have given another one, judged at `now`
    /// by the same machine's file system clock: a change within one tick of it leaves the times as
    /// they are. Ticks are at most 10 ms where times have nanoseconds, and 2 s where they have not.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let whole = |(_, nanos): Moment| nanos.is_multiple_of(1_000_000);
        let tick = match whole(self.modified) && whole(self.other) {
            true => Duration::from_secs(2),
            false => Duration::from_millis(10),
        };
        let settled = |(seconds, nanos): Moment| {
            let since = Duration::new(u64::try_from(seconds).unwrap_or(0), nanos) + 2 * tick;
            UNIX_EPOCH.checked_add(since).is_some_and(|until| until < now)
        };
        settled(self.modified) && settled(self.other)
    }
}

fn moment(time: io::Result<SystemTime>) -> Moment {
    let since = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or((-1, 0), |since| {
        (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
    })
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stamp { bytes, modified, other, device, number } = self;
        let [(a, b), (c, d)] = [modified, other];
        write!(f, "{bytes} bytes, {a}.{b:09} {c}.{d:09} {device}:{number}")
    }
}

/// Blocks of a file's data that are read to know it again.
const SAMPLES: usize = 64;
/// Bytes of such a block.
const SAMPLE_BYTES: usize = 4096;

/// Ranges of [`SAMPLE_BYTES`], spread evenly over `start..end`, the last ones included; the whole
/// where it is short.
pub(super) fn samples(start: usize, end: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let len = end.saturating_sub(start);
    let whole = len <= SAMPLES * SAMPLE_BYTES;
    let count = if whole { usize::from(len > 0) } else { SAMPLES };
    let block = if whole { len } else { SAMPLE_BYTES };
    let room = (len - block) as u128;
    (0..count).map(move |i| {
        let at = start + (room * i as u128 / (SAMPLES as u128 - 1)) as usize;
        at..at + block
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_within_a_tick_of_the_clock_is_not_noticed() {
        let stamp = |modified: Moment, other: Moment| Stamp {
            bytes: 1,
            modified,
            other,
            device: 2,
            number: 3,
        };
        let at = |seconds: u64, millis: u64| {
            UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis)
        };
        let fine = stamp((90, 5), (100, 7));
        assert!(!fine.is_settled(at(100, 0)) && !fine.is_settled(at(100, 20)));
        assert!(fine.is_settled(at(100, 21)));
        let coarse = stamp((100, 0), (90, 0));
        assert!(!coarse.is_settled(at(104, 0)) && coarse.is_settled(at(104, 1)));
        assert!(!stamp((2_000_000, 1), (5, 1)).is_settled(at(100, 0)), "a time in the future");
        for (a, b) in [(fine, stamp((90, 5), (100, 8))), (fine, stamp((90, 6), (100, 7)))] {
            assert!(a != b && a.to_string() != b.to_string());
        }
    }

    #[test]
    fn a_sample_is_outside_of_the_file_or_misses_its_ends() {
        for (start, end) in [(0, 0), (3, 3), (5, 6), (0, 262_144), (7, 262_152), (9, 10_000_000)] {
            let all: Vec<_> = samples(start, end).collect();
            assert!(all.iter().all(|range| start <= range.start && range.end <= end));
            assert_eq!(all.first().map(|range| range.start), (start < end).then_some(start));
            assert_eq!(all.last().map(|range| range.end), (start < end).then_some(end));
            assert!(all.len() <= SAMPLES);
        }
    }
}

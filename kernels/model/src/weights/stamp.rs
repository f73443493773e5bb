//! Detects changes of a weight file without reading all of it: file-system stamps and samples.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// File-system metadata that identifies the contents of a file. If a settled file has an equal stamp
/// later, its contents are unchanged as far as the file system records; samples of the contents are
/// a second check.
///
/// On Unix: size, modification time and inode change time in nanoseconds, device and inode number.
/// A program can set the modification time back, but not the change time. On other systems: size,
/// modification time, which can be set back, and creation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    bytes: u64,
    modified: Timestamp,
    /// Inode change time; where that is unknown, creation time.
    changed: Timestamp,
    device: u64,
    inode: u64,
}

/// Seconds since the epoch, and nanoseconds.
type Timestamp = (i64, u32);

impl Stamp {
    pub(super) fn of(data: &fs::Metadata) -> Stamp {
        let modified = timestamp(data.modified());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let changed = (data.ctime(), u32::try_from(data.ctime_nsec()).unwrap_or(0));
            Stamp { bytes: data.len(), modified, changed, device: data.dev(), inode: data.ino() }
        }
        #[cfg(not(unix))]
        Stamp {
            bytes: data.len(),
            modified,
            changed: timestamp(data.created()),
            device: 0,
            inode: 0,
        }
    }

    pub(super) fn of_path(path: &Path) -> io::Result<Stamp> {
        Ok(Stamp::of(&fs::metadata(path)?))
    }

    /// Size of the file in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether size and modification time are equal, which a new link or other permissions do not
    /// change.
    pub(super) fn has_contents_of(&self, other: &Stamp) -> bool {
        (self.bytes, self.modified) == (other.bytes, other.modified)
    }

    /// Whether any later change of the file gives a different stamp. `now` is the time of the same
    /// machine's file-system clock: a change within one tick of the recorded times would leave them
    /// unchanged. A tick is at most 10 ms where times have nanosecond resolution, otherwise 2 s.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let is_whole = |(_, nanos): Timestamp| nanos.is_multiple_of(1_000_000);
        let tick = match is_whole(self.modified) && is_whole(self.changed) {
            true => Duration::from_secs(2),
            false => Duration::from_millis(10),
        };
        let settled = |(seconds, nanos): Timestamp| {
            let since = Duration::new(u64::try_from(seconds).unwrap_or(0), nanos) + 2 * tick;
            UNIX_EPOCH.checked_add(since).is_some_and(|until| until < now)
        };
        settled(self.modified) && settled(self.changed)
    }
}

fn timestamp(time: io::Result<SystemTime>) -> Timestamp {
    let since = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or((-1, 0), |since| {
        (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
    })
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stamp { bytes, modified, changed, device, inode } = self;
        let [(a, b), (c, d)] = [modified, changed];
        write!(f, "{bytes} bytes, {a}.{b:09} {c}.{d:09} {device}:{inode}")
    }
}

/// Number of blocks of a file's data that are sampled.
const SAMPLES: usize = 64;
/// Bytes per sample block.
const SAMPLE_BYTES: usize = 4096;

/// [`SAMPLES`] ranges of [`SAMPLE_BYTES`], spread evenly over `start..end` including both ends; one
/// range if it is shorter than that.
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
    fn a_stamp_is_settled_two_ticks_after_its_last_change() {
        let stamp = |modified: Timestamp, changed: Timestamp| Stamp {
            bytes: 1,
            modified,
            changed,
            device: 2,
            inode: 3,
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
    fn samples_are_inside_the_file_and_cover_both_ends() {
        for (start, end) in [(0, 0), (3, 3), (5, 6), (0, 262_144), (7, 262_152), (9, 10_000_000)] {
            let all: Vec<_> = samples(start, end).collect();
            assert!(all.iter().all(|range| start <= range.start && range.end <= end));
            assert_eq!(all.first().map(|range| range.start), (start < end).then_some(start));
            assert_eq!(all.last().map(|range| range.end), (start < end).then_some(end));
            assert!(all.len() <= SAMPLES);
        }
    }
}

//! Overlap: how much of the lanes' busy time ran beside other busy time (T1).

use super::critical_path::{CriticalPath, SegmentKind};
use crate::event::LaneKind;
use crate::timeline::Timeline;

/// Overlap of the lanes that compute (all devices; without devices, all lanes). With B_i the
/// times at which lane i runs something, |·| the length and LB = max(max |B_i|, busy time on the
/// critical path).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Lanes that count, by index.
    pub lanes: Vec<usize>,
    /// |B_i| of each, in ns.
    pub busy: Vec<u64>,
    /// |∪ B_i|, in ns.
    pub union: u64,
    /// LB, in ns.
    pub lower_bound: u64,
    /// |B_i ∩ B_j| in ns of each two of `lanes` (positions in it), i < j.
    pub pairs: Vec<(usize, usize, u64)>,
}

impl Overlap {
    /// (Σ|B_i| − |∪B_i|) / Σ|B_i|; `None` if nothing ran.
    pub fn ratio(&self) -> Option<f64> {
        self.share(self.union)
    }

    /// (Σ|B_i| − LB) / Σ|B_i|: what the dependencies allow; `None` if nothing ran.
    pub fn achievable(&self) -> Option<f64> {
        self.share(self.lower_bound)
    }

    /// Achieved by achievable; `None` if none is achievable.
    pub fn efficiency(&self) -> Option<f64> {
        let achievable = self.achievable().filter(|a| *a > 0.0)?;
        Some(self.ratio()? / achievable)
    }

    fn share(&self, rest: u64) -> Option<f64> {
        let total: u64 = self.busy.iter().copied().fold(0, u64::saturating_add);
        (total > 0).then(|| total.saturating_sub(rest) as f64 / total as f64)
    }
}

impl Overlap {
    pub(super) fn new(timeline: &Timeline, path: &CriticalPath) -> Overlap {
        let is_device = |lane: &usize| timeline.lanes[*lane].kind == LaneKind::Device;
        let mut lanes: Vec<usize> = (0..timeline.lanes.len()).filter(is_device).collect();
        if lanes.is_empty() {
            lanes = (0..timeline.lanes.len()).collect();
        }
        let intervals: Vec<Vec<Interval>> =
            lanes.iter().map(|lane| busy_intervals(timeline, *lane)).collect();
        let busy: Vec<u64> = intervals.iter().map(|list| length(list)).collect();
        let on_path = path.segments.iter().filter(|segment| {
            matches!(segment.kind, SegmentKind::Running(_)) && lanes.contains(&segment.lane)
        });
        let on_path: u64 = on_path.map(|segment| segment.end - segment.start).sum();
        let mut pairs = Vec::new();
        for (i, a) in intervals.iter().enumerate() {
            for (j, b) in intervals.iter().enumerate().skip(i + 1) {
                pairs.push((i, j, common(a, b)));
            }
        }
        Overlap {
            union: length(&union(intervals.concat())),
            lower_bound: busy.iter().copied().max().unwrap_or(0).max(on_path),
            lanes,
            busy,
            pairs,
        }
    }
}

/// From and to, in ns.
pub(crate) type Interval = (u64, u64);

/// When a lane ran something: disjoint, ascending.
pub(crate) fn busy_intervals(timeline: &Timeline, lane: usize) -> Vec<Interval> {
    let spans = timeline.outer().map(|span| &timeline.spans[span]);
    union(spans.filter(|s| s.lane == lane).map(|s| (s.start.0, s.end.0)).collect())
}

/// The same times, disjoint and ascending.
pub(crate) fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::new();
    for (start, end) in intervals {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

pub(crate) fn length(intervals: &[Interval]) -> u64 {
    intervals.iter().map(|(start, end)| end - start).sum()
}

/// Time in both of two disjoint, ascending lists.
fn common(a: &[Interval], b: &[Interval]) -> u64 {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        both += x.1.min(y.1).saturating_sub(x.0.max(y.0));
        if x.1 < y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    both
}

//! Overlap: the share of the lanes' busy time during which another lane was busy as well.

use std::cmp::Reverse;

use super::critical_path::{CriticalPath, SegmentKind};
use super::interval::{Interval, busy_intervals, common, length, union};
use crate::event::LaneKind;
use crate::timeline::Timeline;

/// Overlap of the lanes that compute (all devices; without devices, all lanes).
///
/// Here B_i is the set of times at which lane i is busy, |·| the length of such a set, and LB =
/// max(max |B_i|, busy time on the critical path) a lower bound of the makespan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Indices of the lanes that compute.
    pub lanes: Vec<usize>,
    /// |B_i| of each of `lanes`, in ns.
    pub busy: Vec<u64>,
    /// |∪ B_i|, in ns.
    pub union: u64,
    /// LB, in ns.
    pub lower_bound: u64,
    /// |B_i ∩ B_j| in ns of each pair of `lanes` (positions in that list), i < j. With more than 64
    /// lanes: only pairs of the 64 busiest lanes that were busy at the same time.
    pub pairs: Vec<(usize, usize, u64)>,
}

impl Overlap {
    /// (Σ|B_i| − |∪B_i|) / Σ|B_i|; `None` if nothing ran.
    pub fn ratio(&self) -> Option<f64> {
        self.share(self.union)
    }

    /// (Σ|B_i| − LB) / Σ|B_i|: the overlap that the dependencies allow; `None` if nothing ran.
    pub fn achievable(&self) -> Option<f64> {
        self.share(self.lower_bound)
    }

    /// [`ratio`](Overlap::ratio) divided by [`achievable`](Overlap::achievable); `None` if that is
    /// 0.
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
        let mut counts = vec![false; timeline.lanes.len()];
        for lane in &lanes {
            counts[*lane] = true;
        }
        let mut by_lane = busy_intervals(timeline);
        let intervals: Vec<Vec<Interval>> =
            lanes.iter().map(|lane| std::mem::take(&mut by_lane[*lane])).collect();
        let busy: Vec<u64> = intervals.iter().map(|list| length(list)).collect();
        let on_path = path.segments.iter().filter(|segment| {
            matches!(segment.kind, SegmentKind::Running(_)) && counts[segment.lane]
        });
        let on_path: u64 = on_path.map(|segment| segment.end - segment.start).sum();
        Overlap {
            union: length(&union(intervals.concat())),
            lower_bound: busy.iter().copied().max().unwrap_or(0).max(on_path),
            lanes,
            pairs: pairs(&intervals, &busy),
            busy,
        }
    }
}

/// Largest number of lanes compared pairwise; the number of pairs grows with the square.
const PAIRED_MAX: usize = 64;

/// See [`Overlap::pairs`].
fn pairs(intervals: &[Vec<Interval>], busy: &[u64]) -> Vec<(usize, usize, u64)> {
    let mut lanes: Vec<usize> = (0..busy.len()).collect();
    let all = lanes.len() <= PAIRED_MAX;
    if !all {
        lanes.sort_by_key(|lane| Reverse(busy[*lane]));
        lanes.truncate(PAIRED_MAX);
        lanes.sort_unstable();
    }
    let mut pairs = Vec::new();
    for (at, &i) in lanes.iter().enumerate() {
        for &j in &lanes[at + 1..] {
            let both = common(&intervals[i], &intervals[j]);
            if all || both > 0 {
                pairs.push((i, j, both));
            }
        }
    }
    pairs
}

//! Lists of time intervals: when each lane is busy, unions and intersections.

use crate::timeline::Timeline;

/// Start and end, in ns.
pub(crate) type Interval = (u64, u64);

/// Busy intervals of each lane, disjoint and ascending.
pub(crate) fn busy_intervals(timeline: &Timeline) -> Vec<Vec<Interval>> {
    let mut lanes: Vec<Vec<Interval>> = vec![Vec::new(); timeline.lanes.len()];
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        lanes[span.lane].push((span.start.0, span.end.0));
    }
    lanes.into_iter().map(union).collect()
}

/// Merges intervals into disjoint, ascending ones.
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

/// Total length of disjoint intervals, in ns.
pub(crate) fn length(intervals: &[Interval]) -> u64 {
    intervals.iter().map(|(start, end)| end - start).sum()
}

/// Length of the intersection of two disjoint, ascending lists, in ns.
pub(super) fn common(a: &[Interval], b: &[Interval]) -> u64 {
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

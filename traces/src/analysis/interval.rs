//! Lists of time intervals: when each lane is busy, unions and intersections.

use crate::clock::Nanos;
use crate::timeline::Timeline;

/// A time interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    /// In ns.
    pub(crate) start: u64,
    /// In ns.
    pub(crate) end: u64,
}

impl Interval {
    /// From one time to another.
    pub(crate) fn new(start: Nanos, end: Nanos) -> Interval {
        Interval { start: start.0, end: end.0 }
    }
}

/// Busy intervals of each lane, disjoint and ascending.
pub(crate) fn busy_intervals(timeline: &Timeline) -> Vec<Vec<Interval>> {
    let mut lanes: Vec<Vec<Interval>> = vec![Vec::new(); timeline.lanes.len()];
    for span in timeline.outer().map(|span| &timeline.spans[span]) {
        lanes[span.lane].push(Interval::new(span.start, span.end));
    }
    lanes.into_iter().map(union).collect()
}

/// How busy each lane is in each of `cells` equal parts of the time from `from` to `to`: shares between 0 and 1, in the order
/// of the lanes. Spans that a lane runs at the same time count once. All are 0 if `to` is not after `from`.
pub fn busy_shares(timeline: &Timeline, from: Nanos, to: Nanos, cells: usize) -> Vec<Vec<f64>> {
    let cell = to.0.saturating_sub(from.0) as f64 / cells as f64;
    let cell_of = |time: u64| (time.saturating_sub(from.0) as f64 / cell) as usize;
    let shares = |busy: Vec<Interval>| {
        let mut shares = vec![0.0; cells];
        let is_seen = |at: &Interval| from < to && at.start < to.0 && at.end > from.0;
        for Interval { start, end } in busy.into_iter().filter(is_seen) {
            let (start, end) = (start.max(from.0), end.min(to.0));
            let at = |time: u64| (time - from.0) as f64 / cell;
            for (index, share) in
                shares.iter_mut().enumerate().take(cell_of(end) + 1).skip(cell_of(start))
            {
                *share += (at(end).min(index as f64 + 1.0) - at(start).max(index as f64)).max(0.0);
            }
        }
        shares
    };
    busy_intervals(timeline).into_iter().map(shares).collect()
}

/// Merges intervals into disjoint, ascending ones.
pub(crate) fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::new();
    for interval in intervals {
        match merged.last_mut() {
            Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
            _ => merged.push(interval),
        }
    }
    merged
}

/// Total length of disjoint intervals, in ns.
pub(crate) fn length(intervals: &[Interval]) -> u64 {
    intervals.iter().map(|interval| interval.end - interval.start).sum()
}

/// Length of the intersection of two disjoint, ascending lists, in ns.
pub(super) fn common(a: &[Interval], b: &[Interval]) -> u64 {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        both += x.end.min(y.end).saturating_sub(x.start.max(y.start));
        if x.end < y.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Lane, Span};

    #[test]
    fn busy_shares_add_up_to_the_busy_time_within_the_window() {
        let lane = Lane { name: "gpu".to_owned(), kind: crate::event::LaneKind::Device, slots: 2 };
        let span = |start, end| Span {
            id: crate::event::SpanId(std::num::NonZeroU64::MIN),
            lane: 0,
            slot: 0,
            parent: None,
            depth: 0,
            name: "op".to_owned(),
            activity: crate::event::Activity::Compute,
            queued: None,
            submitted: None,
            start: Nanos(start),
            end: Nanos(end),
            finished: true,
            discarded: false,
            tags: crate::event::Tags::default(),
        };
        // Two spans overlap, one begins before the window, one ends after it, one is outside.
        let spans = vec![span(0, 15), span(20, 24), span(22, 28), span(38, 60), span(70, 80)];
        let timeline = Timeline { lanes: vec![lane], spans, ..Timeline::default() };
        // Thousandths, since the shares are sums of fractions.
        let shares = |from, to, cells| {
            let lanes = busy_shares(&timeline, Nanos(from), Nanos(to), cells);
            let round = |share: &f64| (share * 1e3).round() as u64;
            lanes.iter().map(|lane| lane.iter().map(round).collect()).collect::<Vec<Vec<u64>>>()
        };
        assert_eq!(shares(10, 50, 4), [[500, 800, 200, 1000]]);
        assert_eq!(shares(10, 50, 1), [[625]]);
        assert_eq!(shares(50, 50, 2), [[0, 0]]);
        assert_eq!(shares(10, 50, 0), [[0; 0]]);
    }
}

//! Arranges spans on tracks on which slices nest and do not overlap otherwise. Viewers drop a slice
//! that extends beyond the one below it, so every slot of a lane has a track of its own, and
//! concurrent inner spans are moved to additional tracks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::timeline::Timeline;

/// The start or end of a slice on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// Time, in ns.
    pub(super) at: u64,
    /// Index of the span.
    pub(super) span: usize,
    /// Whether the slice starts.
    pub(super) begins: bool,
}

/// A track of slices.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    /// Index of the lane.
    pub(super) lane: usize,
    /// Number of the track within its lane; tracks of slots come first.
    pub(super) row: usize,
    /// Starts and ends by time; every end closes the most recently opened slice.
    pub(super) edges: Vec<Edge>,
    open: Vec<usize>,
}

/// All tracks, by lane and row, and the track of every span.
#[derive(Debug)]
pub(super) struct Tracks {
    pub(super) tracks: Vec<Track>,
    pub(super) of_span: Vec<usize>,
}

pub(super) fn pack(timeline: &Timeline) -> Tracks {
    let mut lanes: Vec<Vec<Track>> = Vec::new();
    for (lane, slots) in timeline.lanes.iter().map(|lane| lane.slots).enumerate() {
        lanes.push((0..slots).map(|row| Track { lane, row, ..Track::default() }).collect());
    }
    let mut row_of = vec![0; timeline.spans.len()];
    for (at, span) in timeline.spans.iter().enumerate() {
        let slots = timeline.lanes[span.lane].slots;
        let rows = &mut lanes[span.lane];
        let home = span.parent.map_or(span.slot, |parent| row_of[parent]);
        let fits = |row: &Track| row.fits(timeline, span.parent, span.start.0);
        let row = if rows.get(home).is_some_and(fits) {
            home
        } else {
            // Other spans are not moved to a slot's own track.
            let free = rows.iter().skip(slots).position(fits).map(|row| row + slots);
            free.unwrap_or_else(|| {
                rows.push(Track { lane: span.lane, row: rows.len(), ..Track::default() });
                rows.len() - 1
            })
        };
        rows[row].begin(timeline, at);
        row_of[at] = row;
    }
    let mut first = Vec::new();
    let mut tracks: Vec<Track> = Vec::new();
    for rows in lanes {
        first.push(tracks.len());
        tracks.extend(rows);
    }
    for track in &mut tracks {
        track.close(timeline, 0);
    }
    let of_span = timeline.spans.iter().zip(row_of).map(|(s, row)| first[s.lane] + row).collect();
    Tracks { tracks, of_span }
}

impl Track {
    /// Number of open slices that stay open when a span with this parent starts.
    fn kept(&self, parent: Option<usize>) -> usize {
        let at = parent.and_then(|parent| self.open.iter().rposition(|open| *open == parent));
        at.map_or(0, |at| at + 1)
    }

    fn fits(&self, timeline: &Timeline, parent: Option<usize>, start: u64) -> bool {
        let ending = &self.open[self.kept(parent)..];
        ending.iter().all(|open| timeline.spans[*open].end.0 <= start)
    }

    fn begin(&mut self, timeline: &Timeline, span: usize) {
        self.close(timeline, self.kept(timeline.spans[span].parent));
        self.edges.push(Edge { at: timeline.spans[span].start.0, span, begins: true });
        self.open.push(span);
    }

    fn close(&mut self, timeline: &Timeline, kept: usize) {
        for span in self.open.drain(kept..).rev() {
            self.edges.push(Edge { at: timeline.spans[span].end.0, span, begins: false });
        }
    }
}

/// Places intervals on rows so that those of one row do not overlap: each goes to the first free
/// row.
#[derive(Debug, Default)]
pub(super) struct Rows {
    count: usize,
    /// Occupied rows with the time at which they become free; earliest first.
    taken: BinaryHeap<Reverse<(u64, usize)>>,
    /// Free rows; smallest number first.
    free: BinaryHeap<Reverse<usize>>,
}

impl Rows {
    /// Row of an interval. Intervals must be added in order of their start.
    pub(super) fn place(&mut self, start: u64, end: u64) -> usize {
        while let Some(Reverse((until, row))) = self.taken.peek().copied()
            && until <= start
        {
            self.taken.pop();
            self.free.push(Reverse(row));
        }
        let row = self.free.pop().map_or(self.count, |Reverse(row)| row);
        self.count = self.count.max(row + 1);
        self.taken.push(Reverse((end, row)));
        row
    }

    /// Number of rows.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

//! A run in progress: its present segment and its speed.

use std::time::Duration;

use lapwing_traces::Nanos;
use lapwing_traces::analysis::WorkSet;

use crate::drive::modelled::{Segment, SegmentKind, total};
use crate::drive::record::phase_of;
use crate::message::{Delivery, Traced};

/// A run of a device.
pub(in super::super) struct Ran {
    pub(in super::super) delivery: Traced<Delivery>,
    /// Its segments, with their modelled times.
    pub(in super::super) segments: Vec<Segment>,
}

impl Ran {
    /// The kinds of work that it does; none if it copies values.
    pub(super) fn kinds(&self) -> WorkSet {
        let chunk = self.delivery.chunk();
        match chunk.stage().computes() {
            true => WorkSet::of_chunk(chunk.role(), Some(phase_of(chunk))),
            false => WorkSet::default(),
        }
    }
}

/// A run in progress.
pub(super) struct Running {
    pub(super) ran: Ran,
    /// Its modelled time without contention.
    pub(super) alone: Duration,
    /// Index of the present segment.
    at: usize,
    /// Remaining time of the present segment at full speed, in nanoseconds.
    pub(super) left: f64,
    /// Time at which the present segment began.
    pub(super) began: Nanos,
    /// Speed as a share of full speed; 0 while a frame is drawn.
    pub(super) rate: f64,
    /// Number of the latest event scheduled for it.
    pub(super) tick: u64,
    /// Its completed segments, with their actual times.
    pub(super) played: Vec<Segment>,
    /// Whether the present kernel has waited for a frame; it then runs before the next frame.
    held: bool,
}

impl Running {
    /// Begins a run.
    pub(super) fn new(ran: Ran, now: Nanos) -> Running {
        let mut run = Running {
            alone: total(&ran.segments),
            at: 0,
            left: 0.0,
            began: now,
            rate: 1.0,
            tick: 0,
            played: Vec::with_capacity(ran.segments.len()),
            held: false,
            ran,
        };
        run.enter(0, now);
        run
    }

    pub(super) fn kind(&self) -> Option<SegmentKind> {
        self.ran.segments.get(self.at).map(|segment| segment.kind)
    }

    /// Bandwidth of the present segment at full speed, in bytes per nanosecond.
    pub(super) fn demand(&self) -> f64 {
        let Some(segment) = self.ran.segments.get(self.at) else { return 0.0 };
        segment.load.bytes / (segment.time.as_nanos() as f64).max(1.0)
    }

    pub(super) fn is_bound(&self) -> bool {
        self.ran.segments.get(self.at).is_some_and(|segment| segment.load.memory_bound)
    }

    /// Whether it is in progress in a segment other than submission.
    pub(super) fn computes(&self) -> bool {
        self.rate > 0.0 && self.kind() != Some(SegmentKind::Overhead)
    }

    /// Whether every segment is done.
    pub(super) fn is_over(&self) -> bool {
        self.at >= self.ran.segments.len()
    }

    /// Whether a frame may be drawn now: the run is at the start of a kernel that has not waited for a
    /// frame yet.
    pub(super) fn lets_in(&self) -> bool {
        let Some(segment) = self.ran.segments.get(self.at) else { return true };
        !self.held && !segment.load.joins && self.left >= segment.time.as_nanos() as f64
    }

    /// Stops it for a frame.
    pub(super) fn hold(&mut self) {
        (self.rate, self.tick, self.held) = (0.0, 0, true);
    }

    /// Resumes it after a frame.
    pub(super) fn resume(&mut self, now: Nanos) {
        self.played.push(Segment::plain(SegmentKind::Frame, now.since(self.began)));
        (self.rate, self.began) = (1.0, now);
    }

    /// Begins the first segment of non-zero time, from index `at` on.
    fn enter(&mut self, at: usize, now: Nanos) {
        let segments = &self.ran.segments;
        let takes_time = |segment: &Segment| !segment.time.is_zero();
        self.at =
            segments[at..].iter().position(takes_time).map_or(segments.len(), |skip| at + skip);
        self.began = now;
        self.left = segments.get(self.at).map_or(0.0, |s| s.time.as_nanos() as f64);
        (self.tick, self.held) = (0, false);
    }

    /// Ends the present segment.
    pub(super) fn leave(&mut self, now: Nanos) {
        if let Some(segment) = self.ran.segments.get(self.at) {
            let time = now.since(self.began);
            self.played.push(Segment { time, ..*segment });
        }
        self.enter((self.at + 1).min(self.ran.segments.len()), now);
    }
}

//! A run on its way: its present segment, and how fast that gets on.

use std::time::Duration;

use lapwing_traces::Nanos;

use crate::drive::modelled::{Did, Segment, total};
use crate::message::{Delivery, Traced};

/// A run of a device.
pub(in super::super) struct Ran {
    pub(in super::super) delivery: Traced<Delivery>,
    /// What it does, and how long that takes.
    pub(in super::super) segments: Vec<Segment>,
}

/// A run on its way.
pub(super) struct Running {
    pub(super) ran: Ran,
    /// What it takes by its model, without a share of anything.
    pub(super) alone: Duration,
    /// The present segment.
    at: usize,
    /// What is left of it, in nanoseconds of a device that has all memory for itself.
    pub(super) left: f64,
    /// When it began.
    pub(super) began: Nanos,
    /// Progress per nanosecond; 0 while a frame is drawn.
    pub(super) rate: f64,
    /// The latest event that was announced for it.
    pub(super) tick: u64,
    /// What it has done, with the times that it took.
    pub(super) played: Vec<Segment>,
    /// The present kernel has waited for a frame: it runs before the next one.
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

    pub(super) fn did(&self) -> Option<Did> {
        self.ran.segments.get(self.at).map(|segment| segment.did)
    }

    /// Bytes per nanosecond that the present segment could use.
    pub(super) fn demand(&self) -> f64 {
        let Some(segment) = self.ran.segments.get(self.at) else { return 0.0 };
        segment.load.bytes / (segment.time.as_nanos() as f64).max(1.0)
    }

    pub(super) fn is_bound(&self) -> bool {
        self.ran.segments.get(self.at).is_some_and(|segment| segment.load.memory_bound)
    }

    /// Whether it computes, or does something else than to be submitted.
    pub(super) fn computes(&self) -> bool {
        self.rate > 0.0 && self.did() != Some(Did::Overhead)
    }

    /// Whether every segment is done.
    pub(super) fn is_over(&self) -> bool {
        self.at >= self.ran.segments.len()
    }

    /// Whether a frame may be drawn before it goes on: it has just begun a kernel, which has not
    /// waited for a frame yet.
    pub(super) fn lets_in(&self) -> bool {
        let Some(segment) = self.ran.segments.get(self.at) else { return true };
        !self.held && !segment.load.joins && self.left >= segment.time.as_nanos() as f64
    }

    /// Stops it for a frame.
    pub(super) fn hold(&mut self) {
        (self.rate, self.tick, self.held) = (0.0, 0, true);
    }

    /// The frame is finished.
    pub(super) fn resume(&mut self, now: Nanos) {
        self.played.push(Segment::plain(Did::Frame, now.since(self.began)));
        (self.rate, self.began) = (1.0, now);
    }

    /// Begins the first segment from that one on that takes any time.
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

//! The moments at which graphs may be prepared.

use lapwing_traces::Nanos;
use std::time::Duration;

/// Time without a request after which the engine counts as idle. A program that sends one request after the other
/// pauses for less.
pub const REST: Duration = Duration::from_millis(300);

/// Time after which an engine that is never idle prepares graphs, too.
pub const BUSY_MAX: Duration = Duration::from_secs(30);

/// An engine that is never idle pauses for so many times as long as it has prepared a graph, before the next one.
pub const BUSY_PAUSE: u32 = 9;

/// When graphs may be prepared.
#[derive(Debug, Default)]
pub(super) struct Moments {
    /// Time since which there is no request.
    pub(super) idle_since: Option<Nanos>,
    /// Time since which there have been requests, without a pause.
    pub(super) busy_since: Option<Nanos>,
    /// A lane has been asked to say when a rest is over.
    pub(super) is_resting: bool,
    /// Start of the latest preparation, and its end, if it is over.
    pub(super) latest: Option<(Nanos, Option<Nanos>)>,
}

/// Whether graphs may be prepared now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    Now,
    /// If no request arrives until then.
    At(Nanos),
    /// A later message decides.
    No,
}

impl Moments {
    /// Whether graphs may be prepared at `now`.
    pub(super) fn may_prepare(&self, now: Nanos) -> May {
        if let Some(since) = self.idle_since {
            let rested = since + REST;
            return if now >= rested { May::Now } else { May::At(rested) };
        }
        let paused = match self.latest {
            None => true,
            Some((_, None)) => false,
            Some((begin, Some(end))) => now >= end + end.since(begin) * BUSY_PAUSE,
        };
        let is_late = self.busy_since.is_some_and(|since| now >= since + BUSY_MAX);
        if is_late && paused { May::Now } else { May::No }
    }

    pub(super) fn on_prepared(&mut self, now: Nanos) {
        if let Some((_, end @ None)) = &mut self.latest {
            *end = Some(now);
        }
    }

    pub(super) fn on_rested(&mut self) {
        self.is_resting = false;
    }
}

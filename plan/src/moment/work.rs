//! Work of devices.

use std::time::Duration;

/// What a chunk needs of a device, or what a device has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneWork {
    /// Time of all parts of stages.
    pub time: Duration,
    /// Time of the longest: nothing interrupts one that has begun.
    pub longest: Duration,
    /// Number of these parts.
    pub parts: u32,
}

impl LaneWork {
    /// With another part.
    pub(crate) fn add(&mut self, part: Duration) {
        self.time += part;
        self.longest = self.longest.max(part);
        self.parts += 1;
    }

    /// Mean time of a part.
    pub fn mean(self) -> Duration {
        self.time / self.parts.max(1)
    }
}

/// What the steps of streams take of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepLoad {
    /// Share of its time.
    pub share: f64,
    /// Time of a part.
    pub part: Duration,
}

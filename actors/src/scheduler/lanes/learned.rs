//! What chunks that ran alone took, beside predictions.

use std::time::Duration;

/// How chunks alone differ from predictions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    /// Real time / predicted time of chunks that stay on their devices.
    scale: f64,
    /// What a crossing takes longer than predicted, in ns. It has another sign only by noise.
    crossing: f64,
}

impl Default for Learned {
    fn default() -> Learned {
        Learned { scale: 1.0, crossing: 0.0 }
    }
}

/// Weight of a new value in an average.
const WEIGHT: f64 = 0.25;

/// Crossings from which on a chunk says what one takes.
const CROSSINGS_LEAST: u32 = 8;

/// A crossing is taken to be no longer than this, in ns.
const CROSSING_MOST: f64 = 5e6;

impl Learned {
    /// What a crossing takes longer than predicted, in ns.
    pub(super) fn crossing(&self) -> f64 {
        self.crossing
    }

    /// Records what a chunk alone with so many crossings took, in ns.
    pub(super) fn record(&mut self, predicted: Duration, crossings: u32, time: f64) {
        let predicted = predicted.as_nanos() as f64;
        if predicted <= 0.0 || time <= 0.0 {
            return;
        }
        if crossings < CROSSINGS_LEAST {
            self.scale += WEIGHT * ((time / predicted).clamp(0.5, 2.0) - self.scale);
            return;
        }
        let more = (time - predicted * self.scale) / f64::from(crossings);
        self.crossing += WEIGHT * (more.clamp(0.0, CROSSING_MOST) - self.crossing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn crossings_are_learned_beside_the_speed_of_the_machine() {
        let mut learned = Learned::default();
        for _ in 0..40 {
            learned.record(MS * 10, 0, 12e6);
            learned.record(MS * 10, 60, 12e6 + 60.0 * 200e3);
        }
        assert!((learned.scale - 1.2).abs() < 0.01, "{learned:?}");
        assert!((learned.crossing - 200e3).abs() < 2e3, "{learned:?}");
        learned.record(MS * 10, 60, 1e12);
        assert!(learned.crossing <= CROSSING_MOST, "{learned:?}");
    }
}

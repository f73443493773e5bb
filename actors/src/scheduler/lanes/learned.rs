//! What chunks of a kind that ran alone took, beside predictions.

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

/// Weight of a new value in the average of speeds, and in that of crossings, which vary more.
const WEIGHT: f64 = 0.25;
const WEIGHT_OF_CROSSING: f64 = 0.1;

/// Crossings from which on a chunk says what one takes.
const CROSSINGS_LEAST: u32 = 8;

/// A crossing is taken to be no longer than this, in ns.
const CROSSING_MOST: f64 = 5e6;

/// The first value that differs counts as no more than this, in ns, and a later one as no more than so many times the mean. A single chunk
/// that something else delayed changes little.
const FIRST_MOST: f64 = 200e3;
const TIMES_MOST: f64 = 4.0;

/// Share by which each chunk without crossings makes the mean less pessimistic. A route that was disturbed is tried again.
const FORGET: f64 = 0.003;

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
            self.crossing *= 1.0 - FORGET;
            return;
        }
        let more = (time - predicted * self.scale) / f64::from(crossings);
        let most = (TIMES_MOST * self.crossing).clamp(FIRST_MOST, CROSSING_MOST);
        self.crossing += WEIGHT_OF_CROSSING * (more.clamp(0.0, most) - self.crossing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn crossings_are_learned_beside_the_speed_of_the_machine() {
        let mut learned = Learned::default();
        (0..40).for_each(|_| learned.record(MS * 10, 0, 12e6));
        (0..80).for_each(|_| learned.record(MS * 10, 60, 12e6 + 60.0 * 300e3));
        assert!((learned.scale - 1.2).abs() < 0.01, "{learned:?}");
        assert!((learned.crossing - 300e3).abs() < 3e3, "{learned:?}");
        (0..80).for_each(|_| learned.record(MS * 10, 60, 1e12));
        assert!(learned.crossing > 1e6 && learned.crossing <= CROSSING_MOST, "{learned:?}");
    }

    #[test]
    fn one_late_chunk_says_little_and_is_forgotten() {
        let mut learned = Learned::default();
        learned.record(MS * 10, 60, 1e12);
        assert!(learned.crossing <= WEIGHT_OF_CROSSING * FIRST_MOST, "{learned:?}");
        (0..40).for_each(|_| learned.record(MS * 10, 60, 1e12));
        let late = learned.crossing;
        assert!(late > FIRST_MOST, "many late chunks count: {learned:?}");
        (0..1000).for_each(|_| learned.record(MS * 10, 0, 10e6));
        assert!(learned.crossing < 0.1 * late, "{learned:?}");
    }
}

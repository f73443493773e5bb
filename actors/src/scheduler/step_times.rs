//! Measured times of decode steps.

use lapwing_traces::Nanos;

/// A decode chunk of a model that is in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodeChunk {
    /// Number of the chunk.
    pub(super) id: u64,
    /// Its rows.
    pub(super) rows: usize,
    /// Number of the devices that compute it.
    pub(super) devices: usize,
    /// Time of its dispatch.
    pub(super) since: Nanos,
    /// Whether it holds only decode rows and no other chunk was in flight at its dispatch, so that its time is
    /// that of a step.
    pub(super) timed: bool,
}

/// Times of a model's decode steps by their number of rows, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTimes {
    /// Moving averages, by rows; 0 where nothing is measured.
    averages: Vec<f64>,
}

/// Weight of a new time in an average.
const WEIGHT: f64 = 0.2;

/// A time beyond this multiple of the average was disturbed; it counts as the multiple.
const DISTURBED: f64 = 2.0;

/// Assumed growth of the time with each row after the first, where nothing is measured.
const GROWTH: f64 = 0.12;

impl StepTimes {
    /// Records the time of a step of `rows` rows.
    pub(super) fn record(&mut self, rows: usize, time: f64) {
        if self.averages.len() <= rows {
            self.averages.resize(rows + 1, 0.0);
        }
        let average = &mut self.averages[rows];
        *average = match *average {
            0.0 => time,
            before => before + WEIGHT * (time.min(before * DISTURBED) - before),
        };
    }

    /// Time of a step of `rows` rows: the measured one, otherwise that of the nearest smaller measured step,
    /// or else the nearest larger, scaled by the assumed growth. `None` before any measurement.
    pub(super) fn estimate(&self, rows: usize) -> Option<f64> {
        let assumed = |rows: usize| 1.0 + GROWTH * rows.saturating_sub(1) as f64;
        let measured = |n: &usize| self.averages.get(*n).is_some_and(|time| *time > 0.0);
        let smaller = (1..=rows).rev().find(measured);
        let nearest = smaller.or_else(|| (rows..self.averages.len()).find(measured))?;
        Some(self.averages[nearest] * assumed(rows) / assumed(nearest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmeasured_steps_are_scaled_from_measured_ones() {
        let mut times = StepTimes::default();
        assert_eq!(times.estimate(1), None);
        times.record(3, 124.0);
        for (rows, expected) in [(3, 124.0), (1, 100.0), (5, 148.0)] {
            let found = times.estimate(rows).expect("a step is measured");
            assert!((found - expected).abs() < 1e-9, "{rows} rows: {found}");
        }
        times.record(5, 300.0);
        assert_eq!(times.estimate(5), Some(300.0));
    }

    #[test]
    fn a_disturbed_step_changes_the_average_little() {
        let mut times = StepTimes::default();
        times.record(1, 100.0);
        times.record(1, 1e9);
        assert!((times.estimate(1).expect("measured") - 120.0).abs() < 1e-9);
    }
}

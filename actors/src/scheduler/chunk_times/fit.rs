//! Fits the times of a cost model to real ones.

use super::ModelTime;

/// Factors of a cost model's times, by recursive least squares of relative errors, in which earlier chunks count less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// Factor of the whole time, and of what the context adds beyond that.
    factors: [f64; 2],
    /// Covariance of the factors.
    covariance: [[f64; 2]; 2],
    /// Chunks that were recorded since everything was uncertain.
    chunks: usize,
    /// Disturbed chunks without another one between them.
    disturbed: usize,
}

/// Factor before anything is measured: rates of devices are those of their best ops.
const UNMEASURED: f64 = 1.5;

/// Variances of the factors before anything is measured.
const VARIANCES: [f64; 2] = [100.0, 1.0];

/// Share of the weight that a chunk keeps with each new one.
const KEPT: f64 = 0.98;

/// Real times beyond these multiples of the fitted one were disturbed, and count as these.
const DISTURBED: [f64; 2] = [0.5, 2.0];

/// Chunks after which a time counts as disturbed if it is far from the fitted one.
const LEARNED: usize = 4;

/// Disturbed chunks in a row after which the times have changed: what was learned no longer counts.
const CHANGED: usize = 3;

/// Smallest factor of a time.
const LEAST: f64 = 1e-3;

/// The covariance before anything is measured.
fn prior() -> [[f64; 2]; 2] {
    [[VARIANCES[0], 0.0], [0.0, VARIANCES[1]]]
}

impl Default for Fit {
    fn default() -> Fit {
        Fit { factors: [UNMEASURED, 0.0], covariance: prior(), chunks: 0, disturbed: 0 }
    }
}

impl Fit {
    /// The fitted time in ns.
    pub(super) fn time(&self, model: ModelTime) -> f64 {
        let whole = model.alone + model.context;
        let [factor, of_context] = self.factors;
        (factor * whole + of_context * model.context).max(LEAST * whole)
    }

    /// Records that a chunk took `time` ns.
    pub(super) fn record(&mut self, model: ModelTime, time: f64) {
        let time = self.without_disturbance(model, time);
        let features = [(model.alone + model.context) / time, model.context / time];
        let [[a, b], [_, c]] = self.covariance;
        let spread = [a * features[0] + b * features[1], b * features[0] + c * features[1]];
        let error = 1.0 - self.factors[0] * features[0] - self.factors[1] * features[1];
        let whole = KEPT + features[0] * spread[0] + features[1] * spread[1];
        let gain = spread.map(|it| it / whole);
        for (factor, gain) in self.factors.iter_mut().zip(gain) {
            *factor += gain * error;
        }
        let next = |at: usize, other: usize, now: f64| now - gain[at] * spread[other];
        let mut covariance = [[next(0, 0, a), next(0, 1, b)], [next(1, 0, b), next(1, 1, c)]];
        // What is not measured for long would become arbitrarily uncertain.
        let forget = |at: usize| {
            let is_certain = covariance[at][at] / KEPT <= VARIANCES[at];
            if is_certain { KEPT.sqrt().recip() } else { 1.0 }
        };
        let scale = [forget(0), forget(1)];
        for (row, by) in covariance.iter_mut().zip(scale) {
            row.iter_mut().zip(scale).for_each(|(it, of)| *it *= by * of);
        }
        self.covariance = covariance;
    }

    /// A time that is not far from the fitted one, unless several were.
    fn without_disturbance(&mut self, model: ModelTime, time: f64) -> f64 {
        let fitted = self.time(model);
        let [least, most] = DISTURBED.map(|factor| factor * fitted);
        self.chunks = self.chunks.saturating_add(1);
        if self.chunks <= LEARNED || (least..=most).contains(&time) {
            self.disturbed = 0;
            return time;
        }
        self.disturbed += 1;
        if self.disturbed < CHANGED {
            return time.clamp(least, most);
        }
        (self.covariance, self.chunks, self.disturbed) = (prior(), 1, 0);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(alone: f64, context: f64) -> ModelTime {
        ModelTime { alone, context }
    }

    #[test]
    fn times_that_change_are_learned_again() {
        let mut fit = Fit::default();
        let times = [1.0, 3.0, 1.2, 0.2];
        for (turn, factor) in times.into_iter().enumerate() {
            for chunk in 0..60 {
                let at = model(1000.0, f64::from(chunk % 10) * 20.0);
                fit.record(at, factor * (at.alone + at.context));
            }
            let found = fit.time(model(1000.0, 100.0)) / 1100.0;
            assert!((found / factor - 1.0).abs() < 0.1, "turn {turn}: {found} for {factor}");
        }
    }

    #[test]
    fn one_wrong_time_is_forgotten_wherever_it_comes() {
        for wrong in [0, 1, 3, 10] {
            let mut fit = Fit::default();
            for chunk in 0..40 {
                let at = model(1000.0, f64::from(chunk) * 20.0);
                let time = if chunk == wrong { 1.0 } else { 0.5 * (at.alone + at.context) };
                fit.record(at, time);
            }
            let found = fit.time(model(1000.0, 500.0)) / 1500.0;
            assert!((found - 0.5).abs() < 0.05, "after chunk {wrong}: {found}");
        }
    }
}

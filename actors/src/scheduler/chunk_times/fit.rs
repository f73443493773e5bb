//! Fits the times of a cost model to real ones.

use super::ModelTime;

/// Factors of a cost model's times, by recursive least squares of relative errors, in which earlier chunks count less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// Factor of the whole time, and of what the context adds beyond that.
    factors: [f64; 2],
    /// Covariance of the factors.
    covariance: [[f64; 2]; 2],
    /// Chunks that were recorded.
    chunks: usize,
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

/// Smallest factor of a time.
const LEAST: f64 = 1e-3;

impl Default for Fit {
    fn default() -> Fit {
        let [whole, context] = VARIANCES;
        Fit { factors: [UNMEASURED, 0.0], covariance: [[whole, 0.0], [0.0, context]], chunks: 0 }
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
        let fitted = self.time(model);
        let time = match self.chunks >= LEARNED {
            true => time.clamp(DISTURBED[0] * fitted, DISTURBED[1] * fitted),
            false => time,
        };
        self.chunks = self.chunks.saturating_add(1);
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
        let is_certain = |at: usize| covariance[at][at] / KEPT <= VARIANCES[at];
        if is_certain(0) && is_certain(1) {
            covariance.iter_mut().flatten().for_each(|it| *it /= KEPT);
        }
        self.covariance = covariance;
    }
}

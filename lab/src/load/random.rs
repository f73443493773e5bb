//! Random numbers that depend on a seed only.

/// A well-mixed number of another one (the finaliser of MurmurHash3).
pub(super) fn mix(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A sequence of random numbers.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(mix(seed))
    }

    /// Uniform, at least 0 and below 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(1);
        (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential, with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// An index below `count` with probability proportional to 1 / (index + 1)^`exponent` (Zipf).
    pub(super) fn zipf(&mut self, count: usize, exponent: f64) -> usize {
        let weight = |index: usize| ((index + 1) as f64).powf(-exponent);
        let mut left = self.unit() * (0..count).map(weight).sum::<f64>();
        (0..count)
            .find(|index| {
                left -= weight(*index);
                left < 0.0
            })
            .unwrap_or(count.saturating_sub(1))
    }
}

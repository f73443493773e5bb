//! The Mersenne twister MT19937 (Matsumoto and Nishimura, 1998), with which published workloads were drawn: the same seed
//! gives the same numbers as `numpy.random.seed`.

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// A sequence of random numbers.
pub(super) struct Mersenne {
    words: [u32; WORDS],
    next: usize,
}

impl Mersenne {
    pub(super) fn new(seed: u32) -> Mersenne {
        let mut words = [seed; WORDS];
        for at in 1..WORDS {
            let before = words[at - 1];
            let mixed = (before ^ (before >> 30)).wrapping_mul(1_812_433_253);
            words[at] = mixed.wrapping_add(at as u32);
        }
        Mersenne { words, next: WORDS }
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            for at in 0..WORDS {
                let high = self.words[at] & 0x8000_0000;
                let both = high | self.words[(at + 1) % WORDS] & 0x7fff_ffff;
                let twisted = (both >> 1) ^ if both & 1 == 1 { 0x9908_b0df } else { 0 };
                self.words[at] = self.words[(at + MIDDLE) % WORDS] ^ twisted;
            }
            self.next = 0;
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Uniform, at least 0 and below 1, with 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * f64::from(1 << 26) + f64::from(low)) / (1_u64 << 53) as f64
    }

    /// Exponential, with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_numbers_that_it_gives_elsewhere() {
        let mut words = Mersenne::new(5489);
        assert_eq!(words.word(), 3_499_211_612);
        let tenthousandth = (1..9999).map(|_| words.word()).last();
        assert!(tenthousandth.is_some());
        assert_eq!(words.word(), 4_123_659_995);
        let mut units = Mersenne::new(42);
        let expected = [0.374_540_118_847_362_5, 0.950_714_306_409_916_2, 0.731_993_941_811_405_1];
        assert_eq!(expected.map(|_| units.unit()), expected);
    }
}

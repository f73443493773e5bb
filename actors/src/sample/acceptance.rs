//! Drafted tokens that are accepted by chance.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Accepts each drafted token with the same probability. It draws apart from the choice of tokens.
#[derive(Clone, Debug)]
pub(super) struct Acceptance {
    rate: f64,
    random: ChaCha8Rng,
}

impl Acceptance {
    pub(super) fn new(rate: f32, seed: u64) -> Acceptance {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(1);
        Acceptance { rate: f64::from(rate), random }
    }

    pub(super) fn draw(&mut self) -> bool {
        // 53 bits: a rate of 1 accepts all, one of 0 none.
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        unit < self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_accepted_as_the_rate_says() {
        for (rate, least, most) in
            [(0.0, 0, 0), (0.2, 1850, 2150), (0.8, 7850, 8150), (1.0, 10_000, 10_000)]
        {
            let mut acceptance = Acceptance::new(rate, 7);
            let accepted = (0..10_000).filter(|_| acceptance.draw()).count();
            assert!((least..=most).contains(&accepted), "{rate}: {accepted}");
        }
    }
}

//! What an engine does between two steps: it chooses a token.

use std::time::Duration;

use lapwing_traces::Clock;

use crate::sample::{Sampler, SamplingParams};

/// Timed choices, after one that warms up.
const RUNS: usize = 15;

/// Chooses the most likely of some tokens, again and again.
pub(super) struct Choice {
    sampler: Sampler,
    logits: Vec<f32>,
}

impl Choice {
    /// From a vocabulary of so many tokens.
    pub(super) fn new(vocab: usize) -> Choice {
        // Numbers of both signs, of which the largest is not the first.
        let logits = (0..vocab).map(|id| (id * 37 % 101) as f32 / 8.0 - 6.0).collect();
        Choice { sampler: Sampler::new(SamplingParams::greedy(), &[]), logits }
    }

    /// Chooses a token; there is none in an empty vocabulary.
    pub(super) fn run(&mut self) -> Option<u32> {
        self.sampler.sample(&self.logits).ok().map(|token| token.id)
    }
}

/// Median time in which the most likely token of so many is chosen.
pub fn choice_time(vocab: usize, clock: &dyn Clock) -> Duration {
    let mut choice = Choice::new(vocab);
    let mut times = Vec::with_capacity(RUNS + 1);
    for _ in 0..=RUNS {
        let begin = clock.now();
        if choice.run().is_none() {
            return Duration::ZERO;
        }
        times.push(Duration::from_nanos(clock.now().0 - begin.0));
    }
    times.remove(0);
    times.sort_unstable();
    times[RUNS / 2]
}

#[cfg(test)]
mod tests {
    use lapwing_traces::OsClock;

    use super::*;

    #[test]
    fn the_most_likely_token_is_chosen_if_there_is_one() {
        let clock = OsClock::start();
        assert_eq!((Choice::new(0).run(), choice_time(0, &clock)), (None, Duration::ZERO));
        // 30 · 37 is the first number whose remainder is 100.
        assert_eq!(Choice::new(1000).run(), Some(30));
        assert!(choice_time(100_000, &clock) > Duration::ZERO);
    }
}

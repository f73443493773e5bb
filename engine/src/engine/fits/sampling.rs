//! The time in which a token is chosen.

use std::time::Duration;

use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_traces::{Clock, OsClock};

/// Timed choices, after one that warms up.
const RUNS: usize = 15;

/// Median time in which the most likely token of so many is chosen.
pub(super) fn time(vocab: usize) -> Duration {
    let clock = OsClock::start();
    // Numbers of both signs, of which the largest is not the first.
    let logits: Vec<f32> = (0..vocab).map(|id| (id * 37 % 101) as f32 / 8.0 - 6.0).collect();
    let mut sampler = Sampler::new(SamplingParams::greedy(), &[]);
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..=RUNS {
        let begin = clock.now();
        if sampler.sample(&logits).is_err() {
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
    use super::*;

    #[test]
    fn a_choice_takes_time_if_there_is_a_token() {
        assert_eq!(time(0), Duration::ZERO);
        assert!(time(100_000) > Duration::ZERO);
    }
}

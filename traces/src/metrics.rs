//! Times of a request, and the spread of repeated measurements.

use std::time::Duration;

use crate::clock::Nanos;

/// Times at which a request reached its milestones, and its token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// The engine received the request.
    pub submitted: Nanos,
    /// The request left the queue.
    pub admitted: Nanos,
    /// The first token (or score) was computed.
    pub first_token: Nanos,
    /// The last token was computed.
    pub finished: Nanos,
    /// Number of prompt tokens.
    pub prompt_tokens: usize,
    /// Number of prompt tokens that were not computed, because the prefix cache had their keys and values.
    pub cached_tokens: usize,
    /// Number of prompt tokens that were computed though the prefix cache had their keys and values: those behind the last
    /// tokens whose states of recurrent layers were kept.
    pub recomputed_tokens: usize,
    /// Number of tokens generated.
    pub generated_tokens: usize,
}

impl RequestTimes {
    /// Time in the queue.
    pub fn queued(&self) -> Duration {
        self.admitted - self.submitted
    }

    /// Time to first token (TTFT), measured from submission.
    pub fn ttft(&self) -> Duration {
        self.first_token - self.submitted
    }

    /// Prefill time: from admission to the first token.
    pub fn prefill(&self) -> Duration {
        self.first_token - self.admitted
    }

    /// Decode time: from the first token to the last.
    pub fn decode(&self) -> Duration {
        self.finished - self.first_token
    }

    /// Prefill speed in computed prompt tokens per second: without those of the prefix cache.
    pub fn prefill_tokens_per_second(&self) -> f64 {
        rate(self.prompt_tokens.saturating_sub(self.cached_tokens), self.prefill())
    }

    /// Decode speed in tokens per second, without the first token, which belongs to prefill.
    pub fn decode_tokens_per_second(&self) -> f64 {
        rate(self.generated_tokens.saturating_sub(1), self.decode())
    }

    /// Time per output token (TPOT) after the first; `None` below two tokens.
    pub fn tpot(&self) -> Option<Duration> {
        let gaps = u32::try_from(self.generated_tokens.checked_sub(1)?).ok()?;
        self.decode().checked_div(gaps)
    }
}

/// Events per second; 0 if no time passed.
pub fn rate(count: usize, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

/// Median, minimum and maximum of repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median (mean of the two middle values of an even count).
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Spread of the finite values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Spread { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_counts_as_prefill_and_cached_tokens_do_not() {
        let s = RequestTimes {
            submitted: Nanos(0),
            admitted: Nanos(1_000_000_000),
            first_token: Nanos(3_000_000_000),
            finished: Nanos(5_000_000_000),
            prompt_tokens: 12,
            cached_tokens: 2,
            recomputed_tokens: 0,
            generated_tokens: 5,
        };
        assert_eq!(s.ttft(), Duration::from_secs(3));
        assert_eq!(s.prefill_tokens_per_second(), 5.0);
        assert_eq!(s.decode_tokens_per_second(), 2.0);
        assert_eq!(s.tpot(), Some(Duration::from_millis(500)));
    }

    #[test]
    fn one_token_has_no_time_per_output_token() {
        let s = RequestTimes { generated_tokens: 1, ..RequestTimes::default() };
        assert_eq!(s.tpot(), None);
        assert_eq!(s.decode_tokens_per_second(), 0.0);
    }

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_values() {
        let spread = |v: &[f64]| Spread::of(v).map(|s| (s.median, s.min, s.max));
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some((2.5, 1.0, 4.0)));
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[f64::NAN]), None);
    }
}

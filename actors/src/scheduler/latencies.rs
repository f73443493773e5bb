//! Times of requests that have ended.

use std::collections::VecDeque;
use std::time::Duration;

use lapwing_traces::RequestTimes;
use lapwing_traces::report::Percentiles;

use crate::stats::{Latencies, REQUESTS_KEPT};

/// The latest completed requests, the oldest first.
#[derive(Debug, Default)]
pub(super) struct RecentRequests(VecDeque<Sample>);

/// Times of a request in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    queued: f32,
    ttft: f32,
    tpot: Option<f32>,
}

impl RecentRequests {
    /// Adds a request that has ended, if it generated a token.
    pub(super) fn add(&mut self, times: &RequestTimes) {
        if times.generated_tokens == 0 {
            return;
        }
        if self.0.len() == REQUESTS_KEPT {
            self.0.pop_front();
        }
        let ms = |time: Duration| time.as_secs_f32() * 1e3;
        self.0.push_back(Sample {
            queued: ms(times.queued()),
            ttft: ms(times.ttft()),
            tpot: times.tpot().map(ms),
        });
    }

    pub(super) fn report(&self) -> Latencies {
        let of = |time: fn(&Sample) -> Option<f32>| {
            Percentiles::of(self.0.iter().filter_map(time).map(f64::from))
        };
        Latencies {
            queued_ms: of(|sample| Some(sample.queued)),
            ttft_ms: of(|sample| Some(sample.ttft)),
            tpot_ms: of(|sample| sample.tpot),
        }
    }
}

#[cfg(test)]
mod tests {
    use lapwing_traces::Nanos;

    use super::*;

    #[test]
    fn percentiles_are_those_of_the_latest_requests_with_tokens() {
        let mut recent = RecentRequests::default();
        assert_eq!(recent.report(), Latencies::default());
        for ms in 1..=REQUESTS_KEPT as u64 + 100 {
            let at = |ms: u64| Nanos(ms * 1_000_000);
            let times = RequestTimes {
                submitted: at(0),
                admitted: at(ms),
                first_token: at(2 * ms),
                finished: at(2 * ms + 30),
                generated_tokens: if ms.is_multiple_of(2) { 1 } else { 4 },
                ..RequestTimes::default()
            };
            recent.add(&times);
            recent.add(&RequestTimes { generated_tokens: 0, ..times });
        }
        let Latencies { queued_ms, ttft_ms, tpot_ms } = recent.report();
        assert_eq!((queued_ms.count, queued_ms.min), (REQUESTS_KEPT, Some(101.0)));
        assert_eq!((ttft_ms.count, ttft_ms.max), (REQUESTS_KEPT, Some(712.0)));
        // Half of the requests have one token only.
        assert_eq!((tpot_ms.count, tpot_ms.p50), (REQUESTS_KEPT / 2, Some(10.0)));
    }
}

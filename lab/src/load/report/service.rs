//! Service of clients over time, as the artifact of VTC counts it: that of a request is spread evenly from its first token to
//! its last one.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Measure;
use crate::load::outcome::RequestOutcome;

/// Times at which clients are compared.
pub(super) struct Ticks {
    pub(super) centres: Vec<f64>,
    window: f64,
    warm_up: f64,
}

impl Ticks {
    /// Of a run of `duration` seconds.
    pub(super) fn of(measure: &Measure, duration: f64) -> Ticks {
        let Measure { warm_up, window, ticks, until, .. } = *measure;
        let part = (until.unwrap_or(duration) - warm_up).max(0.0) / (ticks + 1) as f64;
        let centres = (1..=ticks).map(|tick| warm_up + part * tick as f64).collect();
        Ticks { centres, window, warm_up }
    }

    /// The window around each of them.
    pub(super) fn windows(&self) -> impl Iterator<Item = Range<f64>> + '_ {
        self.centres.iter().map(|at| at - self.window / 2.0..at + self.window / 2.0)
    }
}

impl Measure {
    fn weigh(&self, prompt: usize, generated: usize) -> f64 {
        prompt as f64 * self.prompt_weight + generated as f64 * self.output_weight
    }

    /// Service of a request: its prompt, once there is a first token, and its tokens.
    pub(super) fn service(&self, request: &RequestOutcome) -> f64 {
        match request.tokens.len() {
            0 => 0.0,
            tokens => self.weigh(request.prompt_tokens, tokens),
        }
    }

    /// The part of it in a time. That of a single token is at the time of the token.
    fn service_in(&self, request: &RequestOutcome, time: &Range<f64>) -> f64 {
        let (Some(first), Some(last)) = (request.tokens.first(), request.tokens.last()) else {
            return 0.0;
        };
        let share = match last > first {
            true => (time.end.min(*last) - time.start.max(*first)).max(0.0) / (last - first),
            false => f64::from(u8::from(time.contains(first))),
        };
        share * self.service(request)
    }

    /// Service per second of some requests in a time.
    pub(super) fn rate(&self, requests: &[&RequestOutcome], time: Range<f64>) -> f64 {
        let services = requests.iter().map(|request| self.service_in(request, &time));
        services.sum::<f64>() / (time.end - time.start)
    }

    /// Service per second that requests ask for which arrive in a time.
    fn asked(&self, requests: &[&RequestOutcome], time: &Range<f64>) -> f64 {
        let arrive =
            requests.iter().filter(|request| (time.start..=time.end).contains(&request.at));
        let asked = arrive.map(|request| self.weigh(request.prompt_tokens, request.output_tokens));
        asked.sum::<f64>() / (time.end - time.start)
    }
}

/// The requests of each client.
pub(super) struct Clients<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a RequestOutcome>>,
    measure: &'a Measure,
}

impl<'a> Clients<'a> {
    pub(super) fn of(requests: &'a [RequestOutcome], measure: &'a Measure) -> Clients<'a> {
        let mut by_name: BTreeMap<&str, Vec<&RequestOutcome>> = BTreeMap::new();
        for request in requests {
            by_name.entry(&request.client).or_default().push(request);
        }
        Clients { by_name, measure }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &[&'a RequestOutcome])> {
        self.by_name.iter().map(|(name, requests)| (*name, &requests[..]))
    }

    /// In each window, the sum over clients of how much less they got than the client that got most, but no more than the
    /// difference of what they asked for and what they got; per second.
    pub(super) fn differences(&self, ticks: &Ticks) -> Vec<f64> {
        let in_window = |window: Range<f64>| {
            let all = self.by_name.values();
            let rates: Vec<(f64, f64)> = all
                .map(|it| (self.measure.rate(it, window.clone()), self.measure.asked(it, &window)))
                .collect();
            let most = rates.iter().map(|(got, _)| *got).fold(0.0, f64::max);
            rates.iter().map(|(got, asked)| (most - got).min((asked - got).abs())).sum()
        };
        ticks.windows().map(in_window).collect()
    }

    /// The largest difference, over ticks, of the service since the warm-up between the most and the least served client.
    pub(super) fn accumulated(&self, ticks: &Ticks) -> f64 {
        let at_tick = |at: &f64| {
            let time = ticks.warm_up..*at;
            let service = |requests: &Vec<&RequestOutcome>| -> f64 {
                requests.iter().map(|request| self.measure.service_in(request, &time)).sum()
            };
            let services: Vec<f64> = self.by_name.values().map(service).collect();
            let most = services.iter().copied().fold(0.0, f64::max);
            most - services.into_iter().fold(most, f64::min)
        };
        ticks.centres.iter().map(at_tick).fold(0.0, f64::max)
    }

    /// Jain's index of what clients had got when the first of them had all of its answers: prompts count at the first token.
    pub(super) fn jain_at_first_end(&self) -> f64 {
        let last = |request: &&RequestOutcome| request.tokens.last().copied();
        let end = |requests: &Vec<&RequestOutcome>| -> Option<f64> {
            let is_over = requests.iter().all(|it| it.finished || it.error.is_some());
            let last = requests.iter().filter_map(last).reduce(f64::max);
            last.filter(|_| is_over)
        };
        let first = self.by_name.values().filter_map(end).reduce(f64::min).unwrap_or(f64::INFINITY);
        let until =
            |request: &&RequestOutcome| match request.tokens.partition_point(|at| *at <= first) {
                0 => 0.0,
                tokens => self.measure.weigh(request.prompt_tokens, tokens),
            };
        jain(self.by_name.values().map(|requests| requests.iter().map(until).sum()))
    }
}

/// (Σx)² / (n · Σx²), Jain et al., 1984; 1 without service.
pub(super) fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 }
}

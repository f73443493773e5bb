//! The tokens that may be chosen, most likely first, and the steps that keep a part of them.

use super::{SamplingParams, TokenLogprob};

/// A token and its logit.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: u32,
    logit: f32,
}

/// Tokens with finite logits, most likely first; of equally likely tokens the lower id comes first.
#[derive(Debug, Default)]
pub(super) struct Candidates(Vec<Candidate>);

impl Candidates {
    /// Takes the `k` most likely tokens of `logits` `[vocab]`, or all if `k` is 0.
    pub(super) fn take_best(&mut self, logits: &[f32], k: usize) {
        let candidates = &mut self.0;
        candidates.clear();
        candidates.extend(
            logits
                .iter()
                .enumerate()
                .filter(|(_, logit)| logit.is_finite())
                .map(|(id, logit)| Candidate { id: id as u32, logit: *logit }),
        );
        let order =
            |a: &Candidate, b: &Candidate| b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id));
        if k > 0 && k < candidates.len() {
            candidates.select_nth_unstable_by(k - 1, order);
            candidates.truncate(k);
        }
        candidates.sort_unstable_by(order);
    }

    /// Keeps the tokens that the parameters allow, of at least one.
    pub(super) fn filter(&mut self, params: &SamplingParams) {
        self.keep_top_p(params.top_p);
        self.keep_min_p(params.min_p);
    }

    fn keep_top_p(&mut self, top_p: f32) {
        if top_p >= 1.0 {
            return;
        }
        let best = self.0[0].logit;
        let weight = |c: &Candidate| f64::from(c.logit - best).exp();
        let wanted = self.0.iter().map(weight).sum::<f64>() * f64::from(top_p);
        let mut sum = 0.0;
        let last = self.0.iter().position(|c| {
            sum += weight(c);
            sum >= wanted
        });
        self.0.truncate(last.map_or(usize::MAX, |last| last + 1));
    }

    fn keep_min_p(&mut self, min_p: f32) {
        if min_p > 0.0 {
            let floor = self.0[0].logit + min_p.ln();
            let keep = self.0.partition_point(|c| c.logit >= floor);
            self.0.truncate(keep.max(1));
        }
    }

    /// The token at `unit`, a random number in `[0, 1)`, of the distribution at that temperature.
    pub(super) fn draw(&self, temperature: f32, unit: f64) -> u32 {
        let best = self.0[0].logit;
        let heat = f64::from(temperature);
        let weight = |c: &Candidate| (f64::from(c.logit - best) / heat).exp();
        let total: f64 = self.0.iter().map(weight).sum();
        let mut left = unit * total;
        for candidate in &self.0 {
            left -= weight(candidate);
            if left < 0.0 {
                return candidate.id;
            }
        }
        // Rounding can leave a rest; it belongs to the last candidate.
        self.0[self.0.len() - 1].id
    }

    /// The `count` most likely tokens of `logits`, of which the log-probability of one is known.
    pub(super) fn top(
        &mut self,
        logits: &[f32],
        count: usize,
        known: TokenLogprob,
    ) -> Vec<TokenLogprob> {
        if count == 0 {
            return Vec::new();
        }
        self.take_best(logits, count);
        let log_sum = logits[known.id as usize] - known.logprob;
        let of = |c: &Candidate| TokenLogprob { id: c.id, logprob: c.logit - log_sum };
        self.0.iter().map(|c| if c.id == known.id { known } else { of(c) }).collect()
    }
}

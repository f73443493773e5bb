//! Choosing the next token from logits: numbers only, no text.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use lapwing_kernels::cpu::argmax;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::message::FinishReason;

pub use lapwing_kernels::cpu::logprob;

/// How tokens are chosen. The steps run in the order of the fields, temperature last.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// Added to the logits of these ids first; −∞ forbids an id.
    pub logit_bias: Vec<(u32, f32)>,
    /// How many of the latest tokens, prompt included, the penalties look at.
    pub penalty_window: usize,
    /// Divides positive and multiplies negative logits of tokens in the window; 1 is off.
    pub repetition_penalty: f32,
    /// Subtracted once from tokens in the window; 0 is off.
    pub presence_penalty: f32,
    /// Subtracted per occurrence in the window; 0 is off.
    pub frequency_penalty: f32,
    /// Keeps the k most likely tokens; 0 is off.
    pub top_k: usize,
    /// Nucleus sampling: keeps the smallest set with at least this probability; 1 is off.
    pub top_p: f32,
    /// Keeps tokens at least this likely relative to the most likely one; 0 is off.
    pub min_p: f32,
    /// Divides the logits; 0 always takes the most likely token.
    pub temperature: f32,
    /// Seed of the random choice: the same seed gives the same tokens. `None` draws a new one for each
    /// sequence.
    pub seed: Option<u64>,
}

impl Default for SamplingParams {
    fn default() -> SamplingParams {
        SamplingParams {
            logit_bias: Vec::new(),
            penalty_window: 64,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            temperature: 0.8,
            seed: None,
        }
    }
}

impl SamplingParams {
    /// Always the most likely token.
    pub fn greedy() -> SamplingParams {
        SamplingParams { temperature: 0.0, ..SamplingParams::default() }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`SamplingError`] names the first value that makes no sense.
    pub fn check(&self) -> Result<(), SamplingError> {
        let rows = [
            ("temperature", self.temperature, self.temperature >= 0.0, "0 or more"),
            ("top_p", self.top_p, self.top_p > 0.0 && self.top_p <= 1.0, "above 0, at most 1"),
            ("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "between 0 and 1"),
            (
                "repetition_penalty",
                self.repetition_penalty,
                self.repetition_penalty > 0.0,
                "above 0",
            ),
            ("presence_penalty", self.presence_penalty, true, "finite"),
            ("frequency_penalty", self.frequency_penalty, true, "finite"),
        ];
        for (name, value, good, expected) in rows {
            if !good || !value.is_finite() {
                return Err(SamplingError { name, value, expected });
            }
        }
        match self.logit_bias.iter().find(|(_, b)| b.is_nan() || *b == f32::INFINITY) {
            Some((_, value)) => Err(SamplingError {
                name: "logit_bias",
                value: *value,
                expected: "a number or −infinity",
            }),
            None => Ok(()),
        }
    }

    fn changes_logits(&self) -> bool {
        !self.logit_bias.is_empty() || self.penalises()
    }

    fn penalises(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
    }
}

/// A sampling parameter that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[error("{name} is {value}, but must be {expected}")]
pub struct SamplingError {
    /// Parameter.
    pub name: &'static str,
    /// Value given.
    pub value: f32,
    /// Accepted values.
    pub expected: &'static str,
}

/// A token id and how likely it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLogprob {
    /// Token id.
    pub id: u32,
    /// Natural logarithm of its probability under the model, before any sampling step.
    pub logprob: f32,
}

/// A chosen token.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Token id.
    pub id: u32,
    /// Natural logarithm of its probability under the model, before any sampling step.
    pub logprob: f32,
    /// The most likely tokens at its position, most likely first, as many as
    /// [`Sampler::with_top_logprobs`] asks for.
    pub top: Vec<TokenLogprob>,
    /// Set on the last token of a sequence.
    pub finish: Option<FinishReason>,
}

/// Chooses tokens for one sequence; it remembers what the penalties and the random choice need.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    history: VecDeque<u32>,
    seed: u64,
    random: ChaCha8Rng,
    changed: Vec<f32>,
    candidates: Vec<Candidate>,
    top_logprobs: usize,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: u32,
    logit: f32,
}

impl Sampler {
    /// A sampler for a sequence that begins with `prompt`. Draws a seed if `params` has none.
    pub fn new(params: SamplingParams, prompt: &[u32]) -> Sampler {
        let skip = prompt.len().saturating_sub(params.penalty_window);
        let seed = params.seed.unwrap_or_else(random_seed);
        Sampler {
            history: prompt[skip..].iter().copied().collect(),
            seed,
            random: ChaCha8Rng::seed_from_u64(seed),
            params,
            changed: Vec::new(),
            candidates: Vec::new(),
            top_logprobs: 0,
        }
    }

    /// A sampler that chooses the same tokens from the same logits, and reports no others.
    pub(crate) fn fork(&self) -> Sampler {
        Sampler {
            params: self.params.clone(),
            history: self.history.clone(),
            seed: self.seed,
            random: self.random.clone(),
            changed: Vec::new(),
            candidates: Vec::new(),
            top_logprobs: 0,
        }
    }

    /// Also reports the `count` most likely tokens at each position.
    #[must_use]
    pub fn with_top_logprobs(mut self, count: usize) -> Sampler {
        self.top_logprobs = count;
        self
    }

    /// Seed of the random choice.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether it takes the most likely token of the unchanged logits and reports no others, so that
    /// [`take`](Sampler::take) does for it.
    pub fn takes_most_likely(&self) -> bool {
        let SamplingParams { temperature, top_k, .. } = self.params;
        (temperature == 0.0 || top_k == 1)
            && !self.params.changes_logits()
            && self.top_logprobs == 0
    }

    /// Takes a token that a device has found to be the most likely one.
    pub fn take(&mut self, id: u32, logprob: f32) -> Sampled {
        self.remember(id);
        Sampled { id, logprob, top: Vec::new(), finish: None }
    }

    /// Chooses the next token from `logits` `[vocab]`; `None` when every logit is NaN or
    /// every token is forbidden.
    pub fn sample(&mut self, logits: &[f32]) -> Option<Sampled> {
        let id = if self.params.changes_logits() {
            let mut changed = std::mem::take(&mut self.changed);
            changed.clear();
            changed.extend_from_slice(logits);
            self.change(&mut changed);
            let id = self.choose(&changed);
            self.changed = changed;
            id?
        } else {
            self.choose(logits)?
        };
        self.remember(id);
        let logprob = logprob(logits, id);
        let top = self.top(logits, id, logprob);
        Some(Sampled { id, logprob, top, finish: None })
    }

    /// The most likely tokens, of which `id` has the log-probability `known`.
    fn top(&mut self, logits: &[f32], id: u32, known: f32) -> Vec<TokenLogprob> {
        if self.top_logprobs == 0 {
            return Vec::new();
        }
        self.take_best(logits, self.top_logprobs);
        let log_sum = logits[id as usize] - known;
        let logprob = |c: &Candidate| if c.id == id { known } else { c.logit - log_sum };
        self.candidates.iter().map(|c| TokenLogprob { id: c.id, logprob: logprob(c) }).collect()
    }

    fn remember(&mut self, id: u32) {
        if self.params.penalty_window == 0 {
            return;
        }
        if self.history.len() == self.params.penalty_window {
            self.history.pop_front();
        }
        self.history.push_back(id);
    }

    fn change(&self, logits: &mut [f32]) {
        for (id, bias) in &self.params.logit_bias {
            if let Some(logit) = logits.get_mut(*id as usize) {
                *logit += bias;
            }
        }
        if !self.params.penalises() {
            return;
        }
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for id in &self.history {
            *counts.entry(*id).or_default() += 1;
        }
        let p = &self.params;
        for (id, count) in counts {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit *=
                    if *logit > 0.0 { 1.0 / p.repetition_penalty } else { p.repetition_penalty };
                *logit -= p.presence_penalty + p.frequency_penalty * count as f32;
            }
        }
    }

    fn choose(&mut self, logits: &[f32]) -> Option<u32> {
        let best = argmax(logits)?;
        if self.params.temperature == 0.0 || self.params.top_k == 1 {
            return Some(best as u32);
        }
        self.keep_top_k(logits);
        self.keep_top_p();
        self.keep_min_p();
        Some(self.draw())
    }

    fn keep_top_k(&mut self, logits: &[f32]) {
        self.take_best(logits, self.params.top_k);
    }

    /// Fills the candidates with the `k` most likely tokens, or all if `k` is 0, most likely first.
    fn take_best(&mut self, logits: &[f32], k: usize) {
        self.candidates.clear();
        self.candidates.extend(
            logits
                .iter()
                .enumerate()
                .filter(|(_, logit)| logit.is_finite())
                .map(|(id, logit)| Candidate { id: id as u32, logit: *logit }),
        );
        let order =
            |a: &Candidate, b: &Candidate| b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id));
        if k > 0 && k < self.candidates.len() {
            self.candidates.select_nth_unstable_by(k - 1, order);
            self.candidates.truncate(k);
        }
        self.candidates.sort_unstable_by(order);
    }

    fn keep_top_p(&mut self) {
        if self.params.top_p >= 1.0 {
            return;
        }
        let best = self.candidates[0].logit;
        let weight = |c: &Candidate| f64::from(c.logit - best).exp();
        let wanted = self.candidates.iter().map(weight).sum::<f64>() * f64::from(self.params.top_p);
        let mut sum = 0.0;
        let last = self.candidates.iter().position(|c| {
            sum += weight(c);
            sum >= wanted
        });
        self.candidates.truncate(last.map_or(usize::MAX, |last| last + 1));
    }

    fn keep_min_p(&mut self) {
        if self.params.min_p > 0.0 {
            let floor = self.candidates[0].logit + self.params.min_p.ln();
            let keep = self.candidates.partition_point(|c| c.logit >= floor);
            self.candidates.truncate(keep.max(1));
        }
    }

    fn draw(&mut self) -> u32 {
        let best = self.candidates[0].logit;
        let heat = f64::from(self.params.temperature);
        let weight = |c: &Candidate| (f64::from(c.logit - best) / heat).exp();
        let total: f64 = self.candidates.iter().map(weight).sum();
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut left = unit * total;
        for candidate in &self.candidates {
            left -= weight(candidate);
            if left < 0.0 {
                return candidate.id;
            }
        }
        // Rounding can leave a rest; it belongs to the last candidate.
        self.candidates[self.candidates.len() - 1].id
    }
}

/// A seed that differs from call to call.
fn random_seed() -> u64 {
    // Below 2^53, so that a seed printed as JSON is read back exactly.
    RandomState::new().hash_one("seed") >> 11
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 5] = [1.0, 3.0, 2.0, -1.0, 2.5];

    fn params() -> SamplingParams {
        SamplingParams { top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, ..Default::default() }
    }

    fn support(params: SamplingParams, prompt: &[u32]) -> Vec<u32> {
        let mut seen: Vec<u32> = (0..2000)
            .filter_map(|seed| {
                Sampler::new(SamplingParams { seed: Some(seed), ..params.clone() }, prompt)
                    .sample(&LOGITS)
            })
            .map(|s| s.id)
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    #[test]
    fn each_filter_keeps_exactly_its_set() {
        let p = params();
        assert_eq!(support(p.clone(), &[]), vec![0, 1, 2, 3, 4]);
        assert_eq!(support(SamplingParams { top_k: 2, ..p.clone() }, &[]), vec![1, 4]);
        // Probabilities are 0.064, 0.470, 0.173, 0.009, 0.285.
        assert_eq!(support(SamplingParams { top_p: 0.46, ..p.clone() }, &[]), vec![1]);
        assert_eq!(support(SamplingParams { top_p: 0.5, ..p.clone() }, &[]), vec![1, 4]);
        assert_eq!(support(SamplingParams { min_p: 0.35, ..p.clone() }, &[]), vec![1, 2, 4]);
        assert_eq!(support(SamplingParams { min_p: 1.0, ..p.clone() }, &[]), vec![1]);
        let bias = vec![(1, f32::NEG_INFINITY), (99, 5.0)];
        assert_eq!(support(SamplingParams { logit_bias: bias, ..p }, &[]), vec![0, 2, 3, 4]);
    }

    #[test]
    fn frequencies_follow_the_softmax() {
        let draws = 20_000;
        let mut sampler = Sampler::new(SamplingParams { seed: Some(0), ..params() }, &[]);
        let mut counts = [0u32; 5];
        for _ in 0..draws {
            counts[sampler.sample(&LOGITS).expect("finite").id as usize] += 1;
        }
        for (id, count) in counts.into_iter().enumerate() {
            let expected = f64::from(logprob(&LOGITS, id as u32)).exp();
            let found = f64::from(count) / f64::from(draws);
            assert!((found - expected).abs() < 0.015, "id {id}: {found} for {expected}");
        }
    }

    #[test]
    fn same_seed_gives_same_tokens_and_another_seed_others() {
        let run = |seed| -> (Vec<u32>, u64) {
            let mut s = Sampler::new(SamplingParams { seed, ..params() }, &[]);
            ((0..64).filter_map(|_| s.sample(&LOGITS)).map(|t| t.id).collect(), s.seed())
        };
        assert_eq!(run(Some(7)), run(Some(7)));
        assert_ne!(run(Some(7)).0, run(Some(8)).0);
        let (free, seed) = run(None);
        assert_ne!(free, run(None).0, "without a seed every sampler draws its own");
        assert_eq!(free, run(Some(seed)).0, "the seed it reports repeats it");
    }

    #[test]
    fn penalties_move_tokens_of_the_window_only() {
        let greedy = SamplingParams::greedy();
        let first = |p: SamplingParams, prompt: &[u32]| Sampler::new(p, prompt).sample(&LOGITS);
        let id = |p: SamplingParams, prompt: &[u32]| first(p, prompt).map(|s| s.id);
        let rep = SamplingParams { repetition_penalty: 1.5, ..greedy.clone() };
        assert_eq!(id(greedy.clone(), &[1]), Some(1));
        assert_eq!(id(rep.clone(), &[1]), Some(4));
        assert_eq!(id(SamplingParams { penalty_window: 1, ..rep }, &[1, 0]), Some(1));
        let presence = SamplingParams { presence_penalty: 0.6, ..greedy.clone() };
        assert_eq!(id(presence, &[1]), Some(4));
        let frequency = SamplingParams { frequency_penalty: 0.3, ..greedy };
        assert_eq!(id(frequency.clone(), &[1]), Some(1));
        assert_eq!(id(frequency, &[1, 1]), Some(4));
    }

    #[test]
    fn the_probability_reported_is_the_models_own() {
        let p = SamplingParams { logit_bias: vec![(3, 100.0)], ..SamplingParams::greedy() };
        let token = Sampler::new(p, &[]).sample(&LOGITS).expect("finite");
        assert_eq!(token.id, 3);
        assert!((token.logprob - logprob(&LOGITS, 3)).abs() < 1e-6);
        assert!((token.logprob + 4.755).abs() < 1e-3, "{}", token.logprob);
    }

    #[test]
    fn the_most_likely_tokens_are_reported_in_order_whatever_is_chosen() {
        let bias = vec![(3, 100.0)];
        let p = SamplingParams { logit_bias: bias, ..SamplingParams::greedy() };
        let token = Sampler::new(p, &[]).with_top_logprobs(3).sample(&LOGITS).expect("finite");
        assert_eq!(token.id, 3);
        assert_eq!(token.top.iter().map(|t| t.id).collect::<Vec<_>>(), [1, 4, 2]);
        for t in &token.top {
            assert!((t.logprob - logprob(&LOGITS, t.id)).abs() < 1e-5, "{t:?}");
        }
        let best = Sampler::new(SamplingParams::greedy(), &[]).with_top_logprobs(99);
        let best = best.clone().sample(&LOGITS).expect("finite");
        assert_eq!((best.top.len(), best.top[0].id), (5, 1));
        assert_eq!(best.top[0].logprob.to_bits(), best.logprob.to_bits());
        let total: f64 = best.top.iter().map(|t| f64::from(t.logprob).exp()).sum();
        assert!((total - 1.0).abs() < 1e-5, "{total}");
        let none = Sampler::new(params(), &[]).sample(&LOGITS).expect("finite");
        assert!(none.top.is_empty());
    }

    #[test]
    fn broken_logits_give_nothing_instead_of_a_wrong_token() {
        let mut s = Sampler::new(params(), &[]);
        assert_eq!(s.sample(&[f32::NAN, f32::NAN]), None);
        assert_eq!(s.sample(&[f32::NEG_INFINITY]), None);
        assert_eq!(Sampler::new(SamplingParams::greedy(), &[]).sample(&[]), None);
    }

    #[test]
    fn senseless_parameters_are_named() {
        let rows = [
            (SamplingParams { temperature: -1.0, ..params() }, "temperature"),
            (SamplingParams { temperature: f32::NAN, ..params() }, "temperature"),
            (SamplingParams { top_p: 0.0, ..params() }, "top_p"),
            (SamplingParams { min_p: 1.5, ..params() }, "min_p"),
            (SamplingParams { repetition_penalty: 0.0, ..params() }, "repetition_penalty"),
            (SamplingParams { presence_penalty: f32::INFINITY, ..params() }, "presence_penalty"),
            (SamplingParams { logit_bias: vec![(0, f32::NAN)], ..params() }, "logit_bias"),
        ];
        for (params, name) in rows {
            assert_eq!(params.check().map_err(|e| e.name), Err(name));
        }
        assert_eq!(params().check(), Ok(()));
    }
}

//! The state that chooses the tokens of one sequence.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use lapwing_kernels::cpu::argmax;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::{Candidates, Sampled, SamplingParams, TokenLogprob, logprob};

/// Chooses tokens for one sequence; it remembers what the penalties and the random choice need.
#[derive(Debug)]
pub struct Sampler {
    params: SamplingParams,
    history: VecDeque<u32>,
    seed: u64,
    random: ChaCha8Rng,
    /// Tokens that are still forbidden to end the sequence.
    late_ends: LateEnds,
    changed: Vec<f32>,
    candidates: Candidates,
    top_logprobs: usize,
}

/// End tokens that are forbidden at the beginning.
#[derive(Clone, Debug, Default)]
struct LateEnds {
    ids: Arc<[u32]>,
    /// Number of tokens to choose before an end token may be chosen.
    left: usize,
}

impl LateEnds {
    fn forbids(&self) -> bool {
        self.left > 0 && !self.ids.is_empty()
    }
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
            late_ends: LateEnds::default(),
            changed: Vec::new(),
            candidates: Candidates::default(),
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
            late_ends: self.late_ends.clone(),
            changed: Vec::new(),
            candidates: Candidates::default(),
            top_logprobs: 0,
        }
    }

    /// Also reports the `count` most likely tokens at each position.
    #[must_use]
    pub fn with_top_logprobs(mut self, count: usize) -> Sampler {
        self.top_logprobs = count;
        self
    }

    /// Forbids the end tokens `ends` until `tokens` tokens are chosen.
    #[must_use]
    pub fn with_min_tokens(mut self, tokens: usize, ends: Arc<[u32]>) -> Sampler {
        self.late_ends = LateEnds { ids: ends, left: tokens };
        self
    }

    /// Seed of the random choice.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether it takes the most likely token of the unchanged logits and reports no others, so that
    /// [`take`](Sampler::take) does for it.
    pub fn takes_most_likely(&self) -> bool {
        self.is_greedy() && !self.changes_logits() && self.top_logprobs == 0
    }

    fn is_greedy(&self) -> bool {
        self.params.temperature == 0.0 || self.params.top_k == 1
    }

    fn changes_logits(&self) -> bool {
        self.params.changes_logits() || self.late_ends.forbids()
    }

    /// Takes a token that a device has found to be the most likely one.
    pub fn take(&mut self, id: u32, logprob: f32) -> Sampled {
        self.remember(id);
        Sampled { id, logprob, top: Vec::new(), finish: None }
    }

    /// Chooses the next token from `logits` `[vocab]`; `None` when every logit is NaN or
    /// every token is forbidden.
    pub fn sample(&mut self, logits: &[f32]) -> Option<Sampled> {
        let id = if self.changes_logits() {
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
        let top = self.candidates.top(logits, self.top_logprobs, TokenLogprob { id, logprob });
        Some(Sampled { id, logprob, top, finish: None })
    }

    fn remember(&mut self, id: u32) {
        self.late_ends.left = self.late_ends.left.saturating_sub(1);
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
        if self.late_ends.forbids() {
            for id in &*self.late_ends.ids {
                if let Some(logit) = logits.get_mut(*id as usize) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        if self.params.penalises() {
            self.penalise(logits);
        }
    }

    fn penalise(&self, logits: &mut [f32]) {
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
        if self.is_greedy() {
            return Some(best as u32);
        }
        self.candidates.take_best(logits, self.params.top_k);
        self.candidates.filter(&self.params);
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        Some(self.candidates.draw(self.params.temperature, unit))
    }
}

/// A seed that differs from call to call.
fn random_seed() -> u64 {
    // Below 2^53, so that a seed printed as JSON is read back exactly.
    RandomState::new().hash_one("seed") >> 11
}

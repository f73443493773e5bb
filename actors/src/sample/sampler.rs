//! The state that chooses the tokens of one sequence.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use lapwing_kernels::cpu::argmax;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::acceptance::Acceptance;
use super::constrained::Constrained;
use super::{
    Accepted, Candidates, Constraint, ConstraintError, MaskWorker, SampleError, Sampled,
    SamplingParams, TokenLogprob, TokenMask, logprob,
};
use crate::finish::FinishReason;

/// Chooses tokens for one sequence; it remembers what the penalties and the random choice need.
#[derive(Debug)]
pub struct Sampler {
    params: SamplingParams,
    history: VecDeque<u32>,
    seed: u64,
    random: ChaCha8Rng,
    /// Draws which drafted tokens are accepted, where the parameters say how many.
    acceptance: Option<Acceptance>,
    /// Tokens that are still forbidden to end the sequence.
    late_ends: LateEnds,
    /// Which tokens may be chosen, if not all.
    constrained: Option<Constrained>,
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
            acceptance: params.draft_acceptance.map(|rate| Acceptance::new(rate, seed)),
            params,
            late_ends: LateEnds::default(),
            constrained: None,
            changed: Vec::new(),
            candidates: Candidates::default(),
            top_logprobs: 0,
        }
    }

    /// A sampler for drafts: it chooses the same tokens from the same logits, and reports no others. Where this
    /// one ends the sequence, that one goes on without constraint.
    pub(crate) fn fork(&self) -> Sampler {
        Sampler {
            params: self.params.clone(),
            history: self.history.clone(),
            seed: self.seed,
            random: self.random.clone(),
            acceptance: None,
            late_ends: self.late_ends.clone(),
            constrained: self.constrained.as_ref().and_then(Constrained::fork),
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

    /// Forbids the end tokens `ends` until `tokens` tokens are chosen, unless a constraint allows no others.
    #[must_use]
    pub fn with_min_tokens(mut self, tokens: usize, ends: Arc<[u32]>) -> Sampler {
        self.late_ends = LateEnds { ids: ends, left: tokens };
        self
    }

    /// Chooses only tokens that `constraint` allows, and ends the sequence when its text is complete. Masks are
    /// computed by `worker` where it is known in time which one is needed; otherwise, and without a worker, by
    /// the caller of [`sample`](Sampler::sample).
    #[must_use]
    pub fn with_constraint(
        mut self,
        constraint: Box<dyn Constraint>,
        worker: Option<Arc<dyn MaskWorker>>,
    ) -> Sampler {
        self.constrained = Some(Constrained::new(constraint, worker));
        self
    }

    /// Starts computing the mask of the next token. Called as soon as it is known that one is needed.
    pub fn prepare(&mut self) {
        if let Some(constrained) = &mut self.constrained {
            constrained.prepare();
        }
    }

    /// Seed of the random choice.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether it takes `id` if that is the most likely token of the unchanged logits, and reports no
    /// others, so that [`take`](Sampler::take) does for it. A bias that lowers other tokens changes nothing.
    pub fn takes(&self, id: u32) -> bool {
        let is_kept = |bias: &(u32, f32)| bias.0 != id && bias.1 <= 0.0;
        let ends = self.late_ends.forbids() && self.late_ends.ids.contains(&id);
        self.is_greedy()
            && self.params.logit_bias.iter().all(is_kept)
            && !self.params.penalises()
            && !ends
            && self.constrained.is_none()
            && self.top_logprobs == 0
    }

    /// The tokens that may be chosen, if not all. A constraint of drafts that cannot go on is dropped.
    fn mask(&mut self) -> Result<Option<TokenMask>, ConstraintError> {
        let Some(constrained) = &mut self.constrained else { return Ok(None) };
        match constrained.mask() {
            Ok(mask) => Ok(Some(mask)),
            Err(_) if constrained.is_of_drafts() => {
                self.constrained = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells the constraint which token is chosen. Returns whether the sequence ends with it.
    fn advance(&mut self, id: u32) -> Result<Option<FinishReason>, ConstraintError> {
        let Some(constrained) = &mut self.constrained else { return Ok(None) };
        let of_drafts = constrained.is_of_drafts();
        match constrained.accept(id) {
            Ok(Accepted::Open) => Ok(None),
            Ok(Accepted::Complete) if !of_drafts => Ok(Some(FinishReason::Stop)),
            Err(error) if !of_drafts => Err(error),
            Ok(Accepted::Complete) | Err(_) => {
                self.constrained = None;
                Ok(None)
            }
        }
    }

    fn is_greedy(&self) -> bool {
        self.params.temperature == 0.0 || self.params.top_k == 1
    }

    fn changes_logits(&self) -> bool {
        self.params.changes_logits() || self.late_ends.forbids() || self.constrained.is_some()
    }

    /// Takes a token that a device has found to be the most likely one.
    pub fn take(&mut self, id: u32, logprob: f32) -> Sampled {
        self.remember(id);
        Sampled { id, logprob, top: Vec::new(), finish: None }
    }

    /// Whether the drafted token of the next position is to be accepted, whatever the logits say; `None` if they decide.
    pub fn draws_acceptance(&mut self) -> Option<bool> {
        self.acceptance.as_mut().map(Acceptance::draw)
    }

    /// Chooses the next token from `logits` `[vocab]`.
    ///
    /// # Errors
    /// When every logit is NaN, every token is forbidden, or the constraint cannot go on.
    pub fn sample(&mut self, logits: &[f32]) -> Result<Sampled, SampleError> {
        let id = if self.changes_logits() {
            let mask = self.mask()?;
            let mut changed = std::mem::take(&mut self.changed);
            changed.clear();
            changed.extend_from_slice(logits);
            self.change(mask.as_ref(), &mut changed);
            let id = self.choose(&changed);
            self.changed = changed;
            id.ok_or(match mask {
                Some(_) => SampleError::NoAllowedToken,
                None => SampleError::NoToken,
            })?
        } else {
            self.choose(logits).ok_or(SampleError::NoToken)?
        };
        self.remember(id);
        let finish = self.advance(id)?;
        let logprob = logprob(logits, id);
        let top = self.candidates.top(logits, self.top_logprobs, TokenLogprob { id, logprob });
        Ok(Sampled { id, logprob, top, finish })
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

    fn change(&self, mask: Option<&TokenMask>, logits: &mut [f32]) {
        if let Some(mask) = mask {
            mask.apply(logits);
        }
        for (id, bias) in &self.params.logit_bias {
            if let Some(logit) = logits.get_mut(*id as usize) {
                *logit += bias;
            }
        }
        let must_end = mask.is_some_and(|mask| mask.is_within(&self.late_ends.ids));
        if self.late_ends.forbids() && !must_end {
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

//! Learned ranks: requests with the shortest expected answers first.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::candidate::{Candidate, End};
use super::entry::PolicyEntry;
use super::prefix::PrefixView;
use super::queue_policy::QueuePolicy;
use super::rank::Rank;
use crate::sequence::SequenceId;

/// Scores requests by the length of their answers.
pub trait Scorer: Send + Sync + fmt::Debug {
    /// Looks at a request; `prompt` has its tokens.
    fn score(&self, request: &Candidate<'_>, prompt: &[u32]) -> Scored;

    /// A request has finished with so many tokens.
    fn learn(&mut self, seen: &Scored, tokens: usize);

    /// A copy, for another engine.
    fn copy(&self) -> Box<dyn Scorer>;
}

/// What a scorer saw of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The greater, the longer the answer is expected to be.
    pub score: f64,
    /// Places of its features that are 1; those of a scorer that has none are empty.
    pub features: Vec<usize>,
}

/// Learning to rank, as in vLLM-LTR (Fu et al., 2024): the request with the shortest expected answer goes first. A scorer
/// predicts the order of answers, which is easier than their lengths. A request that has waited for `starvation`
/// goes before all others, in order of arrival.
#[derive(Debug)]
pub struct Learned {
    /// Time of waiting after which a request goes first.
    pub starvation: Duration,
    scorer: Box<dyn Scorer>,
    scored: foldhash::HashMap<SequenceId, Scored>,
    /// Scores and lengths of finished requests, for Kendall's τ.
    finished: VecDeque<(f64, usize)>,
}

/// Finished requests that Kendall's τ is computed of.
const FINISHED: usize = 256;

impl Learned {
    /// With a scorer of one's own.
    pub fn new(scorer: Box<dyn Scorer>, starvation: Duration) -> Learned {
        let (scored, finished) = (foldhash::HashMap::default(), VecDeque::new());
        Learned { starvation, scorer, scored, finished }
    }

    /// Kendall's τ-a between the scores and the lengths of finished requests: 1 if their orders agree, 0 if they are
    /// unrelated; `None` before two have finished.
    pub fn kendall_tau(&self) -> Option<f64> {
        let count = self.finished.len();
        let pairs = (count * count.saturating_sub(1) / 2) as f64;
        let mut sum = 0.0;
        for (at, one) in self.finished.iter().enumerate() {
            for other in self.finished.iter().skip(at + 1) {
                let lengths = one.1.cmp(&other.1) as i8;
                let scores = one.0.total_cmp(&other.0) as i8;
                sum += f64::from(lengths * scores);
            }
        }
        (pairs > 0.0).then(|| sum / pairs)
    }
}

impl Clone for Learned {
    fn clone(&self) -> Learned {
        Learned::new(self.scorer.copy(), self.starvation)
    }
}

impl Default for Learned {
    fn default() -> Learned {
        Learned::new(Box::<OnlineRanker>::default(), Duration::from_secs(60))
    }
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "learned",
    "the shortest expected answer first, learned from answers that have ended",
    &[Parameter::new(
        "starvation",
        "seconds of waiting after which a request goes first",
        60.0,
        0.001..=1e6,
    )],
    |p| Box::new(Learned::new(Box::<OnlineRanker>::default(), p.seconds("starvation"))),
);

impl QueuePolicy for Learned {
    fn name(&self) -> &str {
        "learned"
    }

    fn survey(&mut self, waiting: &[Candidate<'_>], prefixes: &dyn PrefixView, _now: Nanos) {
        for request in waiting {
            let Learned { scorer, scored, .. } = self;
            scored
                .entry(request.sequence)
                .or_insert_with(|| scorer.score(request, prefixes.tokens(request.sequence)));
        }
    }

    fn rank(&self, request: &Candidate<'_>, _prefixes: &dyn PrefixView, now: Nanos) -> Rank {
        let starving = now.since(request.submitted) >= self.starvation && !request.running;
        let score = self.scored.get(&request.sequence).map_or(0.0, |scored| scored.score);
        if starving { Rank::by(f64::NEG_INFINITY) } else { Rank::by(score) }
    }

    fn finish(&mut self, request: &Candidate<'_>, end: End, _now: Nanos) {
        let Some(scored) = self.scored.remove(&request.sequence) else { return };
        if end == End::Completed {
            self.scorer.learn(&scored, request.generated_tokens);
            self.finished.push_back((scored.score, request.generated_tokens));
            if self.finished.len() > FINISHED {
                self.finished.pop_front();
            }
        }
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        self.kendall_tau().into_iter().map(|tau| ("Kendall τ".to_owned(), tau)).collect()
    }
}

/// Number of weights of the ranker.
const WEIGHTS: usize = 1 << 12;
/// Last tokens of a prompt that are features.
const LAST_TOKENS: usize = 32;
/// Finished requests that each new one is compared with.
const COMPARED: usize = 32;

/// A linear ranker that learns from the requests that finish: of each pair, the one with the longer answer should have
/// the greater score (logistic loss, as RankNet of Burges et al., 2005). Its features are the client, the length of
/// the prompt, the most tokens that are asked for, and the last tokens of the prompt alone and in pairs, hashed.
#[derive(Clone, Debug)]
pub struct OnlineRanker {
    /// Step of a gradient descent.
    pub rate: f64,
    weights: Vec<f64>,
    seen: VecDeque<(Vec<usize>, usize)>,
}

impl Default for OnlineRanker {
    fn default() -> OnlineRanker {
        OnlineRanker { rate: 0.05, weights: vec![0.0; WEIGHTS], seen: VecDeque::new() }
    }
}

/// Places of the features of a request.
fn features(request: &Candidate<'_>, prompt: &[u32]) -> Vec<usize> {
    let place = |feature: (u8, u64, u64)| {
        let mut hasher = DefaultHasher::new();
        feature.hash(&mut hasher);
        hasher.finish() as usize % WEIGHTS
    };
    let mut client = DefaultHasher::new();
    request.client.hash(&mut client);
    let bits = |number: usize| u64::from(number.max(1).ilog2());
    let mut places = vec![
        place((0, client.finish(), 0)),
        place((1, bits(request.prompt_tokens), 0)),
        place((2, bits(request.tokens_max), 0)),
    ];
    let last = &prompt[prompt.len().saturating_sub(LAST_TOKENS)..];
    places.extend(last.iter().map(|token| place((3, u64::from(*token), 0))));
    let pairs = last.windows(2).map(|pair| (4, u64::from(pair[0]), u64::from(pair[1])));
    places.extend(pairs.map(place));
    places.sort_unstable();
    places.dedup();
    places
}

impl OnlineRanker {
    fn sum(&self, features: &[usize]) -> f64 {
        let sum: f64 = features.iter().map(|place| self.weights[*place]).sum();
        sum / (features.len().max(1) as f64).sqrt()
    }
}

impl Scorer for OnlineRanker {
    fn score(&self, request: &Candidate<'_>, prompt: &[u32]) -> Scored {
        let features = features(request, prompt);
        Scored { score: self.sum(&features), features }
    }

    fn learn(&mut self, seen: &Scored, tokens: usize) {
        let compared = std::mem::take(&mut self.seen);
        for (other, length) in compared.iter().filter(|(_, length)| *length != tokens) {
            let longer = if tokens > *length { 1.0 } else { -1.0 };
            let margin = longer * (self.sum(&seen.features) - self.sum(other));
            let step = self.rate * longer / (1.0 + margin.exp());
            seen.features.iter().for_each(|place| self.weights[*place] += step);
            other.iter().for_each(|place| self.weights[*place] -= step);
        }
        self.seen = compared;
        self.seen.push_back((seen.features.clone(), tokens));
        if self.seen.len() > COMPARED {
            self.seen.pop_front();
        }
    }

    fn copy(&self) -> Box<dyn Scorer> {
        Box::new(self.clone())
    }
}

/// Knows the length of each answer: the most tokens that a request asks for. For tests, and for workloads whose answers
/// have a fixed length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oracle;

impl Scorer for Oracle {
    fn score(&self, request: &Candidate<'_>, _prompt: &[u32]) -> Scored {
        Scored { score: request.tokens_max as f64, features: Vec::new() }
    }

    fn learn(&mut self, _seen: &Scored, _tokens: usize) {}

    fn copy(&self) -> Box<dyn Scorer> {
        Box::new(*self)
    }
}

//! Preble's global scheduler.

use std::collections::VecDeque;

use foldhash::HashMap;
use lapwing_plan::registry::Parameter;
use lapwing_traces::Nanos;

use super::blocks::{BLOCK_TOKENS, blocks};
use super::entry::RouteEntry;
use super::route_policy::{Incoming, RoutePolicy, SentRequest};
use super::tree::{BlockTree, Step, WINDOW};
use super::worker::WorkerId;
use super::workers::Workers;

mod costs;
mod loads;
mod rebalance;

use costs::Costs;
use loads::{Loads, Spent, nanos};
use rebalance::Rebalance;

/// E2 of Preble (Srivatsa et al., 2024): exploit or explore. If more of a prompt is cached somewhere than is missing, the request goes
/// to the cheapest of the workers that have the most of it, or to the one with the least load if this one has the most load and
/// more than `balance` times as much. Otherwise it goes to a worker that decodes more than `decode` times as much as it prefills, if
/// its load is within `balance` of the least, or else to the cheapest of all workers. The cost of a worker, in seconds, is L + M + P:
/// its load, what must be computed again of what it would evict, and the prompt's missing tokens.
///
/// - L is the prefill time of what it was sent in the last three minutes and did not have, and the decode time of its requests: the
///   mean answer to their prefixes so far times the median of its last 200 times per token.
/// - M is over the nodes that it would evict, the least recently used first: prefill time of the node times the share of the latest
///   prompts that have it. Nodes that are shorter than what is before them count nothing.
/// - If the time to first token of a prefix at a worker doubles within three minutes, the worker gives its cheapest prefixes to the
///   one with the least load until they would change places, or, if it has this one only, the prefix is computed there, too.
///
/// Prefixes that no prompt had for three minutes are forgotten. Workers are to order their queues by the policy `preble`.
#[derive(Debug)]
pub struct PrebleE2 {
    balance: f64,
    decode: f64,
    tree: Option<BlockTree>,
    cached: Vec<usize>,
    loads: Loads,
    rebalance: Rebalance,
    /// Sum and number of the answers to a prefix, in tokens.
    answers: HashMap<u64, (f64, f64)>,
    requests: HashMap<u64, Active>,
    /// What was sent in the last three minutes.
    sent: VecDeque<SentPrompt>,
    /// How many requests each of the rules has decided on.
    decided: [u64; 4],
}

/// A request that has not ended.
#[derive(Clone, Copy, Debug)]
struct Active {
    prefix: u64,
    decode: u64,
}

/// The last node of a prompt.
#[derive(Clone, Copy, Debug)]
struct SentPrompt {
    at: Nanos,
    step: Step,
    worker: WorkerId,
}

/// Why a request goes where it goes.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Exploit,
    Balance,
    Decode,
    Explore,
}

impl PrebleE2 {
    /// With the ratios of loads, and of decoding to prefill, from which on it balances.
    pub fn new(balance: f64, decode: f64) -> PrebleE2 {
        PrebleE2 {
            balance,
            decode,
            tree: None,
            cached: Vec::new(),
            loads: Loads::default(),
            rebalance: Rebalance::default(),
            answers: HashMap::default(),
            requests: HashMap::default(),
            sent: VecDeque::new(),
            decided: [0; 4],
        }
    }

    /// Forgets what was sent more than three minutes ago.
    fn expire(&mut self, now: Nanos) {
        let before = Nanos(now.0.saturating_sub(WINDOW.as_nanos() as u64));
        self.loads.expire(before);
        let Some(tree) = &mut self.tree else { return };
        while let Some(SentPrompt { step, worker, .. }) =
            self.sent.front().copied().filter(|sent| sent.at < before)
        {
            self.sent.pop_front();
            self.rebalance.expire(step.stamp, worker, before);
            if !tree.is_used_since(&step, before) {
                tree.expire(&step, before);
                self.answers.remove(&step.stamp);
            }
        }
    }

    /// The worker for a prompt with this way down the tree, which belongs to `prefix`.
    fn choose(&mut self, way: &[Step], prefix: Option<u64>, asked: &Asked<'_>) -> (WorkerId, Rule) {
        let Asked { workers, tokens, now } = *asked;
        let tree = self.tree.get_or_insert_with(|| BlockTree::new(workers.count()));
        let most = way.last().map_or(0, |step| step.end * BLOCK_TOKENS);
        let last = way.last().filter(|_| most > tokens.saturating_sub(most));
        if let Some(found) = last.and(prefix).and_then(|prefix| self.rebalance.take(prefix)) {
            let given = way.iter().find(|step| Some(step.stamp) == prefix);
            if let (Some(from), Some(step)) = (found.from, given) {
                tree.drop_node(from, step);
            }
            return (found.to, Rule::Balance);
        }
        let (tree, cached, loads) = (&*tree, &self.cached, &self.loads);
        let costs = Costs { tree, loads, cached, workers, tokens, now };
        let (least, most) = loads.extremes();
        let limit = self.balance * loads.seconds(least);
        if let Some(step) = last {
            let holders = tree.workers(step).iter().map(|held| held.worker);
            let cheapest = costs.cheapest(holders).unwrap_or(least);
            return match cheapest == most && loads.seconds(most) > limit {
                true => (least, Rule::Balance),
                false => (cheapest, Rule::Exploit),
            };
        }
        let ratio = |worker| (loads.decode_ratio(worker), worker);
        let decodes = |(ratio, worker): &(f64, WorkerId)| {
            *ratio > self.decode && loads.seconds(*worker) <= limit
        };
        let decoding = workers.ids().map(ratio).filter(decodes);
        match decoding.max_by(|one, other| one.0.total_cmp(&other.0)) {
            Some((_, worker)) => (worker, Rule::Decode),
            None => (costs.cheapest(workers.ids()).unwrap_or(least), Rule::Explore),
        }
    }
}

/// What a decision is about.
#[derive(Clone, Copy)]
struct Asked<'a> {
    workers: &'a Workers,
    tokens: usize,
    now: Nanos,
}

/// The deepest node on a way that is longer than what is before it.
fn large(way: &[Step]) -> Option<u64> {
    let large = way.iter().rev().find(|step| step.end - step.start > step.start);
    large.map(|step| step.stamp)
}

impl Default for PrebleE2 {
    /// The published thresholds.
    fn default() -> PrebleE2 {
        PrebleE2::new(2.0, 1.5)
    }
}

pub(super) const ENTRY: RouteEntry = RouteEntry::new(
    "preble",
    "Preble's E2: where the prompt is cached if more of it is than is not, else the least cost",
    &[
        Parameter::new("balance", "ratio of loads from which on it balances", 2.0, 1.0..=1e9),
        Parameter::new("decode", "ratio of decoding to prefill that attracts", 1.5, 0.0..=1e9),
    ],
    |p| Box::new(PrebleE2::new(p.value("balance"), p.value("decode"))),
);

impl RoutePolicy for PrebleE2 {
    fn name(&self) -> &str {
        "preble"
    }

    fn route(&mut self, request: &Incoming<'_>, workers: &Workers, now: Nanos) -> WorkerId {
        self.expire(now);
        self.loads.resize(workers.count());
        self.cached.resize(workers.count(), 0);
        self.rebalance.plan(&self.loads);
        let blocks = blocks(request.ids);
        let tree = self.tree.get_or_insert_with(|| BlockTree::new(workers.count()));
        let way = tree.way(&blocks);
        tree.cached(&way, &mut self.cached);
        let prefix = large(&way);
        let asked = Asked { workers, tokens: request.ids.len(), now };
        let (worker, rule) = self.choose(&way, prefix, &asked);
        self.decided[rule as usize] += 1;
        let inserted = self.tree.as_mut().and_then(|tree| tree.insert(worker, &blocks, now));
        let prefix = prefix.or(inserted.map(|step| step.stamp)).unwrap_or_default();
        self.sent.extend(inserted.map(|step| SentPrompt { at: now, step, worker }));
        let cached = self.cached[worker.index()] * BLOCK_TOKENS;
        let missing = request.ids.len().saturating_sub(cached);
        let prefill = nanos(workers.spec(worker).prefill_seconds(missing, cached));
        self.loads.spend(Spent { at: now, worker, prefix, prefill });
        let answers = self.answers.get(&prefix);
        let tokens = answers.map_or(request.tokens_max as f64, |(sum, count)| sum / count);
        let decode = nanos(tokens * self.loads.time_per_token(worker));
        self.loads.begin(worker, decode);
        self.requests.insert(request.number, Active { prefix, decode });
        worker
    }

    fn first_token(&mut self, request: &SentRequest<'_>, now: Nanos) {
        if let Some(active) = self.requests.get(&request.number) {
            let waited = now.since(request.sent).as_secs_f64();
            self.rebalance.on_first_token((active.prefix, request.worker), now, waited);
        }
    }

    fn finish(&mut self, request: &SentRequest<'_>, now: Nanos) {
        let Some(Active { prefix, decode }) = self.requests.remove(&request.number) else { return };
        self.loads.end(request.worker, decode);
        let Some(first) = request.first_token else { return };
        let answers = self.answers.entry(prefix).or_default();
        answers.0 += request.generated_tokens as f64;
        answers.1 += 1.0;
        if request.generated_tokens > 1 {
            let later = (request.generated_tokens - 1) as f64;
            self.loads.on_time_per_token(request.worker, now.since(first).as_secs_f64() / later);
        }
    }

    fn cached(&mut self, worker: WorkerId, text: &[u32], workers: &Workers, now: Nanos) {
        let tree = self.tree.get_or_insert_with(|| BlockTree::new(workers.count()));
        let learned = tree.learn(worker, &blocks(text), now);
        self.sent.extend(learned.map(|step| SentPrompt { at: now, step, worker }));
    }

    fn hears_evictions(&self) -> bool {
        true
    }

    fn evicted(&mut self, worker: WorkerId, text: &[u32], kept: usize) {
        if let Some(tree) = &mut self.tree {
            tree.forget(worker, &blocks(text), kept / BLOCK_TOKENS);
        }
    }

    fn numbers(&self) -> Vec<(String, f64)> {
        let names = ["exploited", "balanced", "for decoding", "explored"];
        names.iter().zip(self.decided).map(|(name, n)| ((*name).to_owned(), n as f64)).collect()
    }
}

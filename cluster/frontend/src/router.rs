//! A routing policy with what it is told of a live cluster.

use lapwing_engine::policy::{ChoiceError, ClientId};
use lapwing_engine::routing::{
    Incoming, Nanos, RouteChoice, RoutePolicy, SentRequest, WorkerId, Workers,
};

use crate::workers::specs;

#[cfg(test)]
mod tests;

/// A policy and the workers that it knows. It has no clock of its own, and times never go back.
///
/// Each request that arrives brings the workers with what Dynamo's index of their caches says of its prompt. When workers come or go, the
/// policy begins anew: what is cached it learns from the index again, and credit and past load are forgotten.
#[derive(Debug)]
pub struct Router {
    choice: RouteChoice,
    table: Option<Table>,
    /// Policies begun so far.
    begun: u64,
    /// Requests so far.
    requests: u64,
}

struct Table {
    members: Vec<Member>,
    workers: Workers,
    policy: Box<dyn RoutePolicy>,
}

/// A worker of the cluster, and what it has of a prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Its number in Dynamo.
    pub instance: u64,
    /// Prompt tokens that it computes in a second, if it announces that.
    pub prompt_rate: Option<f64>,
    /// Tokens that its KV cache holds.
    pub kv_tokens: usize,
    /// Tokens of the prompt that its prefix cache has.
    pub cached: usize,
}

/// A request that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Token ids of its prompt.
    pub ids: &'a [u32],
    /// Client that sent it.
    pub client: &'a ClientId,
    /// Most tokens that it may generate.
    pub tokens_max: usize,
    /// Workers that have failed it already, or have no room.
    pub avoided: &'a [u64],
}

/// A request that was sent to a worker.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The worker's number in Dynamo.
    pub instance: u64,
    worker: WorkerId,
    number: u64,
    client: ClientId,
    prompt_tokens: usize,
    at: Nanos,
    first: Option<Nanos>,
    /// Number of the policy that has chosen, and whether it was asked for this worker.
    policy: u64,
    is_chosen: bool,
}

impl Router {
    /// A router without workers.
    pub fn new(choice: RouteChoice) -> Router {
        Router { choice, table: None, begun: 0, requests: 0 }
    }

    /// The worker of a request that arrives, of these; `None` if there is none. In place of a worker that is to be avoided it is the
    /// one of the others with the fewest requests in flight, if there is one.
    ///
    /// # Errors
    /// When there is no such policy.
    pub fn route(
        &mut self,
        ask: Ask<'_>,
        members: &[Member],
        now: Nanos,
    ) -> Result<Option<Sent>, ChoiceError> {
        if members.is_empty() {
            return Ok(None);
        }
        self.meet(members)?;
        let Some(table) = &mut self.table else { return Ok(None) };
        table.learn(ask.ids, members, now);
        self.requests += 1;
        let Ask { ids, client, tokens_max, avoided } = ask;
        let incoming = Incoming { number: self.requests, client, ids, tokens_max };
        let chosen = table.policy.route(&incoming, &table.workers, now);
        let is_avoided = |worker: WorkerId| avoided.contains(&members[worker.index()].instance);
        let other = || table.workers.by_load().find(|worker| !is_avoided(*worker));
        let worker = if is_avoided(chosen) { other() } else { None }.unwrap_or(chosen);
        let mut sent = Sent {
            instance: members[chosen.index()].instance,
            worker: chosen,
            number: self.requests,
            client: client.clone(),
            prompt_tokens: ids.len(),
            at: now,
            first: None,
            policy: self.begun,
            is_chosen: true,
        };
        if worker != chosen {
            table.policy.finish(&sent.as_sent(0), now);
            (sent.worker, sent.instance) = (worker, members[worker.index()].instance);
            sent.is_chosen = false;
        }
        table.workers.on_sent(worker, ids.len());
        Ok(Some(sent))
    }

    /// A request has had its first token.
    pub fn first_token(&mut self, sent: &mut Sent, now: Nanos) {
        sent.first = Some(now);
        let Some(table) = self.of(sent) else { return };
        table.workers.on_first_token(sent.worker, sent.prompt_tokens);
        if sent.is_chosen {
            table.policy.first_token(&sent.as_sent(1), now);
        }
    }

    /// A request has left its worker with so many tokens.
    pub fn finish(&mut self, sent: &Sent, tokens: usize, now: Nanos) {
        let Some(table) = self.of(sent) else { return };
        table.workers.on_end(sent.worker, sent.prompt_tokens, sent.first.is_some());
        if sent.is_chosen {
            table.policy.finish(&sent.as_sent(tokens), now);
        }
    }

    /// The policy's numbers.
    pub fn numbers(&self) -> Vec<(String, f64)> {
        self.table.as_ref().map(|table| table.policy.numbers()).unwrap_or_default()
    }

    /// The table of a request, unless workers have come or gone since.
    fn of(&mut self, sent: &Sent) -> Option<&mut Table> {
        self.table.as_mut().filter(|_| sent.policy == self.begun)
    }

    /// Begins anew if the workers are others than before.
    fn meet(&mut self, members: &[Member]) -> Result<(), ChoiceError> {
        let apart = |member: &Member| Member { cached: 0, ..*member };
        let members: Vec<Member> = members.iter().map(apart).collect();
        if self.table.as_ref().is_some_and(|table| table.members == members) {
            return Ok(());
        }
        let workers = Workers::new(specs(&members));
        self.table = Some(Table { members, workers, policy: self.choice.make()? });
        self.begun += 1;
        Ok(())
    }
}

impl Table {
    /// Tells the policy what the index of caches says of a prompt.
    fn learn(&mut self, ids: &[u32], members: &[Member], now: Nanos) {
        if !self.policy.hears_evictions() {
            return;
        }
        for (worker, member) in self.workers.ids().zip(members) {
            let cached = member.cached.min(ids.len());
            if cached > 0 {
                self.policy.cached(worker, &ids[..cached], &self.workers, now);
            }
            // What a worker computes at present is not in the index yet.
            if self.workers.load(worker).waiting == 0 {
                self.policy.evicted(worker, ids, cached);
            }
        }
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let policy = self.policy.name();
        f.debug_struct("Table").field("policy", &policy).field("members", &self.members).finish()
    }
}

impl Sent {
    fn as_sent(&self, tokens: usize) -> SentRequest<'_> {
        SentRequest {
            number: self.number,
            client: &self.client,
            worker: self.worker,
            prompt_tokens: self.prompt_tokens,
            generated_tokens: tokens,
            sent: self.at,
            first_token: self.first,
        }
    }
}

//! The step before Dynamo's router, in which a policy chooses the worker.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dynamo_kv_router::scheduling::KvSchedulerError;
use dynamo_llm::discovery::RuntimeConfigWatch;
use dynamo_llm::kv_router::{KvRouter, RoutingHost};
use dynamo_llm::protocols::common::llm_backend::{LLMEngineOutput, PreprocessedRequest};
use dynamo_llm::types::Annotated;
use dynamo_runtime::error::{DynamoError, ErrorType};
use dynamo_runtime::pipeline::{
    AsyncEngine, AsyncEngineContextProvider, Error, ManyOut, ResponseStream, SingleIn,
};
use dynamo_runtime::protocols::maybe_error::MaybeError;
use futures::StreamExt;
use lapwing_engine::policy::ClientId;
use lapwing_traces::{Clock, Nanos, OsClock};

use crate::failed::Failed;
use crate::router::{Ask, Member, Router, Sent};
use crate::workers::member;

/// Tokens of an answer to a request that names no number.
const TOKENS: usize = 512;

/// What an answer has.
type Item = Annotated<LLMEngineOutput>;

/// An engine of token ids: a policy chooses the worker, and Dynamo's router sends the request there, counts it, and follows its answer.
pub(crate) struct Routed {
    pub(crate) host: RoutingHost,
    /// Knows the caches of all workers by their KV events.
    pub(crate) index: Arc<KvRouter>,
    pub(crate) workers: RuntimeConfigWatch,
    pub(crate) state: Arc<State>,
}

/// What all requests share.
pub(crate) struct State {
    router: Mutex<Router>,
    failed: Mutex<Failed>,
    clock: OsClock,
}

impl State {
    /// The state of a router that was sent nothing.
    pub(crate) fn new(router: Router) -> State {
        let (router, failed) = (Mutex::new(router), Mutex::default());
        State { router, failed, clock: OsClock::start() }
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn router(&self) -> MutexGuard<'_, Router> {
        self.router.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, Failed> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request at a worker. It leaves it when this is dropped.
struct InFlight {
    state: Arc<State>,
    sent: Sent,
    request: String,
    tokens: usize,
}

impl InFlight {
    fn see(&mut self, item: &Item) {
        let tokens = item.data.as_ref().map_or(0, |data| data.token_ids.len());
        if self.tokens == 0 && tokens > 0 {
            let mut router = self.state.router();
            router.first_token(&mut self.sent, self.state.now());
        }
        self.tokens += tokens;
        if item.err().is_some() {
            self.fail();
        } else if item.data.as_ref().is_some_and(|data| data.finish_reason.is_some()) {
            self.state.failed().forget(&self.request);
        }
    }

    /// The worker has failed the request, which may go on elsewhere.
    fn fail(&self) {
        let now = self.state.now();
        self.state.failed().note(&self.request, self.sent.instance, now);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut router = self.state.router();
        router.finish(&self.sent, self.tokens, self.state.now());
    }
}

/// The error of a request for whose worker Dynamo's router has no connection: it was lost after it was chosen, or has just come. The
/// router's own error is no reason to try again, but the loss of a worker is.
fn as_lost(instance: u64, error: Error) -> Error {
    let is_unknown = error.chain().any(|cause| {
        matches!(cause.downcast_ref::<KvSchedulerError>(), Some(KvSchedulerError::NoEndpoints))
    });
    if !is_unknown {
        return error;
    }
    let lost = DynamoError::builder().error_type(ErrorType::WorkerUnavailable);
    lost.message(format!("the worker {instance} cannot be reached: {error}")).build().into()
}

impl Routed {
    /// The workers that may have a request and are not lost, in the order of their numbers, with what they have of its prompt.
    async fn members(&self, request: &PreprocessedRequest) -> Result<Vec<Member>, Error> {
        let routing = request.routing.as_ref();
        let lora = routing.and_then(|routing| routing.lora_name.as_deref());
        let space = routing.and_then(|routing| routing.cache_namespace.as_deref());
        let allowed = routing.and_then(|routing| routing.allowed_worker_ids.as_ref());
        let known =
            self.index.get_overlap_scores(&request.token_ids, None, lora, space, false).await?;
        let block = known.block_size as usize;
        let (workers, up) = (self.workers.borrow(), self.index.client().available_instance_ids());
        let is_allowed = |instance: &u64| {
            allowed.is_none_or(|allowed| allowed.contains(instance))
                && up.as_ref().is_none_or(|up| up.contains(instance))
        };
        let all = workers.iter().filter(|entry| is_allowed(entry.0));
        let mut members: Vec<Member> = all
            .map(|entry| {
                let of = known.workers.iter().filter(|worker| worker.worker_id == *entry.0);
                let blocks = of.map(|worker| worker.device_blocks).max().unwrap_or(0);
                Member { cached: blocks * block, ..member(*entry.0, entry.1, block) }
            })
            .collect();
        members.sort_by_key(|member| member.instance);
        Ok(members)
    }

    /// Chooses the worker of a request; none if there is none, or the client has chosen.
    async fn choose(
        &self,
        request: &SingleIn<PreprocessedRequest>,
    ) -> Result<Option<InFlight>, Error> {
        let routing = request.routing.as_ref();
        if routing.is_some_and(|it| it.backend_instance_id.or(it.decode_worker_id).is_some()) {
            return Ok(None);
        }
        let members = self.members(request).await?;
        let client = request.metadata().get("client");
        let client = client.map_or_else(ClientId::anonymous, |name| name.as_str().into());
        let id = request.context().id().to_owned();
        let mut avoided = self.state.failed().of(&id);
        avoided.extend(self.index.client().overloaded_instance_ids().into_iter().flatten());
        let tokens_max = request.stop_conditions.max_tokens.map_or(TOKENS, |most| most as usize);
        let ask = Ask { ids: &request.token_ids, client: &client, tokens_max, avoided: &avoided };
        let sent = {
            let mut router = self.state.router();
            router.route(ask, &members, self.state.now())?
        };
        let state = Arc::clone(&self.state);
        Ok(sent.map(|sent| InFlight { state, sent, request: id, tokens: 0 }))
    }
}

#[async_trait]
impl AsyncEngine<SingleIn<PreprocessedRequest>, ManyOut<Item>, Error> for Routed {
    async fn generate(
        &self,
        mut request: SingleIn<PreprocessedRequest>,
    ) -> Result<ManyOut<Item>, Error> {
        let Some(mut at_worker) = self.choose(&request).await? else {
            return self.host.generate(request).await;
        };
        let only = HashSet::from([at_worker.sent.instance]);
        request.routing.get_or_insert_default().allowed_worker_ids = Some(only);
        let items = match self.host.generate(request).await {
            Ok(items) => items,
            Err(error) => {
                at_worker.fail();
                return Err(as_lost(at_worker.sent.instance, error));
            }
        };
        let context = items.context();
        let items = items.map(move |item| {
            at_worker.see(&item);
            item
        });
        Ok(ResponseStream::new(Box::pin(items), context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_the_router_does_not_know_is_lost_and_other_errors_stay() {
        let lost = as_lost(7, KvSchedulerError::NoEndpoints.into());
        let error = lost.downcast_ref::<DynamoError>().expect("an error of Dynamo");
        assert_eq!(error.reason().as_str(), "backend.worker_unavailable");
        assert!(error.message().contains("worker 7"), "{error}");
        let other = as_lost(7, KvSchedulerError::AllEligibleWorkersOverloaded.into());
        assert!(other.downcast_ref::<DynamoError>().is_none(), "{other}");
    }
}

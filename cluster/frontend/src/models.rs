//! Engines of the models that workers announce.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dynamo_kv_router::KvRouterConfig;
use dynamo_llm::backend::Backend;
use dynamo_llm::discovery::{ModelManager, WORKER_TYPE_DECODE, runtime_config_watch};
use dynamo_llm::entrypoint::ChatEngineFactoryCallback;
use dynamo_llm::http::service::metrics::Metrics;
use dynamo_llm::kv_router::RoutingHost;
use dynamo_llm::migration::Migration;
use dynamo_llm::model_card::ModelDeploymentCard;
use dynamo_llm::preprocessor::OpenAIPreprocessor;
use dynamo_llm::protocols::common::llm_backend::{
    BackendOutput, LLMEngineOutput, PreprocessedRequest,
};
use dynamo_llm::types::Annotated;
use dynamo_llm::types::openai::chat_completions::OpenAIChatCompletionsStreamingEngine;
use dynamo_llm::types::openai::completions::OpenAICompletionsStreamingEngine;
use dynamo_runtime::DistributedRuntime;
use dynamo_runtime::discovery::ModelCardInstanceId;
use dynamo_runtime::pipeline::{
    Data, Error, ManyOut, Operator, PipelineOperator, PushRouter, RouterMode, SegmentSource,
    ServiceBackend, ServiceEngine, SingleIn, Source,
};
use lapwing_engine::routing::RouteChoice;

use crate::routed::{Routed, State};
use crate::router::Router;

/// Texts of an answer as they come.
type Texts = ManyOut<Annotated<BackendOutput>>;

/// What turns a request of this kind into token ids, and texts into its answer.
type Stages<Ask, Answer> = PipelineOperator<
    SingleIn<Ask>,
    ManyOut<Annotated<Answer>>,
    SingleIn<PreprocessedRequest>,
    Texts,
>;

/// An engine that is being made.
type Making =
    Pin<Box<dyn Future<Output = Result<OpenAIChatCompletionsStreamingEngine, Error>> + Send>>;

/// Makes the engines of models, and has those that are made.
pub(crate) struct Models {
    pub(crate) runtime: DistributedRuntime,
    /// Where Dynamo keeps the workers that it has found.
    pub(crate) found: Arc<ModelManager>,
    pub(crate) choice: RouteChoice,
    pub(crate) config: KvRouterConfig,
    pub(crate) migrations: u32,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) made: Mutex<HashMap<String, Engines>>,
}

/// The engines of a model.
#[derive(Clone)]
pub(crate) struct Engines {
    pub(crate) checksum: String,
    pub(crate) chat: OpenAIChatCompletionsStreamingEngine,
    pub(crate) completions: OpenAICompletionsStreamingEngine,
}

impl Models {
    /// The engines that are made, by the names of their models.
    pub(crate) fn made(&self) -> MutexGuard<'_, HashMap<String, Engines>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What Dynamo calls when it has found the first worker of a model.
    pub(crate) fn factory(self: Arc<Models>) -> ChatEngineFactoryCallback {
        Arc::new(move |worker, card: ModelDeploymentCard, _| -> Making {
            let models = Arc::clone(&self);
            Box::pin(async move {
                let engines = models.engines(worker, &card).await?;
                let chat = Arc::clone(&engines.chat);
                models.made().insert(card.name().to_owned(), engines);
                Ok(chat)
            })
        })
    }

    async fn engines(
        &self,
        worker: ModelCardInstanceId,
        card: &ModelDeploymentCard,
    ) -> Result<Engines, Error> {
        let routed: ServiceEngine<_, _> = Arc::new(self.routed(worker, card).await?);
        let preprocessor = OpenAIPreprocessor::new(card.clone())?;
        Ok(Engines {
            checksum: card.mdcsum().to_owned(),
            chat: self.pipeline(card, preprocessor.into_operator(), Arc::clone(&routed))?,
            completions: self.pipeline(card, preprocessor.into_operator(), routed)?,
        })
    }

    /// The policy before a router of Dynamo's.
    async fn routed(
        &self,
        worker: ModelCardInstanceId,
        card: &ModelDeploymentCard,
    ) -> Result<Routed, Error> {
        let component = self.runtime.namespace(&worker.namespace)?.component(&worker.component)?;
        let endpoint = component.endpoint(&worker.endpoint);
        let index = self
            .found
            .kv_chooser_for_with_worker_role(
                &endpoint,
                card.kv_cache_block_size,
                Some(self.config.clone()),
                None,
                card.worker_type,
                WORKER_TYPE_DECODE,
                Some(card.name().to_owned()),
                card.runtime_config.enable_eagle,
            )
            .await?;
        let sender = PushRouter::from_client(index.client().clone(), RouterMode::KV).await?;
        let token = self.runtime.child_token();
        Ok(Routed {
            host: RoutingHost::new(sender, Arc::clone(&index), None)?,
            workers: runtime_config_watch(&endpoint, token).await?,
            state: Arc::new(State::new(Router::new(self.choice.clone()))),
            index,
        })
    }

    /// Text to token ids, answers that go on when a worker is lost, and ids to text.
    fn pipeline<Ask: Data, Answer: Data>(
        &self,
        card: &ModelDeploymentCard,
        preprocessor: Arc<Stages<Ask, Answer>>,
        routed: ServiceEngine<SingleIn<PreprocessedRequest>, ManyOut<Annotated<LLMEngineOutput>>>,
    ) -> Result<ServiceEngine<SingleIn<Ask>, ManyOut<Annotated<Answer>>>, Error> {
        let first = SegmentSource::<SingleIn<Ask>, ManyOut<Annotated<Answer>>>::new();
        let metrics = Arc::clone(&self.metrics);
        let migration = Migration::from_mdc(card, self.migrations, None, metrics);
        let migration: Arc<
            PipelineOperator<
                SingleIn<PreprocessedRequest>,
                Texts,
                SingleIn<PreprocessedRequest>,
                Texts,
            >,
        > = migration.into_operator();
        let texts = Backend::from_mdc(card).into_operator();
        Ok(first
            .link(preprocessor.forward_edge())?
            .link(migration.forward_edge())?
            .link(texts.forward_edge())?
            .link(ServiceBackend::from_engine(routed))?
            .link(texts.backward_edge())?
            .link(migration.backward_edge())?
            .link(preprocessor.backward_edge())?
            .link_terminal(first)?)
    }
}

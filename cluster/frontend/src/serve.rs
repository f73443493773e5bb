//! The server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dynamo_kv_router::KvRouterConfig;
use dynamo_llm::discovery::{ModelManager, ModelUpdate, ModelWatcher};
use dynamo_llm::endpoint_type::EndpointType;
use dynamo_llm::entrypoint::{EngineConfig, HttpFrontend, RouterConfig};
use dynamo_llm::http::service::service_v2::HttpService;
use dynamo_llm::local_model::LocalModelBuilder;
use dynamo_llm::model_card::ModelDeploymentCard;
use dynamo_llm::namespace::NamespaceFilter;
use dynamo_llm::types::openai::chat_completions::OpenAIChatCompletionsStreamingEngine;
use dynamo_runtime::DistributedRuntime;
use dynamo_runtime::discovery::DiscoveryQuery;
use dynamo_runtime::metrics::MetricsHierarchy;
use dynamo_runtime::pipeline::RouterMode;
use lapwing_engine::routing::RouteChoice;
use tokio::sync::mpsc;

use crate::models::{Engines, Models};
use crate::options::{Choice, Options};

/// Updates of models that may wait.
const UPDATES: usize = 32;

/// Time between two looks for models that are gone.
const LOOK: Duration = Duration::from_secs(1);

/// Serves until the runtime ends.
pub(crate) async fn run(
    runtime: DistributedRuntime,
    options: Options,
    choice: Choice,
    config: KvRouterConfig,
) -> anyhow::Result<()> {
    match choice {
        Choice::Dynamo => by_dynamo(runtime, options, config).await,
        Choice::Policy(choice) => by_policy(runtime, options, choice, config).await,
    }
}

/// Dynamo's frontend with Dynamo's router.
async fn by_dynamo(
    runtime: DistributedRuntime,
    options: Options,
    config: KvRouterConfig,
) -> anyhow::Result<()> {
    let model = LocalModelBuilder::default()
        .http_host(Some(options.http_host))
        .http_port(options.http_port)
        .namespace(options.namespace)
        .router_config(Some(RouterConfig::new(RouterMode::KV, config)))
        .migration_limit(Some(options.migration_limit))
        .build()
        .await?;
    let engine = EngineConfig::Dynamic {
        model: Box::new(model),
        chat_engine_factory: None,
        prefill_load_estimator: None,
    };
    HttpFrontend::default().run(runtime, engine).await
}

/// Dynamo's server and search for workers, with engines in which a policy chooses.
async fn by_policy(
    runtime: DistributedRuntime,
    options: Options,
    choice: RouteChoice,
    config: KvRouterConfig,
) -> anyhow::Result<()> {
    let service = HttpService::builder()
        .host(options.http_host)
        .port(options.http_port)
        .cancel_token(Some(runtime.primary_token()))
        .drt_metrics(Some(runtime.get_metrics_registry().clone()))
        .drt_discovery(Some(runtime.discovery()))
        .discovery(Some(runtime.discovery()))
        .runtime(Some(Arc::new(runtime.clone())))
        .build()?;
    let models = Arc::new(Models {
        runtime: runtime.clone(),
        found: Arc::new(ModelManager::new()),
        choice,
        config,
        migrations: options.migration_limit,
        metrics: service.state().metrics_clone(),
        made: Mutex::default(),
    });
    let filter = NamespaceFilter::from_namespace_and_prefix(options.namespace.as_deref(), None);
    watch(&runtime, &models, &service, filter).await?;
    let served = service.run(runtime.primary_token()).await;
    runtime.shutdown();
    served
}

/// Follows the workers that come and go. Dynamo's own engines for what it finds are never asked.
async fn watch(
    runtime: &DistributedRuntime,
    models: &Arc<Models>,
    service: &HttpService,
    filter: NamespaceFilter,
) -> anyhow::Result<()> {
    let mut watcher = ModelWatcher::new(
        runtime.clone(),
        Arc::clone(&models.found),
        RouterConfig::default(),
        0,
        None,
        Some(Arc::clone(models).factory()),
        None,
        Arc::clone(&models.metrics),
    );
    let (sender, mut updates) = mpsc::channel(UPDATES);
    watcher.set_notify_on_model_update(sender);
    let query = DiscoveryQuery::AllModels;
    let found = runtime.discovery().list_and_watch(query, Some(runtime.primary_token())).await?;
    tokio::spawn(Arc::new(watcher).watch(found, filter));
    let models = Arc::clone(models);
    let mut served = Served { models, service: service.clone(), engines: HashMap::new() };
    tokio::spawn(async move {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                update = updates.recv() => match update {
                    Some(ModelUpdate::Added(card)) => served.add(&card),
                    Some(ModelUpdate::Removed(_)) => served.drop_gone(),
                    None => return,
                },
                _ = looks.tick() => served.drop_gone(),
            }
        }
    });
    Ok(())
}

/// What the server serves.
struct Served {
    models: Arc<Models>,
    service: HttpService,
    engines: HashMap<String, OpenAIChatCompletionsStreamingEngine>,
}

impl Served {
    /// Serves a model whose workers have been found.
    fn add(&mut self, card: &ModelDeploymentCard) {
        let name = card.name();
        let Some(engines) = self.models.made().get(name).cloned() else {
            tracing::error!(
                model = name,
                "its workers have no conversations: start them with --endpoint-types chat,completions"
            );
            return;
        };
        if self.engines.get(name).is_some_and(|chat| Arc::ptr_eq(chat, &engines.chat)) {
            return;
        }
        self.service.model_manager().remove_model(name);
        self.engines.insert(name.to_owned(), Arc::clone(&engines.chat));
        if let Err(error) = self.serve(card, engines) {
            tracing::error!(model = name, "it cannot be served: {error:#}");
        }
    }

    fn serve(&self, card: &ModelDeploymentCard, engines: Engines) -> anyhow::Result<()> {
        let (name, manager) = (card.name(), self.service.model_manager());
        let Engines { checksum, chat, completions } = engines;
        manager.add_chat_completions_model(name, &checksum, chat)?;
        manager.add_completions_model(name, &checksum, completions)?;
        self.service.state().metrics_clone().update_metrics_from_mdc(card)?;
        self.enable(true)
    }

    /// Drops models whose workers are all gone. Dynamo tells only when the last model goes.
    fn drop_gone(&mut self) {
        let found = self.models.found.list_chat_completions_models();
        let gone: Vec<String> =
            self.engines.keys().filter(|name| !found.contains(name)).cloned().collect();
        for name in &gone {
            self.engines.remove(name);
            self.models.made().remove(name);
            self.service.model_manager().remove_model(name);
        }
        if gone.is_empty() || !self.engines.is_empty() {
            return;
        }
        if let Err(error) = self.enable(false) {
            tracing::error!("{error:#}");
        }
    }

    fn enable(&self, enabled: bool) -> anyhow::Result<()> {
        let endpoints = endpoints(&self.service);
        let enable = |endpoint| self.service.enable_model_endpoint(endpoint, enabled);
        endpoints.into_iter().try_for_each(enable)
    }
}

/// What a model of token ids is asked by.
fn endpoints(service: &HttpService) -> Vec<EndpointType> {
    let mut all = vec![EndpointType::Chat, EndpointType::Completion, EndpointType::Responses];
    all.extend(service.anthropic_api_enabled().then_some(EndpointType::AnthropicMessages));
    all
}

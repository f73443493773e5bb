//! Models and settings of a new server.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::app::{App, Phase};
use super::clients::Clients;
use super::config::ServeConfig;
use super::effect;
use super::kv_events;
use super::metrics::Metrics;
use super::models::{ModelSpec, Models, Offer, Source};
use super::mounted::Mounted;
use super::routes::group::PathGroup;
use super::start_error::ServeError;
use super::trace_parent::{Adopt, TraceParent};
use super::{Server, unload_idle};
use lapwing_engine::{Engine, EngineBuilder};

/// Models and settings of a new [`Server`].
#[derive(Debug, Default)]
#[must_use]
pub struct ServerBuilder {
    models: Vec<Offer>,
    config: ServeConfig,
    adopt: Adopt,
    /// The paths that are offered; `None` for all.
    paths: Option<Vec<PathGroup>>,
}

impl ServerBuilder {
    /// Adds a model with the name that requests use. It is loaded when a request asks for it. The server sets
    /// the engine's queue policy, its maximum of requests and its recorder.
    pub fn model(self, name: impl Into<String>, engine: EngineBuilder) -> ServerBuilder {
        self.model_at(name, engine, None)
    }

    /// As [`model`](ServerBuilder::model), with the sampling temperature of requests that name none.
    pub fn model_at(
        mut self,
        name: impl Into<String>,
        engine: EngineBuilder,
        temperature: Option<f32>,
    ) -> ServerBuilder {
        let source = Source::Settings(Box::new(engine));
        self.models.push(Offer { name: name.into(), source, temperature });
        self
    }

    /// Adds a model whose engine runs already, and is shared: the program goes on using it, and its calls and the
    /// server's wait in one queue. The engine keeps the policy, the limits and the recorder that it was built with;
    /// a setting of the server for one of these is an error. It is never unloaded, and only the program ends it.
    ///
    /// Timelines need events: a recorder of [`EngineBuilder::recorder`] that is on.
    pub fn engine(mut self, name: impl Into<String>, engine: Engine) -> ServerBuilder {
        let source = Source::Running(engine);
        self.models.push(Offer { name: name.into(), source, temperature: None });
        self
    }

    /// Offers the paths of these groups only; by default those of all.
    pub fn paths(mut self, groups: impl IntoIterator<Item = PathGroup>) -> ServerBuilder {
        self.paths = Some(groups.into_iter().collect());
        self
    }

    /// Replaces all settings.
    pub fn config(mut self, config: ServeConfig) -> ServerBuilder {
        self.config = config;
        self
    }

    /// Calls `adopt` with the span of each request that has a valid header `traceparent`, before anything is below it.
    /// So a program gives it a place in its caller's trace in its own way, such as `set_parent` of the crate
    /// `tracing-opentelemetry`. The span has the ids as fields, too. docs/timeline.md has an example.
    pub fn on_trace_parent(
        mut self,
        adopt: impl Fn(&tracing::Span, &TraceParent) + Send + Sync + 'static,
    ) -> ServerBuilder {
        self.adopt = Adopt(Some(Arc::new(adopt)));
        self
    }

    /// Listens. No model is loaded yet.
    ///
    /// # Errors
    /// When there is no model or no path, the file of a model cannot be read, a model whose engine requires conversations
    /// ([`EngineBuilder::require_chat`]) has none, keys are wrong, a setting would have no effect, or the address cannot be listened on or needs keys.
    pub async fn bind(self) -> Result<Server, ServeError> {
        let clients = Clients::new(&self.config)?;
        let listener = listen(&self.config, clients.has_keys()).await?;
        Ok(Server { mounted: self.start(clients).await?, listener })
    }

    /// Makes what a program with an HTTP server of its own mounts beside its own paths. No model is loaded yet. Must
    /// be called within the Tokio runtime that answers the requests.
    ///
    /// # Errors
    /// When there is no model or no path, the file of a model cannot be read, keys are wrong, or a setting would have
    /// no effect: those of the sockets, which are the program's.
    pub async fn mount(self) -> Result<Mounted, ServeError> {
        effect::check_sockets(&self.config)?;
        let clients = Clients::new(&self.config)?;
        self.start(clients).await
    }

    async fn start(self, clients: Clients) -> Result<Mounted, ServeError> {
        let ServerBuilder { models, config, adopt, paths } = self;
        effect::check_engines(&config, &models)?;
        let paths = checked(paths.unwrap_or_else(|| PathGroup::ALL.to_vec()))?;
        let config_of = config.clone();
        let read = move || specs(models, &config_of);
        let specs = tokio::task::spawn_blocking(read).await.unwrap_or(Err(ServeError::NoModel))?;
        let models = Models::new(specs, config.memory_bytes, config.keep_alive());
        let (phase, phases) = watch::channel(Phase::Serving);
        let kv_events = kv_events::publish(&config, &models, &phase).await?;
        tokio::spawn(unload_idle(models.clone(), phases));
        let metrics = Metrics::new();
        let app = App { config, models, clients, metrics, adopt, phase, paths, kv_events };
        Ok(Mounted { app: Arc::new(app) })
    }
}

/// Paths that can be offered together.
fn checked(paths: Vec<PathGroup>) -> Result<Vec<PathGroup>, ServeError> {
    let has = |group: &PathGroup| paths.contains(group);
    match &*paths {
        [] => Err(ServeError::NoPath),
        _ if has(&PathGroup::Page) && !PathGroup::OF_PAGE.iter().all(has) => {
            Err(ServeError::PageAlone)
        }
        _ => Ok(paths),
    }
}

/// A socket at the address of a configuration.
async fn listen(config: &ServeConfig, has_keys: bool) -> Result<TcpListener, ServeError> {
    let fault = |source| ServeError::Listen { listen: config.listen.clone(), source };
    let addresses: Vec<SocketAddr> =
        tokio::net::lookup_host(config.address()).await.map_err(fault)?.collect();
    let is_public = addresses.iter().any(|address| !address.ip().is_loopback());
    if is_public && !has_keys && !config.public {
        return Err(ServeError::Public { listen: config.listen.clone() });
    }
    TcpListener::bind(&addresses[..]).await.map_err(fault)
}

/// What is known of each model before it is loaded.
fn specs(offers: Vec<Offer>, config: &ServeConfig) -> Result<Vec<ModelSpec>, ServeError> {
    if offers.is_empty() {
        return Err(ServeError::NoModel);
    }
    let mut specs: Vec<ModelSpec> = Vec::new();
    for offer in offers {
        if specs.iter().any(|spec| spec.name == offer.name) {
            return Err(ServeError::SameName { name: offer.name });
        }
        specs.push(ModelSpec::read(offer, config)?);
    }
    Ok(specs)
}

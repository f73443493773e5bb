//! An HTTP server with the interfaces that clients already speak: OpenAI's, Ollama's, Anthropic's, and what
//! llama.cpp's server has beside them. docs/serve.md describes it.
//!
//! ```no_run
//! use lapwing::Engine;
//! use lapwing::serve::{ServeConfig, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder()
//!     .model("small", Engine::builder().model("model.gguf"))
//!     .config(ServeConfig::default())
//!     .bind()
//!     .await?;
//! println!("listening on http://{}", server.address());
//! // Until Ctrl-C; then requests that run have a while to end.
//! server.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
//! # Ok(())
//! # }
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a server runs in real time, on the runtime that awaits Server::run"
)]

mod address;
mod answer;
mod anthropic;
mod app;
mod body;
mod clients;
mod config;
mod connections;
mod constraint;
mod endpoint;
mod error;
mod facts;
mod fields;
mod gate;
mod http_span;
mod ids;
mod llama_cpp;
mod metrics;
mod models;
mod ollama;
mod openai;
mod openapi;
mod origin;
mod page;
mod responses;
mod router;
mod routes;
mod sampling;
mod start_error;
mod state;
mod streaming;
mod thinking;
mod timeline;
mod tools;
mod trace_parent;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::message::Shutdown;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use app::{App, Phase};
use clients::Clients;
use config::seconds;
use lapwing_engine::EngineBuilder;
use metrics::Metrics;
use models::{ModelSpec, Models, Offer};
use trace_parent::Adopt;

pub use config::{ClientConfig, KeyConfig, ServeConfig};
pub use start_error::ServeError;
pub use trace_parent::TraceParent;

/// Models and settings of a new [`Server`].
#[derive(Debug, Default)]
#[must_use]
pub struct ServerBuilder {
    models: Vec<Offer>,
    config: ServeConfig,
    adopt: Adopt,
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
        self.models.push(Offer { name: name.into(), engine, temperature });
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
    /// When there is no model, the file of one cannot be read, a model whose engine requires conversations
    /// ([`EngineBuilder::require_chat`]) has none, keys are wrong, or the address cannot be listened on or
    /// needs keys.
    pub async fn bind(self) -> Result<Server, ServeError> {
        let config = self.config;
        let clients = Clients::new(&config)?;
        let listener = listen(&config, clients.has_keys()).await?;
        let (offers, config_of) = (self.models, config.clone());
        let read = move || specs(offers, &config_of);
        let specs = tokio::task::spawn_blocking(read).await.unwrap_or(Err(ServeError::NoModel))?;
        let models = Models::new(specs, config.memory_bytes, config.keep_alive());
        let (phase, _) = watch::channel(Phase::Serving);
        let metrics = Metrics::new();
        let app = App { config, models, clients, metrics, adopt: self.adopt, phase };
        Ok(Server { app: Arc::new(app), listener })
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

/// A server that listens, and answers while [`run`](Server::run) runs.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
}

impl Server {
    /// Settings of a new server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        self.listener.local_addr().unwrap_or(unknown)
    }

    /// One line for each model that cannot answer conversations, and why.
    pub fn notes(&self) -> Vec<String> {
        let specs = self.app.models.specs().iter();
        specs
            .filter_map(|spec| {
                Some(format!("model '{}' {}", spec.name, spec.facts.chat_fault.as_ref()?))
            })
            .collect()
    }

    /// Loads the first model, which otherwise happens at the first request.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn load(&self) -> Result<(), ServeError> {
        let loaded = self.app.models.load_first().await;
        loaded.map_err(|error| ServeError::Load { reason: error.to_string() })
    }

    /// Answers requests until `stop` ends. Then it accepts no new ones, lets those that run end for
    /// [`grace_s`](ServeConfig::grace_s), fails the rest with an error that says so, and ends the engines.
    ///
    /// # Errors
    /// None at present; connections that fail are logged.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Server { app, listener } = self;
        let reaper = tokio::spawn(unload_idle(Arc::clone(&app)));
        let connections = connections::Connections::new(Arc::clone(&app));
        tokio::select! {
            never = connections.accept(listener) => match never {},
            () = stop => {}
        }
        app.phase.send_replace(Phase::Draining);
        tracing::info!(grace_s = app.config.grace_s, "draining");
        let mut closed = connections.close();
        if timeout(seconds(app.config.grace_s), &mut closed).await.is_err() {
            tracing::warn!("requests that still run are ended");
            app.phase.send_replace(Phase::Stopping);
            let _ = timeout(LAST, closed).await;
        }
        reaper.abort();
        app.models.shutdown(Shutdown::Now).await;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Time for the error that ends a request after the grace time to be sent.
const LAST: Duration = Duration::from_secs(2);

/// Unloads each model when its keep-alive time is over.
async fn unload_idle(app: Arc<App>) {
    loop {
        let changed = app.models.changed();
        match app.models.unload_expired().await {
            Some(next) => {
                let _ = tokio::time::timeout_at(next.into(), changed).await;
            }
            None => changed.await,
        }
    }
}

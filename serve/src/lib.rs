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
//!
//! A program with an HTTP server of its own [mounts](Mounted) the paths beside its own, and shares an engine with them.

#![expect(
    clippy::disallowed_methods,
    reason = "a server runs in real time, on the runtime that awaits Server::run"
)]

mod address;
mod answer;
mod anthropic;
mod app;
mod body;
mod builder;
mod clients;
mod config;
mod connections;
mod constraint;
mod effect;
mod endpoint;
mod error;
mod facts;
mod fields;
mod gate;
mod http_span;
mod ids;
mod kv_events;
mod llama_cpp;
mod metrics;
mod models;
mod mounted;
mod ollama;
mod openai;
mod openapi;
mod origin;
mod page;
mod rerank;
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

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout_at;

use app::Phase;
use models::Models;

/// The version of axum whose [`Router`](axum::Router) a program mounts.
pub use axum;
pub use builder::ServerBuilder;
pub use config::{ClientConfig, KeyConfig, ServeConfig};
pub use constraint::structured_outputs;
pub use kv_events::{KvEventsAddress, KvEventsConfig, KvEventsForm};
pub use metrics::state_metrics;
pub use mounted::Mounted;
pub use routes::group::PathGroup;
pub use start_error::ServeError;
pub use trace_parent::TraceParent;

/// A server that listens, and answers while [`run`](Server::run) runs.
#[derive(Debug)]
pub struct Server {
    mounted: Mounted,
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
        self.mounted.notes()
    }

    /// Where the KV events of each model are published ([`ServeConfig::kv_events`]).
    pub fn kv_events(&self) -> &[KvEventsAddress] {
        self.mounted.kv_events()
    }

    /// Loads the first model, which otherwise happens at the first request.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn load(&self) -> Result<(), ServeError> {
        self.mounted.load().await
    }

    /// Answers requests until `stop` ends. Then it accepts no new ones, lets those that run end for
    /// [`grace_s`](ServeConfig::grace_s), fails the rest with an error that says so, and ends the engines that it has
    /// loaded.
    ///
    /// # Errors
    /// None at present; connections that fail are logged.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Server { mounted, listener } = self;
        let connections = connections::Connections::new(&mounted.app);
        tokio::select! {
            never = connections.accept(listener) => match never {},
            () = stop => {}
        }
        mounted.close_after(connections.close()).await;
        Ok(())
    }
}

/// Unloads each model when its keep-alive time is over, until the server ends.
async fn unload_idle(models: Models, mut phase: watch::Receiver<Phase>) {
    tokio::select! {
        // The sender is gone when the last router is.
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => {}
        () = unload_expired(&models) => {}
    }
}

/// Unloads each model when its keep-alive time is over, for ever.
async fn unload_expired(models: &Models) {
    loop {
        let changed = models.changed();
        match models.unload_expired().await {
            Some(next) => {
                let _ = timeout_at(next.into(), changed).await;
            }
            None => changed.await,
        }
    }
}

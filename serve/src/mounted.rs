//! The server without sockets: what a program mounts beside paths of its own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use lapwing_actors::message::Shutdown;
use tokio::time::timeout;

use super::app::{App, Phase};
use super::config::seconds;
use super::kv_events::KvEventsAddress;
use super::router::router;
use super::start_error::ServeError;

/// The server without sockets, made by [`ServerBuilder::mount`](super::ServerBuilder::mount): its
/// [`router`](Mounted::router) is mounted in a program with an HTTP server of its own, at the root or below a prefix.
/// The program has the sockets, the signals and the log; this has the models, the queue, the limits and the metrics.
///
/// ```no_run
/// use std::net::SocketAddr;
///
/// use axum::Router;
/// use axum::routing::get;
/// use lapwing::serve::Server;
/// use lapwing::{Engine, Request};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().model("model.gguf").build().await?;
/// let mounted = Server::builder().engine("small", engine.clone()).mount().await?;
/// let app = Router::new()
///     .route("/hello", get(|| async { "hello" }))
///     .nest("/llm", mounted.router());
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// let stop = async move {
///     drop(tokio::signal::ctrl_c().await);
///     // New requests get 503; those that run have a while to end.
///     mounted.close().await;
/// };
/// let service = app.into_make_service_with_connect_info::<SocketAddr>();
/// let server = axum::serve(listener, service).with_graceful_shutdown(stop);
/// let served = tokio::spawn(server.into_future());
/// // The program's own calls share the engine with the clients of http://127.0.0.1:8080/llm/v1.
/// let answer = engine.generate(Request::ask("Why is the sky blue?")).await?;
/// # drop(answer);
/// served.await??;
/// # Ok(())
/// # }
/// ```
///
/// - **Prefix**: below `/llm`, the base URL of OpenAI's clients is `http://HOST/llm/v1`, that of Ollama's and
///   Anthropic's `http://HOST/llm`, and the page is `http://HOST/llm`. Clients of Ollama that allow no path in
///   `OLLAMA_HOST` need the root: [`Router::merge`], with [`paths`](super::ServerBuilder::paths) that the program
///   does not have itself.
/// - **Clients**: a request belongs to the client of its key, to the `user` that it names, or to its address, which
///   `into_make_service_with_connect_info` tells. A layer of the program that knows who sends a request says so with
///   an extension of the type [`ClientId`](lapwing_engine::policy::ClientId); that request then needs no key.
/// - **Browsers**: without keys, requests that address another host than `localhost` or an IP address are refused,
///   unless the layer names the client or [`public`](super::ServeConfig::public) is set. Pages of other origins are
///   refused unless [`cors`](super::ServeConfig::cors) names them.
/// - **Unknown paths** are the program's.
/// - **Limits of connections**, such as the time until a client has sent its headers, are the program's.
#[derive(Clone, Debug)]
#[must_use]
pub struct Mounted {
    pub(crate) app: Arc<App>,
}

impl Mounted {
    /// The paths, with all that a request passes on its way. All routers of this share models, limits and metrics.
    pub fn router(&self) -> Router {
        router(&self.app)
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

    /// Where the KV events of each model are published ([`ServeConfig::kv_events`](super::ServeConfig::kv_events)).
    pub fn kv_events(&self) -> &[KvEventsAddress] {
        &self.app.kv_events
    }

    /// Loads the first model, which otherwise happens at the first request.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn load(&self) -> Result<(), ServeError> {
        let loaded = self.app.models.load_first().await;
        loaded.map_err(|error| ServeError::Load { reason: error.to_string() })
    }

    /// Refuses new requests with 503, lets those that run end for
    /// [`grace_s`](super::ServeConfig::grace_s), fails the rest with an error that says so, and ends the engines that
    /// it has loaded. Engines of the program run on.
    pub async fn close(&self) {
        self.close_after(self.app.models.unused()).await;
    }

    /// As [`close`](Mounted::close); the requests that run have ended when `ended` has.
    pub(crate) async fn close_after(&self, ended: impl Future<Output = ()>) {
        let app = &self.app;
        app.phase.send_replace(Phase::Draining);
        tracing::info!(grace_s = app.config.grace_s, "draining");
        let mut ended = pin!(ended);
        if timeout(seconds(app.config.grace_s), &mut ended).await.is_err() {
            tracing::warn!("requests that still run are ended");
            app.phase.send_replace(Phase::Stopping);
            let _ = timeout(LAST, ended).await;
        }
        app.models.shutdown(Shutdown::Now).await;
        tracing::info!("stopped");
    }
}

/// Time for the error that ends a request after the grace time to be sent.
const LAST: Duration = Duration::from_secs(2);

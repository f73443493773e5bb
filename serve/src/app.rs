//! What all requests share, and what each brings along.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, StatusCode};
use tokio::sync::watch;

use super::clients::{Caller, Clients};
use super::config::{ServeConfig, seconds};
use super::error::ApiError;
use super::kv_events::KvEventsAddress;
use super::metrics::Metrics;
use super::models::{ModelLease, Models};
use super::routes::group::PathGroup;
use super::trace_parent::Adopt;

/// The state of a server.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: ServeConfig,
    pub(crate) models: Models,
    pub(crate) clients: Clients,
    pub(crate) metrics: Metrics,
    pub(crate) adopt: Adopt,
    pub(crate) phase: watch::Sender<Phase>,
    /// The paths that are offered.
    pub(crate) paths: Vec<PathGroup>,
    /// Where the KV events of each model are published.
    pub(crate) kv_events: Vec<KvEventsAddress>,
}

/// How far a server is on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Requests are accepted.
    Serving,
    /// No new requests; those that run end.
    Draining,
    /// The time for that is over: requests that still run fail.
    Stopping,
}

/// An HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    /// Its id, in its `x-request-id`, in the log, and in its answer.
    pub(crate) id: Arc<str>,
    /// The path that it was routed by.
    pub(crate) path: &'static str,
    pub(crate) caller: Caller,
    pub(crate) received: Instant,
    /// Time that it may take.
    pub(crate) timeout: Option<Duration>,
}

impl Call {
    /// The model `name`, loaded if necessary, within the time of the request.
    ///
    /// # Errors
    /// When there is none, it cannot be loaded, or the time is over.
    pub(crate) async fn model(
        &self,
        name: Option<&str>,
        keep_alive: Option<Option<Duration>>,
    ) -> Result<ModelLease, ApiError> {
        let index = self.app.models.find(name)?;
        tokio::select! {
            lease = self.app.models.lease(index, keep_alive) => lease,
            error = self.clone().interrupted() => Err(error),
        }
    }

    /// Returns when the time of the request is over, or the server's.
    pub(crate) async fn interrupted(self) -> ApiError {
        let mut phase = self.app.phase.subscribe();
        let late = async {
            match self.timeout {
                Some(timeout) => {
                    tokio::time::sleep_until((self.received + timeout).into()).await;
                    timeout
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            timeout = late => {
                let message = format!("the request took more than {} s, its limit", timeout.as_secs_f64());
                ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
            }
            _ = phase.wait_for(|phase| *phase == Phase::Stopping) => ApiError::stopping(),
        }
    }
}

/// Time that a request may take: the server's limit, or less if the header `x-request-timeout` asks for it.
///
/// # Errors
/// When the header is not a positive number of seconds.
pub(crate) fn timeout_of(
    headers: &HeaderMap,
    limit: Option<Duration>,
) -> Result<Option<Duration>, ApiError> {
    let Some(value) = headers.get("x-request-timeout") else { return Ok(limit) };
    let asked = value.to_str().ok().and_then(|text| text.trim().parse::<f64>().ok());
    match asked.filter(|asked| asked.is_finite() && *asked > 0.0) {
        Some(asked) => Ok(Some(limit.map_or(seconds(asked), |limit| limit.min(seconds(asked))))),
        None => Err(ApiError::field(
            "x-request-timeout",
            "x-request-timeout is not a positive number of seconds",
        )),
    }
}

/// Runs work that takes a while, such as reading a long prompt, on a thread for it.
///
/// # Errors
/// When it panics.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        let message = "the request cannot be processed; the log of the server says why";
        let failed = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "task_failed", message);
        failed.logged(format!("the request cannot be processed: {error}"))
    })
}

/// Seconds since 1970.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

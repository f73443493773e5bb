//! What every request passes: its id, its key, the server's phase, and the count.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lapwing_engine::policy::ClientId;

use super::app::{App, Call, Phase, timeout_of};
use super::clients::Caller;
use super::error::{ApiError, Dialect};
use super::ids::new_id;
use super::origin::{self, Asked};
use super::routes::route::Route;

/// Header with the id of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Where requests of a path enter.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    pub(crate) app: Arc<App>,
    /// The path; `None` where it is unknown.
    pub(crate) route: Option<&'static Route>,
}

/// What is known of a request before it is admitted.
struct Arrival {
    /// Address of the client's end of the connection, if the program tells it.
    address: Option<IpAddr>,
    /// The client, if the program that mounts the server has found out.
    client: Option<ClientId>,
    id: Arc<str>,
    route: Option<&'static Route>,
    received: Instant,
}

impl Arrival {
    fn of(request: &Request, route: Option<&'static Route>) -> Arrival {
        let received = Instant::now();
        let connection = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let address = connection.map(|ConnectInfo(peer)| peer.ip().to_canonical());
        let client = request.extensions().get::<ClientId>().cloned();
        Arrival { address, client, id: request_id(request.headers()), route, received }
    }

    /// The path that it was routed by.
    fn path(&self) -> &'static str {
        self.route.map_or("other", |route| route.path)
    }
}

/// Passes a request on, with a [`Call`], or refuses it.
pub(crate) async fn gate(
    State(entrance): State<Entrance>,
    mut request: Request,
    next: Next,
) -> Response {
    let app = entrance.app;
    let arrival = Arrival::of(&request, entrance.route);
    let (id, path) = (&arrival.id, arrival.path());
    tracing::Span::current().record("request_id", &**id);
    let dialect = Dialect::of_path(request.uri().path());
    let mut response = match admit(&app, &arrival, &request) {
        Ok(call) => {
            request.extensions_mut().insert(call);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    let status = response.status();
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        if error.log.is_some() {
            tracing::warn!(id = &**id, path, %error, "the error in full; the client got a shorter one");
        }
        response = error.response(dialect);
    } else if matches!(status.as_u16(), 404 | 405) && is_plain(&response) {
        response = unknown_route(status).response(dialect);
    }
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    app.metrics.count_http(path, response.status().as_u16());
    tracing::debug!(id = &**id, path, status = response.status().as_u16(), "answered");
    response
}

/// The call of a request that may pass.
fn admit(app: &Arc<App>, arrival: &Arrival, request: &Request) -> Result<Call, ApiError> {
    let (headers, method) = (request.headers(), request.method());
    let address = arrival.address;
    let named = arrival.client.as_ref().and_then(ClientId::name);
    let only_local = !app.clients.has_keys() && named.is_none() && !app.config.public;
    origin::check(&Asked::of(request), &app.config.cors, only_local)?;
    let is_open = arrival.route.is_some_and(|route| route.is_open) || *method == Method::OPTIONS;
    let caller = match named {
        Some(name) => Caller::named(name, address),
        None if is_open => Caller::unknown(address),
        None => app.clients.caller(headers, address)?,
    };
    if !is_open && *method == Method::POST && *app.phase.borrow() != Phase::Serving {
        return Err(ApiError::stopping());
    }
    let timeout = timeout_of(headers, app.config.timeout())?;
    let (app, id) = (Arc::clone(app), Arc::clone(&arrival.id));
    Ok(Call { app, id, path: arrival.path(), caller, received: arrival.received, timeout })
}

/// Whether a response was made by the router, which knows no interface's form of errors.
fn is_plain(response: &Response) -> bool {
    !response.headers().contains_key(axum::http::header::CONTENT_TYPE)
}

fn unknown_route(status: StatusCode) -> ApiError {
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            ApiError::new(status, "method_not_allowed", "this path does not have this method")
        }
        _ => ApiError::new(
            status,
            "unknown_path",
            "no such path; GET /openapi.json lists all of them",
        ),
    }
}

/// The id that the client gave, or a new one.
fn request_id(headers: &HeaderMap) -> Arc<str> {
    let given = headers.get(&REQUEST_ID).and_then(|value| value.to_str().ok());
    match given.filter(|id| !id.is_empty() && id.len() <= 128) {
        Some(id) => Arc::from(id),
        None => Arc::from(new_id("req-")),
    }
}

//! The state of the server: metrics, and what its page shows.

use std::collections::{BTreeMap, HashMap};

use axum::Json;
use axum::extract::{Extension, Query};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use lapwing_actors::stats::EngineStats;
use lapwing_engine::PackedUse;
use serde_json::{Value, json};

use super::app::{App, Call, Phase, blocking};
use super::error::ApiError;
use super::kv_events::KvEventsAddress;
use super::metrics::{Format, Report, time_errors};

/// What the loaded models report, by name.
async fn reports(app: &App) -> Vec<Report> {
    let mut reports = Vec::new();
    for loaded in app.models.loaded() {
        // An engine that has just ended reports nothing.
        if let Ok(stats) = loaded.engine.stats().await {
            let name = app.models.specs()[loaded.index].name.clone();
            reports.push(Report { name, stats, cache: loaded.engine.cache_blocks() });
        }
    }
    reports
}

/// The metrics.
pub(crate) async fn metrics(Extension(call): Extension<Call>, headers: HeaderMap) -> Response {
    let format = Format::of(&headers);
    let text = call.app.metrics.text(&reports(&call.app).await, format);
    let mut response = text.into_response();
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static(format.content_type());
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// A dashboard of the metrics for Grafana.
pub(crate) async fn dashboard() -> Response {
    let mut response = include_str!("grafana.json").into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Models, clients and queues.
pub(crate) async fn state(Extension(call): Extension<Call>) -> Response {
    let app = &*call.app;
    let reports = reports(app).await;
    let loaded = app.models.loaded();
    let specs = app.models.specs().iter().enumerate();
    let models: Vec<Value> = specs
        .map(|(index, spec)| {
            let loaded = loaded.iter().find(|loaded| loaded.index == index);
            let report = reports.iter().find(|report| report.name == spec.name);
            json!({
                "name": spec.name,
                "bytes": spec.bytes,
                "parameters": spec.facts.size(),
                "format": spec.facts.quantization,
                "loaded": loaded.is_some(),
                "expires_s": loaded.and_then(|loaded| loaded.expires).map(|time| time.as_secs_f64()),
                "packed_weights": loaded.map(|loaded| packed_weights(&loaded.engine)),
                "context": loaded.map(|loaded| loaded.engine.context()),
                "devices": loaded.map(|loaded| device_names(&loaded.engine)),
                "draft": loaded.map(|loaded| loaded.engine.draft().to_owned()),
                "state": report.map(|report| engine_state(&report.stats)),
                "kv_events": app.kv_events.get(index).map(kv_events),
            })
        })
        .collect();
    let phase = match *app.phase.borrow() {
        Phase::Serving => "serving",
        Phase::Draining => "draining",
        Phase::Stopping => "stopping",
    };
    Json(json!({ "version": env!("CARGO_PKG_VERSION"), "phase": phase, "models": models }))
        .into_response()
}

/// Where the KV events of a model are published.
fn kv_events(of: &KvEventsAddress) -> Value {
    json!({ "address": of.address, "replay": of.replay, "topic": of.topic })
}

/// The blocks that the prefix cache of a model has.
pub(crate) async fn blocks(
    Extension(call): Extension<Call>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Value>, ApiError> {
    let models = &call.app.models;
    let index = models.find(query.get("model").map(String::as_str))?;
    let engine = models.loaded().into_iter().find(|loaded| loaded.index == index);
    let engine = engine.map(|loaded| loaded.engine);
    let size = engine.as_ref().map(|engine| engine.cache_blocks().tokens);
    let stored = move || engine.map(|engine| engine.cached_blocks()).unwrap_or_default();
    let stored = blocking(stored).await?;
    let blocks = stored.iter().flat_map(|blocks| {
        let before = [blocks.parent].into_iter().chain(blocks.hashes.iter().copied().map(Some));
        before.zip(&blocks.hashes).map(|(parent, hash)| {
            json!({
                "hash": hash.to_string(),
                "parent": parent.map(|parent| parent.to_string()),
                "group": blocks.group as usize,
            })
        })
    });
    let blocks: Vec<Value> = blocks.collect();
    Ok(Json(json!({ "model": models.specs()[index].name, "block_size": size, "blocks": blocks })))
}

fn device_names(engine: &lapwing_engine::Engine) -> Vec<String> {
    engine.devices().iter().map(ToString::to_string).collect()
}

/// Where an engine's packed weights are, and how much memory they take: of this process alone, and of mapped files, which processes
/// share.
fn packed_weights(engine: &lapwing_engine::Engine) -> Value {
    let PackedUse { own_bytes, mapped_bytes } = engine.packed_use();
    let packed = engine.packed_weights();
    json!({
        "own_bytes": own_bytes,
        "mapped_bytes": mapped_bytes,
        "not_mapped": packed.not_mapped.as_deref(),
        "beyond_memory": packed.beyond_memory.map(|beyond| beyond.times()),
    })
}

fn engine_state(stats: &EngineStats) -> Value {
    let clients: Vec<Value> = stats
        .clients
        .iter()
        .map(|client| {
            json!({
                "client": client.client.to_string(),
                "waiting": client.waiting,
                "running": client.running,
                "requests": client.work.requests,
                "refused": client.work.refused,
                "prompt_tokens": client.work.prompt_tokens,
                "cached_tokens": client.work.cached_tokens,
                "recomputed_tokens": client.work.recomputed_tokens,
                "generated_tokens": client.work.generated_tokens,
                "generated_tokens_last_minute": client.generated_tokens_last_minute,
                "ttft_p50_ms": client.latencies.ttft_ms.p50,
                "ttft_p95_ms": client.latencies.ttft_ms.p95,
                "tpot_p50_ms": client.latencies.tpot_ms.p50,
            })
        })
        .collect();
    json!({
        "policy": stats.policy,
        "waiting": stats.waiting,
        "running": stats.running,
        "kv_pages": stats.kv_pages,
        "kv_pages_leased": stats.kv_pages_leased,
        "kv_pages_cached": stats.kv_pages_cached,
        "states": stats.states,
        "states_cached": stats.states_cached,
        "graphs_ready": stats.graphs.ready,
        "graphs_wanted": stats.graphs.wanted,
        "chunks_elsewhere": stats.graphs.chunks_elsewhere,
        "chunks_limited": stats.pace.chunks_limited,
        "chunks_short": stats.pace.chunks_short,
        "tokens_late": stats.pace.tokens_late,
        "chunk_time_errors": time_errors(&stats.pace).collect::<BTreeMap<_, _>>(),
        "clients": clients,
    })
}

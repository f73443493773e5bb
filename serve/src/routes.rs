//! The paths of the server.

mod route;

use axum::routing::{get, post};

use super::endpoint::answer;
use super::{anthropic, llama_cpp, ollama, openai, openapi, page, responses, state, timeline};
use route::{open, route};

pub(crate) use route::Route;

/// All paths.
pub(crate) const ROUTES: [Route; 35] = [
    open("/", &["get"], "The page of the server", || get(page::page)),
    open("/health", &["get"], "Whether the server runs", || get(llama_cpp::health)),
    open("/ready", &["get"], "Whether the server accepts requests", || get(llama_cpp::ready)),
    open("/openapi.json", &["get"], "This document", || {
        get(|| async { openapi::document(&ROUTES) })
    }),
    open("/grafana.json", &["get"], "A dashboard of the metrics for Grafana", || {
        get(state::dashboard)
    }),
    route("/metrics", &["get"], "Metrics in the format of OpenMetrics or Prometheus", || {
        get(state::metrics)
    }),
    route("/debug/state", &["get"], "Models, clients and queues", || get(state::state)),
    route("/debug/timeline", &["get"], "The timeline of the last seconds, as a page", || {
        get(timeline::timeline)
    }),
    route(
        "/debug/lanes",
        &["get"],
        "How busy the devices of a model were in the last seconds",
        || get(timeline::lanes),
    ),
    route("/v1/models", &["get"], "Lists the models", || get(openai::models::list)),
    route("/v1/models/{id}", &["get"], "Describes a model", || get(openai::models::one)),
    route("/v1/chat/completions", &["post"], "Answers a conversation (OpenAI)", || {
        post(answer::<openai::chat::Chat>)
    }),
    route("/v1/completions", &["post"], "Continues texts (OpenAI)", || {
        post(answer::<openai::completions::Completions>)
    }),
    route("/v1/embeddings", &["post"], "Embeds texts (OpenAI)", || {
        post(openai::embeddings::embeddings)
    }),
    route(
        "/v1/responses",
        &["post"],
        "Answers a conversation (OpenAI's responses, text only, not stored)",
        || post(answer::<responses::Responses>),
    ),
    route("/v1/messages", &["post"], "Answers a conversation (Anthropic)", || {
        post(answer::<anthropic::Messages>)
    }),
    route(
        "/v1/messages/count_tokens",
        &["post"],
        "Counts the tokens of a conversation (Anthropic)",
        || post(anthropic::count_tokens),
    ),
    route("/api/version", &["get"], "The version (Ollama)", || get(ollama::models::version)),
    route("/api/tags", &["get"], "Lists the models (Ollama)", || get(ollama::models::tags)),
    route("/api/ps", &["get"], "Lists the loaded models (Ollama)", || get(ollama::models::ps)),
    route("/api/show", &["post"], "Describes a model (Ollama)", || post(ollama::models::show)),
    route("/api/pull", &["post"], "Whether a model is offered (Ollama)", || {
        post(ollama::models::pull)
    }),
    route("/api/generate", &["post"], "Continues a prompt (Ollama)", || {
        post(answer::<ollama::generate::Generate>)
    }),
    route("/api/chat", &["post"], "Answers a conversation (Ollama)", || {
        post(answer::<ollama::chat::Chat>)
    }),
    route("/api/embed", &["post"], "Embeds texts (Ollama)", || post(ollama::embed::embed)),
    route("/api/embeddings", &["post"], "Embeds one text (Ollama)", || {
        post(ollama::embed::embeddings)
    }),
    route("/props", &["get"], "Settings of the first model (llama.cpp)", || get(llama_cpp::props)),
    route("/slots", &["get"], "What the first model computes (llama.cpp)", || {
        get(llama_cpp::slots)
    }),
    route("/tokenize", &["post"], "Token ids of a text (llama.cpp)", || post(llama_cpp::tokenize)),
    route("/detokenize", &["post"], "The text of token ids (llama.cpp)", || {
        post(llama_cpp::detokenize)
    }),
    route("/apply-template", &["post"], "The prompt of a conversation (llama.cpp)", || {
        post(llama_cpp::apply_template)
    }),
    // The same without a version, as some clients ask for them.
    route("/models", &["get"], "Lists the models", || get(openai::models::list)),
    route("/chat/completions", &["post"], "Answers a conversation (OpenAI)", || {
        post(answer::<openai::chat::Chat>)
    }),
    route("/completions", &["post"], "Continues texts (OpenAI)", || {
        post(answer::<openai::completions::Completions>)
    }),
    route("/embeddings", &["post"], "Embeds texts (OpenAI)", || {
        post(openai::embeddings::embeddings)
    }),
];

/// The route with this path.
pub(crate) fn route_of(path: &str) -> Option<&'static Route> {
    static ALL: [Route; 35] = ROUTES;
    ALL.iter().find(|route| route.path == path)
}

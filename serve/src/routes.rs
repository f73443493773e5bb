//! The paths of the server.

pub(crate) mod group;
pub(crate) mod route;

use axum::routing::{get, post};

use super::endpoint::answer;
use super::{
    anthropic, llama_cpp, ollama, openai, openapi, page, rerank, responses, state, timeline,
};
use group::PathGroup::{Anthropic, LlamaCpp, Ollama, OpenAi, Operation, Page};
use route::Route;

/// All paths.
pub(crate) static ROUTES: [Route; 38] = [
    Page.open("/", &["get"], "The page of the server", || get(page::page)),
    Operation.open("/health", &["get"], "Whether the server runs", || get(llama_cpp::health)),
    Operation
        .open("/ready", &["get"], "Whether the server accepts requests", || get(llama_cpp::ready)),
    Operation.open("/openapi.json", &["get"], "This document", || get(openapi::document)),
    Operation.open("/grafana.json", &["get"], "A dashboard of the metrics for Grafana", || {
        get(state::dashboard)
    }),
    Operation.route(
        "/metrics",
        &["get"],
        "Metrics in the format of OpenMetrics or Prometheus",
        || get(state::metrics),
    ),
    Operation.route("/debug/state", &["get"], "Models, clients and queues", || get(state::state)),
    Operation.route("/debug/blocks", &["get"], "Blocks in the prefix cache of a model", || {
        get(state::blocks)
    }),
    Operation.route(
        "/debug/timeline",
        &["get"],
        "The timeline of the last seconds, as a page",
        || get(timeline::timeline),
    ),
    Operation.route(
        "/debug/lanes",
        &["get"],
        "How busy the devices of a model were in the last seconds",
        || get(timeline::lanes),
    ),
    OpenAi.route("/v1/models", &["get"], "Lists the models", || get(openai::models::list)),
    OpenAi.route("/v1/models/{id}", &["get"], "Describes a model", || get(openai::models::one)),
    OpenAi.route("/v1/chat/completions", &["post"], "Answers a conversation (OpenAI)", || {
        post(answer::<openai::chat::Chat>)
    }),
    OpenAi.route("/v1/completions", &["post"], "Continues texts (OpenAI)", || {
        post(answer::<openai::completions::Completions>)
    }),
    OpenAi.route("/v1/embeddings", &["post"], "Embeds texts (OpenAI)", || {
        post(openai::embeddings::embeddings)
    }),
    OpenAi.route(
        "/v1/responses",
        &["post"],
        "Answers a conversation (OpenAI's responses, text only, not stored)",
        || post(answer::<responses::Responses>),
    ),
    Anthropic.route("/v1/messages", &["post"], "Answers a conversation (Anthropic)", || {
        post(answer::<anthropic::Messages>)
    }),
    Anthropic.route(
        "/v1/messages/count_tokens",
        &["post"],
        "Counts the tokens of a conversation (Anthropic)",
        || post(anthropic::count_tokens),
    ),
    Ollama.route("/api/version", &["get"], "The version (Ollama)", || get(ollama::models::version)),
    Ollama.route("/api/tags", &["get"], "Lists the models (Ollama)", || get(ollama::models::tags)),
    Ollama
        .route("/api/ps", &["get"], "Lists the loaded models (Ollama)", || get(ollama::models::ps)),
    Ollama
        .route("/api/show", &["post"], "Describes a model (Ollama)", || post(ollama::models::show)),
    Ollama.route("/api/pull", &["post"], "Whether a model is offered (Ollama)", || {
        post(ollama::models::pull)
    }),
    Ollama.route("/api/generate", &["post"], "Continues a prompt (Ollama)", || {
        post(answer::<ollama::generate::Generate>)
    }),
    Ollama.route("/api/chat", &["post"], "Answers a conversation (Ollama)", || {
        post(answer::<ollama::chat::Chat>)
    }),
    Ollama.route("/api/embed", &["post"], "Embeds texts (Ollama)", || post(ollama::embed::embed)),
    Ollama.route("/api/embeddings", &["post"], "Embeds one text (Ollama)", || {
        post(ollama::embed::embeddings)
    }),
    LlamaCpp.route("/props", &["get"], "Settings of the first model (llama.cpp)", || {
        get(llama_cpp::props)
    }),
    LlamaCpp.route("/slots", &["get"], "What the first model computes (llama.cpp)", || {
        get(llama_cpp::slots)
    }),
    LlamaCpp.route("/tokenize", &["post"], "Token ids of a text (llama.cpp)", || {
        post(llama_cpp::tokenize)
    }),
    LlamaCpp.route("/detokenize", &["post"], "The text of token ids (llama.cpp)", || {
        post(llama_cpp::detokenize)
    }),
    LlamaCpp.route(
        "/apply-template",
        &["post"],
        "The prompt of a conversation (llama.cpp)",
        || post(llama_cpp::apply_template),
    ),
    LlamaCpp.route(
        "/v1/rerank",
        &["post"],
        "Orders documents by how well they answer a query (Jina, Cohere)",
        || post(rerank::rerank),
    ),
    // The same without a version, as some clients ask for them.
    LlamaCpp.route(
        "/rerank",
        &["post"],
        "Orders documents by how well they answer a query (Jina, Cohere)",
        || post(rerank::rerank),
    ),
    OpenAi.route("/models", &["get"], "Lists the models", || get(openai::models::list)),
    OpenAi.route("/chat/completions", &["post"], "Answers a conversation (OpenAI)", || {
        post(answer::<openai::chat::Chat>)
    }),
    OpenAi.route("/completions", &["post"], "Continues texts (OpenAI)", || {
        post(answer::<openai::completions::Completions>)
    }),
    OpenAi.route("/embeddings", &["post"], "Embeds texts (OpenAI)", || {
        post(openai::embeddings::embeddings)
    }),
];

//! Groups of paths, which a program can choose from.

/// A group of the server's paths; docs/serve.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathGroup {
    /// OpenAI's interface: `/v1/chat/completions`, `/v1/models` and others, also without `/v1`.
    OpenAi,
    /// Anthropic's interface: `/v1/messages` and `/v1/messages/count_tokens`.
    Anthropic,
    /// Ollama's interface: `/api/…`.
    Ollama,
    /// What llama.cpp's server has beside them: `/props`, `/slots`, `/tokenize`, `/detokenize`, `/apply-template`, and
    /// `/v1/rerank`, also without `/v1`.
    LlamaCpp,
    /// The page: `/`. It asks for paths of `OpenAi` and `Operation`.
    Page,
    /// `/health`, `/ready`, `/openapi.json`, `/metrics`, `/grafana.json` and `/debug/…`.
    Operation,
}

impl PathGroup {
    /// All groups.
    pub const ALL: [PathGroup; 6] = [
        PathGroup::OpenAi,
        PathGroup::Anthropic,
        PathGroup::Ollama,
        PathGroup::LlamaCpp,
        PathGroup::Page,
        PathGroup::Operation,
    ];

    /// The groups whose paths the page asks for.
    pub(crate) const OF_PAGE: [PathGroup; 2] = [PathGroup::OpenAi, PathGroup::Operation];
}

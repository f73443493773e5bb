//! Paths of models and references, and helpers.

use std::path::{Path, PathBuf};

use lapwing::models::ModelCache;
use lapwing::{Engine, EngineBuilder, Request, TokenStream};
use serde_json::Value;

pub(crate) const SMOLLM2: &str = "smollm2-135m-instruct";
pub(crate) const GEMMA3: &str = "gemma3-270m";

/// A fetched model.
pub(crate) fn model(name: &str) -> PathBuf {
    ModelCache::open(None).expect("a cache folder").path_of(name).unwrap_or_else(|| {
        panic!("model {name} is not in the cache; run the README's test command, or: lapwing pull {name}")
    })
}

/// A vocabulary file of llama.cpp's source archive.
pub(crate) fn vocabulary(name: &str) -> PathBuf {
    let folder = std::env::var_os("LAPWING_TEST_WORK").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/llama.cpp-sources"),
        PathBuf::from,
    );
    let path = folder.join(format!("llama.cpp/models/ggml-vocab-{name}.gguf"));
    assert!(path.exists(), "{} is missing; run the README's test command", path.display());
    path
}

/// A JSON file of `tests/reference`.
pub(crate) fn reference(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().expect("a list of ids");
    list.iter().map(|v| v.as_u64().expect("an id") as u32).collect()
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// An engine on two threads.
pub(crate) fn builder(name: &str) -> EngineBuilder {
    Engine::builder().model(model(name)).threads(2)
}

/// All ids of a stream, including the end token.
pub(crate) async fn collect_ids(mut stream: TokenStream) -> Vec<u32> {
    let mut ids = Vec::new();
    while let Some(token) = stream.next().await {
        ids.push(token.expect("a token").id);
    }
    ids
}

/// A greedy request that never ends by itself.
pub(crate) fn greedy(text: &str, tokens: usize) -> Request {
    Request::text(text).greedy().ignore_eos().max_tokens(tokens)
}

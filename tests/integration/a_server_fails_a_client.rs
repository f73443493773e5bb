//! What a client of the HTTP server must be able to rely on, with tiny models; `tests/serve` runs the clients that
//! people use.

#![expect(clippy::disallowed_methods, reason = "servers and their clients run beside each other")]

mod client;
#[cfg(feature = "structured")]
mod constraints;
mod fields;
mod interfaces;
mod kv_events;
#[cfg(feature = "structured")]
mod library;
mod limits;
mod meaning;
mod metrics;
mod models;
mod mounted;
#[cfg(feature = "structured")]
mod parts;
mod progress;
mod reranking;
mod returns;
mod shutdown;
#[cfg(feature = "structured")]
mod styles;
mod token_ids;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing::serve::{ServeConfig, ServeError, Server, ServerBuilder};
use lapwing::{Engine, EngineBuilder};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use client::{Answer, Client};

use crate::with_template::with_template;

/// A server that runs until it is stopped.
struct Running {
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), ServeError>>,
}

fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny").join(name)
}

fn local() -> ServeConfig {
    let mut config = ServeConfig::default();
    config.listen = "127.0.0.1:0".to_owned();
    config
}

fn with_llama(config: ServeConfig) -> ServerBuilder {
    let engine = Engine::builder().model(tiny("llama.gguf")).threads(1);
    Server::builder().model("tiny", engine).config(config)
}

/// As [`with_llama`], but a token takes a while, so that a long answer outlives what a test does meanwhile.
fn with_slow_llama(config: ServeConfig) -> ServerBuilder {
    Server::builder().model("tiny", slow("llama.gguf")).config(config)
}

/// A model on an emulated device that reads 20 kB of weights in a millisecond.
fn slow(name: &str) -> EngineBuilder {
    let device = "gpu=throttled:kind=gpu,gflops=10,gbps=0.02,submit=0,idle-submit=0,sync=0";
    let device = device.parse().expect("a device");
    Engine::builder().model(tiny(name)).threads(1).device(device)
}

/// A server of the tiny model with a chat template. `control` takes the place of the last tokens of its vocabulary.
async fn chatting(template: &str, control: &[&str]) -> (Running, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = std::fs::read(tiny("llama.gguf")).expect("a model");
    let bytes = with_control_tokens(with_long_context(bytes), control);
    let model = folder.path().join("plain.gguf");
    std::fs::write(&model, bytes).expect("write");
    let model = with_template(&model, template, folder.path());
    let engine = Engine::builder().model(model).threads(1);
    (start(Server::builder().model("tiny", engine).config(local())).await, folder)
}

/// Where the value of a key begins in a model's file.
fn value_of(bytes: &[u8], key: &str) -> usize {
    let found = bytes.windows(key.len()).position(|part| part == key.as_bytes());
    found.expect("a key") + key.len() + 4
}

/// The model with room for conversations that have functions.
pub(crate) fn with_long_context(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = value_of(&bytes, "llama.context_length");
    bytes[at..at + 4].copy_from_slice(&2048u32.to_le_bytes());
    bytes
}

/// The model with these control tokens as the last ones of its vocabulary.
fn with_control_tokens(mut bytes: Vec<u8>, control: &[&str]) -> Vec<u8> {
    let number = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")) as usize
    };
    // A list begins with the type of its items and their number.
    let kinds = value_of(&bytes, "tokenizer.ggml.token_type") + 12;
    let count = number(&bytes, kinds - 8);
    for nth in count - control.len()..count {
        bytes[kinds + 4 * nth..][..4].copy_from_slice(&3u32.to_le_bytes());
    }
    let mut token = value_of(&bytes, "tokenizer.ggml.tokens") + 12;
    for _ in 0..count - control.len() {
        token += 8 + number(&bytes, token);
    }
    let mut grown = 0;
    for text in control {
        let length = number(&bytes, token);
        let written = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        grown += text.len() - length;
        bytes.splice(token..token + 8 + length, written);
        token += 8 + text.len();
    }
    // The data section is aligned to 32 bytes and must stay so: the name takes what is missing.
    let name = value_of(&bytes, "general.name");
    let (length, more) = (number(&bytes, name), (32 - grown % 32) % 32);
    bytes.splice(name + 8 + length..name + 8 + length, std::iter::repeat_n(b' ', more));
    bytes[name..name + 8].copy_from_slice(&((length + more) as u64).to_le_bytes());
    bytes
}

async fn start(builder: ServerBuilder) -> Running {
    let server = builder.bind().await.expect("a server");
    let client = Client::new(server.address());
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.run(async { drop(stopped.await) }));
    Running { client, stop: Some(stop), task }
}

impl Running {
    /// Stops the server and waits for its end.
    async fn stop(mut self) {
        drop(self.stop.take());
        let ended = tokio::time::timeout(Duration::from_secs(60), self.task).await;
        ended.expect("the server ends").expect("no panic").expect("no error");
    }

    /// The running and waiting requests of the only model, and the KV pages that they lease.
    async fn load(&self) -> (u64, u64) {
        load(&self.client).await
    }

    /// Waits until no request runs or waits.
    async fn idle(&self) {
        self.idle_for(&self.client).await;
    }

    /// As [`idle`](Running::idle), asked with the key of `client`.
    async fn idle_for(&self, client: &Client) {
        until("no request runs", async || load(client).await == (0, 0)).await;
    }
}

/// Waits until `holds`. A minute is long on a busy machine, too.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..1200 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within a minute: {what}");
}

async fn load(client: &Client) -> (u64, u64) {
    let state = client.get("/debug/state").await.json();
    let state = &state["models"][0]["state"];
    let number = |name: &str| state[name].as_u64().unwrap_or_default();
    (number("running") + number("waiting"), number("kv_pages_leased"))
}

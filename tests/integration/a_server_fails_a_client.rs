//! What a client of the HTTP server must be able to rely on, with tiny models; `tests/serve` runs the clients that
//! people use.

#![expect(clippy::disallowed_methods, reason = "servers and their clients run beside each other")]

mod client;
mod interfaces;
mod limits;
mod models;
#[cfg(feature = "structured")]
mod parts;
mod shutdown;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing::serve::{ServeConfig, ServeError, Server, ServerBuilder};
use lapwing::{Engine, EngineBuilder};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use client::{Answer, Client};

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

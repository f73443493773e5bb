//! What a subscriber of `tracing` sees of requests, chunks, stages and HTTP requests. A process of its own: its subscriber is
//! global, since the engine's actors have threads of their own.

#![expect(clippy::disallowed_methods, reason = "servers and their clients run beside each other")]

mod a_chunk_has_no_request;
#[cfg(feature = "serve")]
mod a_client_loses_its_trace;
mod a_request_ends_unseen;
mod a_timeline_differs;
mod something_is_made_for_nobody;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lapwing::{Engine, EngineBuilder, Prompt, Request, TokenStream};

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

/// An engine of a tiny model on the CPU.
fn plain() -> EngineBuilder {
    Engine::builder().model(tiny()).threads(1)
}

/// As [`plain`], with a token that takes a while, so that an answer outlives what a test does meanwhile.
fn slow() -> EngineBuilder {
    let device = "gpu=throttled:kind=gpu,gflops=10,gbps=0.02,submit=0,idle-submit=0,sync=0";
    plain().device(device.parse().expect("a device"))
}

/// Ids of a prompt of five tokens.
const PROMPT: [u32; 5] = [1, 5, 9, 4, 7];

/// A request for exactly so many tokens.
fn request(tokens: usize) -> Request {
    let prompt = Prompt::Ids(PROMPT.to_vec());
    Request::new(prompt).greedy().ignore_eos().max_tokens(tokens)
}

/// Number of the tokens of a stream, to its end.
async fn read(mut stream: TokenStream) -> usize {
    let mut tokens = 0;
    while let Some(token) = stream.next().await {
        token.expect("a token");
        tokens += 1;
    }
    tokens
}

/// Waits until `holds`. A minute is long on a busy machine, too.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within a minute: {what}");
}

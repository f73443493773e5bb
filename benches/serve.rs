//! What HTTP adds: time to first token and tokens per second through the server on loopback, beside those of the library, with
//! 1 and 8 streams. Each stream sends its requests one after another, with answers of different lengths, so that requests
//! arrive while others are decoded. Pairs alternate in one process, on two engines of the same model; medians of the pairs are
//! printed, and for the first token the median of all requests of a pair.
//!
//! ```text
//! cargo bench -p lapwing --bench serve -- FILE.gguf [PAIRS]
//! ```

#![expect(clippy::disallowed_methods, reason = "it measures real time, and runs a server")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lapwing::serve::{ServeConfig, Server};
use lapwing::{Engine, Prompt, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Tokens of each prompt.
const PROMPT: usize = 64;
/// Requests of each stream of a pair.
const REQUESTS: usize = 6;

/// Tokens of an answer: 32 to 95.
fn answer(stream: usize, request: usize) -> usize {
    32 + (17 * (7 * stream + 13 * request)) % 64
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("usage: cargo bench -p lapwing --bench serve -- FILE.gguf [PAIRS]");
        return Ok(());
    };
    let pairs: usize = args.next().map_or(Ok(11), |arg| arg.parse())?;
    let builder = || Engine::builder().model(&model).context(1024).cache_tokens(16 * 256);
    let engine = builder().build().await?;
    let mut config = ServeConfig::default();
    config.listen = "127.0.0.1:0".to_owned();
    let server = Server::builder().model("model", builder()).config(config).bind().await?;
    let address = server.address();
    server.load().await?;
    tokio::spawn(server.run(std::future::pending()));
    for streams in [1, 8] {
        let (mut later, mut slower, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..=pairs {
            // The order alternates, so that slow changes of the machine cancel out.
            let (library, http) = if pair % 2 == 0 {
                let library = all(streams, |at| of_library(engine.clone(), at, pair)).await?;
                (library, all(streams, |at| of_server(address, at, pair)).await?)
            } else {
                let http = all(streams, |at| of_server(address, at, pair)).await?;
                (all(streams, |at| of_library(engine.clone(), at, pair)).await?, http)
            };
            // The first pair warms up.
            if pair > 0 {
                later.push((http.0 - library.0) * 1e3);
                slower.push(http.1 / library.1);
                let requests = (0..streams).flat_map(|at| (0..REQUESTS).map(move |of| (at, of)));
                let tokens: usize = requests.map(|(at, of)| answer(at, of)).sum();
                rates.push(tokens as f64 / library.1);
            }
        }
        println!(
            "{streams} streams: library {:.1} tokens/s; HTTP adds {:.3} ms to the first token and takes {:.4} of the time",
            median(&mut rates),
            median(&mut later),
            median(&mut slower),
        );
    }
    Ok(())
}

/// Runs streams together: median time to first token, and time until all have ended, in seconds.
async fn all<F>(streams: usize, one: impl Fn(usize) -> F) -> Result<(f64, f64)>
where
    F: Future<Output = Result<Vec<Duration>>> + Send + 'static,
{
    let began = Instant::now();
    let tasks: Vec<_> = (0..streams).map(|at| tokio::spawn(one(at))).collect();
    let mut firsts = Vec::new();
    for task in tasks {
        firsts.extend(task.await??.iter().map(Duration::as_secs_f64));
    }
    Ok((median(&mut firsts), began.elapsed().as_secs_f64()))
}

/// Ids of a prompt that no other request of a pair has.
fn prompt(pair: usize, stream: usize, request: usize) -> Vec<u32> {
    let seed = 1000 * (stream + 8 * (request + REQUESTS * pair));
    (0..PROMPT).map(|token| (300 + 7 * token + seed) as u32 % 40_000).collect()
}

/// Times to the first token of a stream's requests.
async fn of_library(engine: Engine, stream: usize, pair: usize) -> Result<Vec<Duration>> {
    let mut firsts = Vec::new();
    for at in 0..REQUESTS {
        let request = Request::new(Prompt::Ids(prompt(pair, stream, at)))
            .greedy()
            .ignore_eos()
            .max_tokens(answer(stream, at))
            .prefix_cache(false);
        let began = Instant::now();
        let mut tokens = engine.generate(request).await?;
        let mut first = None;
        while let Some(token) = tokens.next().await {
            token?;
            first.get_or_insert_with(|| began.elapsed());
        }
        firsts.extend(first);
    }
    Ok(firsts)
}

/// The same, each request over a connection of its own.
async fn of_server(address: SocketAddr, stream: usize, pair: usize) -> Result<Vec<Duration>> {
    let mut firsts = Vec::new();
    for at in 0..REQUESTS {
        let body = format!(
            r#"{{"prompt":{:?},"max_tokens":{},"temperature":0,"ignore_eos":true,"stream":true,"cache_prompt":false}}"#,
            prompt(pair, stream, at),
            answer(stream, at),
        );
        let head = format!(
            "POST /v1/completions HTTP/1.0\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let began = Instant::now();
        let mut connection = TcpStream::connect(address).await?;
        connection.set_nodelay(true)?;
        connection.write_all(format!("{head}{body}").as_bytes()).await?;
        let (mut first, mut bytes) = (None, Vec::new());
        while connection.read_buf(&mut bytes).await? > 0 {
            if first.is_none() && bytes.windows(6).any(|part| part == b"data: ") {
                first = Some(began.elapsed());
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if !text.ends_with("data: [DONE]\n\n") {
            return Err(format!("the answer has no end: {text}").into());
        }
        firsts.extend(first);
    }
    Ok(firsts)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

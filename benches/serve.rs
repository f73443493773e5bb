//! What HTTP adds: time to first token and tokens per second through the server on loopback, beside those of the library, with
//! 1 and 8 streams. Each stream sends its requests one after another, with answers of different lengths, so that requests
//! arrive while others are decoded. Pairs alternate in one process, on two engines of the same model.
//!
//! The time to first token varies between requests by more than HTTP adds. So each request's time outside the engine is
//! measured: its time to first token at the client, less the one that the engine reports for the same request. HTTP adds the
//! difference between the median of the server's requests and that of the library's. The medians of the time to first token
//! itself are compared, too.
//!
//! The server has a thread of its own, the client has the other runtime.
//!
//! ```text
//! cargo bench -p lapwing --bench serve -- FILE.gguf [PAIRS]
//! ```

#![expect(clippy::disallowed_methods, reason = "it measures real time, and runs a server")]

use std::net::SocketAddr;
use std::time::Instant;

use lapwing::serve::{ServeConfig, Server};
use lapwing::{Engine, EngineBuilder, Prompt, Request};
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

/// Seconds from the begin of a request to its first token.
#[derive(Clone, Copy)]
struct First {
    /// At the client.
    total: f64,
    /// Of these, the seconds in the engine.
    engine: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("usage: cargo bench -p lapwing --bench serve -- FILE.gguf [PAIRS]");
        return Ok(());
    };
    let pairs: usize = args.next().map_or(Ok(11), |arg| arg.parse())?;
    let builder = || Engine::builder().model(&model).context(1024).cache_tokens(16 * 256);
    let engine = builder().build().await?;
    let address = serve(builder()).await?;
    for streams in [1, 8] {
        let (mut later, mut slower, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
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
                let total = |firsts: &[First]| median_of(firsts, |first| first.total);
                later.push((total(&http.0) - total(&library.0)) * 1e3);
                inside.extend(library.0);
                outside.extend(http.0);
                slower.push(http.1 / library.1);
                let requests = (0..streams).flat_map(|at| (0..REQUESTS).map(move |of| (at, of)));
                let tokens: usize = requests.map(|(at, of)| answer(at, of)).sum();
                rates.push(tokens as f64 / library.1);
            }
        }
        let besides = |first: &First| (first.total - first.engine) * 1e3;
        let (library, http) = (median_of(&inside, besides), median_of(&outside, besides));
        println!(
            "{streams} streams: library {:.1} tokens/s; HTTP takes {:.4} of the time. Time to first token outside the \
             engine: library {library:.3} ms, HTTP {http:.3} ms, so HTTP adds {:.3} ms (medians of the whole time: {:.3} ms)",
            median(&mut rates),
            median(&mut slower),
            http - library,
            median(&mut later),
        );
    }
    Ok(())
}

/// Starts a server on a thread of its own.
async fn serve(engine: EngineBuilder) -> Result<SocketAddr> {
    let (tell, address) = tokio::sync::oneshot::channel();
    let serve = async move || -> Result<()> {
        let mut config = ServeConfig::default();
        config.listen = "127.0.0.1:0".to_owned();
        let server = Server::builder().model("model", engine).config(config).bind().await?;
        server.load().await?;
        let _ = tell.send(server.address());
        Ok(server.run(std::future::pending()).await?)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        if let Err(error) = runtime.block_on(serve()) {
            eprintln!("the server has failed: {error}");
        }
    })?;
    Ok(address.await?)
}

/// Runs streams together: times to first token, and the seconds until all have ended.
async fn all<F>(streams: usize, one: impl Fn(usize) -> F) -> Result<(Vec<First>, f64)>
where
    F: Future<Output = Result<Vec<First>>> + Send + 'static,
{
    let began = Instant::now();
    let tasks: Vec<_> = (0..streams).map(|at| tokio::spawn(one(at))).collect();
    let mut firsts = Vec::new();
    for task in tasks {
        firsts.extend(task.await??);
    }
    Ok((firsts, began.elapsed().as_secs_f64()))
}

/// Ids of a prompt that no other request of a pair has.
fn prompt(pair: usize, stream: usize, request: usize) -> Vec<u32> {
    let seed = 1000 * (stream + 8 * (request + REQUESTS * pair));
    (0..PROMPT).map(|token| (300 + 7 * token + seed) as u32 % 40_000).collect()
}

/// Times to the first token of a stream's requests.
async fn of_library(engine: Engine, stream: usize, pair: usize) -> Result<Vec<First>> {
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
            first.get_or_insert_with(|| began.elapsed().as_secs_f64());
        }
        let times = tokens.summary().ok_or("an answer has no end")?.times;
        let total = first.ok_or("an answer has no token")?;
        firsts.push(First { total, engine: times.ttft().as_secs_f64() });
    }
    Ok(firsts)
}

/// The same, each request over a connection of its own.
async fn of_server(address: SocketAddr, stream: usize, pair: usize) -> Result<Vec<First>> {
    let mut firsts = Vec::new();
    for at in 0..REQUESTS {
        let body = format!(
            r#"{{"prompt":{:?},"max_tokens":{},"temperature":0,"ignore_eos":true,"stream":true,"cache_prompt":false,"stream_options":{{"include_usage":true}}}}"#,
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
                first = Some(began.elapsed().as_secs_f64());
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if !text.ends_with("data: [DONE]\n\n") {
            return Err(format!("the answer has no end: {text}").into());
        }
        let (prefill, queued) = (number(&text, "prompt_ms")?, number(&text, "queued_ms")?);
        let total = first.ok_or("an answer has no token")?;
        firsts.push(First { total, engine: (prefill + queued) / 1e3 });
    }
    Ok(firsts)
}

/// The last number of this name in an answer.
fn number(text: &str, name: &str) -> Result<f64> {
    let (_, rest) = text.rsplit_once(&format!("\"{name}\":")).ok_or("an answer has no times")?;
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    Ok(rest[..end].parse()?)
}

fn median_of(firsts: &[First], of: impl Fn(&First) -> f64) -> f64 {
    median(&mut firsts.iter().map(of).collect::<Vec<_>>())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

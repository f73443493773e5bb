//! Speed with packed weights in a mapped file, relative to weights that were read: of prompts, of decode, and of starts.
//!
//! ```text
//! cargo bench -p lapwing --bench mapped -- FILE.gguf [ROUNDS] [TOKENS]
//! ```
//!
//! One engine of each kind is open, and both compute in turn, in another order in each round. A ratio is the median over the rounds of the
//! mapped engine's speed divided by the other's in the same round, so slow changes of the machine cancel out. Starts are those
//! of engines beside these, with the file in the system's cache.
//!
//! Fails if decode reaches less than [`DECODE_MIN`], or if the file cannot be mapped.

use std::time::Duration;

use lapwing::{Engine, PackedMemory, Prompt, Request, Shutdown};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Smallest accepted speed of decode, relative to that with weights that were read.
const DECODE_MIN: f64 = 0.98;
/// Tokens of a prompt.
const PROMPT: u32 = 512;
const KINDS: [PackedMemory; 2] = [PackedMemory::Read, PackedMemory::Mapped];

/// Times of an engine in a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Duration,
    prompt: Duration,
    decode: Duration,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("usage: cargo bench -p lapwing --bench mapped -- FILE.gguf [ROUNDS] [TOKENS]");
        return Ok(());
    };
    let rounds: usize = args.next().map_or(Ok(9), |arg| arg.parse())?;
    let tokens: usize = args.next().map_or(Ok(128), |arg| arg.parse())?;
    let cache = tempfile::tempdir()?;
    let open = async |kind: PackedMemory| {
        let builder = Engine::builder().model(&model).context(1024).prefix_cache(false);
        builder.packed_cache(cache.path()).packed_memory(kind).build().await
    };
    // The first packs, the second checks and leaves a marker.
    for _ in 0..2 {
        open(PackedMemory::Mapped).await?.shutdown(Shutdown::Now).await?;
    }
    let engines = [open(KINDS[0]).await?, open(KINDS[1]).await?];
    let packed = engines[1].packed_weights();
    if let Some(reason) = &packed.not_mapped {
        return Err(format!("the weights are not mapped: {reason}").into());
    }
    println!("of all bytes checked at a start: {}", if packed.checked { "all" } else { "none" });
    let mut found = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for at in [round % 2, (round + 1) % 2] {
            let engine = &engines[at];
            let clock = engine.recorder().clock();
            let begin = clock.now();
            let beside = open(KINDS[at]).await?;
            let start = clock.now() - begin;
            beside.shutdown(Shutdown::Now).await?;
            let prompt = times(engine, PROMPT, 1).await?.0;
            let decode = times(engine, 1, tokens).await?.1;
            // The first round warms up.
            if round > 0 {
                found[at].push(Round { start, prompt, decode });
            }
        }
    }
    println!("{:>8} {:>12} {:>12} {:>8}", "", "read, ms", "mapped, ms", "speed");
    let row = |name: &str, time: fn(&Round) -> Duration| {
        let [read, mapped] =
            found.each_ref().map(|rounds| median(rounds.iter().map(|r| ms(time(r)))));
        let pairs = found[0].iter().zip(&found[1]);
        let ratio = median(pairs.map(|(read, mapped)| ms(time(read)) / ms(time(mapped))));
        println!("{name:>8} {read:>12.2} {mapped:>12.2} {ratio:>8.3}");
        ratio
    };
    row("start", |round| round.start);
    row("prompt", |round| round.prompt);
    let decode = row("decode", |round| round.decode);
    match decode < DECODE_MIN {
        true => Err(format!("mapped weights cost too much: decode is below {DECODE_MIN}").into()),
        false => Ok(()),
    }
}

/// Time to the first token of a prompt, and from there to the last of `tokens`.
async fn times(engine: &Engine, prompt: u32, tokens: usize) -> Result<(Duration, Duration)> {
    let ids = (0..prompt).map(|at| 100 + at * 7919 % 20_000).collect();
    let request = Request::new(Prompt::Ids(ids)).greedy().ignore_eos().max_tokens(tokens + 1);
    let clock = engine.recorder().clock();
    let begin = clock.now();
    let mut stream = engine.generate(request).await?;
    let (mut first, mut last) = (None, begin);
    while let Some(token) = stream.next().await {
        token?;
        last = clock.now();
        first.get_or_insert(last);
    }
    let first = first.ok_or("no token")?;
    Ok((first - begin, last - first))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

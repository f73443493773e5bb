//! What recording costs in decode: one engine, alternately without and with recording, tokens per
//! second of each run, and the ratio of the medians.
//!
//! ```text
//! cargo bench -p lapwing --bench trace_cost -- FILE.gguf [PAIRS] [TOKENS]
//! ```

use lapwing::traces::Scope;
use lapwing::traces::metrics::Spread;
use lapwing::{Engine, Prompt, Request};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("name a model: cargo bench -p lapwing --bench trace_cost -- FILE.gguf");
        return Ok(());
    };
    let pairs: usize = args.next().map_or(Ok(15), |arg| arg.parse())?;
    let tokens: usize = args.next().map_or(Ok(128), |arg| arg.parse())?;
    let engine = Engine::builder().model(model).context(tokens + 2).build().await?;
    decode(&engine, tokens).await?;
    let (mut off, mut on, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut events = 0;
    for pair in 0..pairs {
        // Either goes first as often as the other.
        let mut speeds = [0.0; 2];
        for recorded in [pair % 2 == 1, pair % 2 == 0] {
            engine.recorder().set_scope(if recorded { Scope::All } else { Scope::Off });
            speeds[usize::from(recorded)] = decode(&engine, tokens).await?;
            events += engine.recorder().take().events.len();
        }
        off.push(speeds[0]);
        on.push(speeds[1]);
        ratios.push(speeds[1] / speeds[0]);
    }
    let median = |values: &[f64]| Spread::of(values).map_or(f64::NAN, |spread| spread.median);
    println!("decode, {tokens} tokens, {pairs} pairs of runs");
    println!("off: {:8.2} tok/s (median)", median(&off));
    println!("on:  {:8.2} tok/s (median), {} events a run", median(&on), events / pairs.max(1));
    println!(
        "on/off: {:.4} by medians, {:.4} as median of the pairs",
        median(&on) / median(&off),
        median(&ratios)
    );
    println!("events dropped: {}", engine.recorder().dropped());
    Ok(())
}

/// Tokens per second after the first one.
async fn decode(engine: &Engine, tokens: usize) -> Result<f64> {
    let bos = engine.tokenizer().bos().unwrap_or(0);
    let request = Request::new(Prompt::Ids(vec![bos])).greedy().ignore_eos().max_tokens(tokens);
    let mut stream = engine.generate(request).await?;
    while let Some(token) = stream.next().await {
        token?;
    }
    let summary = stream.summary().ok_or("the stream has no end")?;
    Ok(summary.stations.decode_tokens_per_second())
}

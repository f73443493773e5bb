//! Cost of recording during decode. In one generation, recording is switched on and off alternately
//! every few tokens, so that adjacent times are compared and slow changes of the machine cancel out.
//! Prints the decode speed with and without recording, from the median gap between two tokens, and
//! their ratio. Fails if the ratio is below [`RATIO_MIN`].
//!
//! ```text
//! cargo bench -p lapwing --bench trace_cost -- FILE.gguf [TOKENS]
//! ```

use lapwing::traces::Scope;
use lapwing::{Engine, Prompt, Request};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Tokens between two switches.
const BLOCK: usize = 4;
/// Smallest accepted speed with recording, relative to the speed without.
const RATIO_MIN: f64 = 0.99;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("usage: cargo bench -p lapwing --bench trace_cost -- FILE.gguf");
        return Ok(());
    };
    let tokens: usize = args.next().map_or(Ok(1024), |arg| arg.parse())?;
    let engine = Engine::builder().model(model).context(tokens + 2).build().await?;
    let recorder = engine.recorder();
    let bos = engine.tokenizer().bos().unwrap_or(0);
    let request = Request::new(Prompt::Ids(vec![bos])).greedy().ignore_eos().max_tokens(tokens);
    let mut stream = engine.generate(request).await?;
    let mut gaps = [Vec::new(), Vec::new()];
    let mut last = recorder.clock().now();
    let mut count = 0;
    while let Some(token) = stream.next().await {
        token?;
        let now = recorder.clock().now();
        let on = recorder.scope() == Scope::All;
        // Skips the first gap after a switch, which is part on and part off, and the first blocks,
        // which warm up.
        if count % BLOCK >= 2 && count > 2 * BLOCK {
            gaps[usize::from(on)].push((now - last).as_nanos() as u64);
        }
        last = now;
        count += 1;
        if count % BLOCK == 0 {
            recorder.set_scope(if on { Scope::Off } else { Scope::All });
        }
    }
    let events = recorder.take();
    let [off, on] = gaps.map(|mut gaps| {
        gaps.sort_unstable();
        gaps
    });
    let at = |gaps: &[u64], share: usize| gaps.get(gaps.len() * share / 100).copied().unwrap_or(1);
    println!("{} gaps without recording, {} with recording", off.len(), on.len());
    let mut median = 1.0;
    for (name, share) in [("fastest tenth", 10), ("median", 50)] {
        let (off, on) = (at(&off, share) as f64, at(&on, share) as f64);
        median = off / on;
        println!(
            "{name}: off {:.2} tok/s, on {:.2} tok/s, on/off {:.4}",
            1e9 / off,
            1e9 / on,
            off / on
        );
    }
    println!("{} events, {} dropped", events.events.len(), events.dropped);
    if median < RATIO_MIN {
        return Err(format!("recording costs too much: on/off is below {RATIO_MIN}").into());
    }
    Ok(())
}

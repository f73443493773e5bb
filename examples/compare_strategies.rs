//! Lesson: measure the same prompts with several strategies, and show them as a table and a page.
//!
//! ```text
//!                    ┌ cpu-only ───── engine ─ 64, 300 tokens ─┐
//!  Compare ──────────┼ sequence-cut ─ engine ─ 64, 300 tokens ─┼──► Comparison ─► table, page
//!  (devices, lengths)└ auto ───────── engine ─ 64, 300 tokens ─┘    (timelines, figures)
//! ```
//!
//! One engine exists at a time, so engines cannot disturb each other. Every strategy gets the same
//! prompts and must answer with the same tokens.

use lapwing::Engine;
use lapwing::compare::Compare;
use lapwing::devices::DeviceSpec;
use lapwing::models::{FetchEvent, ModelCache, ModelName, fetch};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = ModelName::default_model();
    let model = fetch(&ModelCache::open(None)?, &name, &mut |_: FetchEvent| {}).await?;

    let mut engine = Engine::builder().model(model);
    for device in DeviceSpec::list("phone")? {
        println!("{device}");
        engine = engine.device(device);
    }
    let compare = Compare::new(engine)
        .strategy("gpu-only")
        .strategy("npu-padding")
        .strategy("sequence-cut")
        .strategy("auto")
        .lengths([64, 300])
        .tokens(2)
        .repetitions(1);
    let compared = compare.run(|progress| {
        if progress.tokens == 0 {
            println!("measuring {} ({} of {})", progress.strategy, progress.done, progress.all);
        }
    });
    let compared = compared.await?;

    for length in &compared.lengths {
        assert!(length.same_tokens, "a strategy changed the answer");
        println!("\n{} tokens", length.tokens);
        for run in &length.runs {
            let figures = run.figures();
            let overlap = figures.overlap.unwrap_or(0.0) * 100.0;
            println!(
                "  {:<14} {:>8.1} ms to first token, overlap {overlap:>4.1} %, {}",
                figures.strategy, figures.ttft_ms, figures.reason
            );
        }
        println!("  fastest: {}", length.runs[length.fastest].strategy);
    }
    std::fs::create_dir_all("target")?;
    std::fs::write("target/strategies.html", compared.page()?)?;
    println!("\nall timelines, side by side: target/strategies.html");
    Ok(())
}

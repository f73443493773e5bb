//! Lesson: an async program asks a model and prints the answer as it comes, while its own
//! work goes on on the same runtime.
//!
//! ```text
//!  ticker ──┐
//!           ├── one tokio thread          engine's own threads
//!  answer ──┘◄───────── tokens ────────── scheduler ─► cpu worker
//! ```

use std::io::Write;
use std::time::Duration;

use lapwing::models::{FetchEvent, ModelCache, ModelName, fetch};
use lapwing::{Engine, Request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = ModelCache::open(None)?;
    let mut progress = |_: FetchEvent| {};
    let model = fetch(&cache, &ModelName::default_model(), &mut progress).await?;
    let engine = Engine::builder().model(model).build().await?;

    let request = Request::ask("Name three birds that wade.").greedy().max_tokens(48);
    let mut answer = engine.generate(request).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let mut ticked = 0;
    loop {
        tokio::select! {
            token = answer.next() => match token {
                Some(token) => print!("{}", token?.text),
                None => break,
            },
            _ = ticks.tick() => ticked += 1,
        }
        std::io::stdout().flush()?;
    }
    println!("\n(the program's own clock ticked {ticked} times meanwhile)");
    Ok(())
}

//! Lesson: an async program prints a model's answer as it is generated, while its own work continues.
//!
//! ```text
//!  ticker ──┐
//!           ├── one tokio thread          engine's own threads
//!  answer ──┘◄───────── tokens ────────── scheduler ─► cpu worker
//! ```

use std::{io::Write, time::Duration};

use lapwing::{Engine, Request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder().model_named("smollm2").build().await?;

    let request = Request::ask("What is gravity?").greedy().max_tokens(48);
    let mut answer = engine.generate(request).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
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
    println!("\n(meanwhile the program's own clock ticked {ticked} times)");
    Ok(())
}

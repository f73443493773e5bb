//! Lesson: a drafter of your own proposes tokens, and the model verifies them.
//!
//! ```text
//!  without    model ─► one ─► model ─► two ─► model ─► three ─►
//!  with       drafter: "two three four"
//!             model ─► one two three four ─► model ─► …          one pass for four tokens
//! ```
//!
//! A drafter knows something of the text to come. This one remembers an answer: where the text ends as a
//! part of that answer, it proposes what followed there. The second question is a little different, so some
//! proposals are wrong. They change nothing: the model accepts a token only if it would have chosen it
//! itself. The answers with and without drafts are compared.

use lapwing::draft::{DraftChoice, DraftStats, Drafter};
use lapwing::{Engine, Request};

/// Proposes what followed the last tokens in a remembered text.
#[derive(Debug)]
struct Remembered(Vec<u32>);

/// Tokens that must be the same.
const MATCH: usize = 2;

impl Drafter for Remembered {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        let Some(last) = ids.last_chunk::<MATCH>() else { return Vec::new() };
        let found = self.0.windows(MATCH).position(|window| window == last);
        let after = found.map_or(&[][..], |at| &self.0[at + MATCH..]);
        after.iter().copied().take(most).collect()
    }
}

/// The ids and the text of an answer, its tokens per second, and what the drafts did.
type Answer = (Vec<u32>, String, f64, Option<DraftStats>);

async fn ask(engine: &Engine, question: &str) -> Result<Answer, lapwing::Error> {
    let mut stream = engine.generate(Request::ask(question).greedy().max_tokens(96)).await?;
    let (mut ids, mut text) = (Vec::new(), String::new());
    while let Some(token) = stream.next().await {
        let token = token?;
        ids.push(token.id);
        text.push_str(&token.text);
    }
    let summary = stream.summary();
    let speed = summary.map_or(0.0, |summary| summary.times.decode_tokens_per_second());
    Ok((ids, text, speed, summary.and_then(|summary| summary.drafts.clone())))
}

#[tokio::main]
async fn main() -> Result<(), lapwing::Error> {
    let plain = Engine::builder().model_named("smollm2").build().await?;
    let (remembered, ..) = ask(&plain, "List the planets of the solar system.").await?;
    let draft = DraftChoice::made_by("remembered", move || Remembered(remembered.clone()));
    let drafted = Engine::builder().model_named("smollm2").draft(draft).build().await?;

    let question = "List all the planets of the solar system.";
    let (_, without, before, _) = ask(&plain, question).await?;
    let (_, with, after, drafts) = ask(&drafted, question).await?;
    println!("{with}\n\nwithout drafts {before:6.1} tokens/s\nwith drafts    {after:6.1} tokens/s");
    if let Some(drafts) = drafts {
        println!(
            "{} of {} drafted tokens accepted, {:.2} tokens per pass",
            drafts.accepted,
            drafts.drafted,
            drafts.tokens_per_step()
        );
    }
    assert_eq!(with, without, "drafts change no token");
    Ok(())
}

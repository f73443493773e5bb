//! What a rejected draft costs: passes that verify a draft, of which the last tokens are rejected, beside passes whose
//! whole draft is accepted.
//!
//! ```text
//! cargo bench -p lapwing --bench rollback -- FILE.gguf [ROUNDS] [PASSES] [PROMPT]
//! ```
//!
//! The model's own tokens are generated first, behind a random prompt. Then each pass verifies a draft of eight of them, in which the
//! last 0, 1, 4 or 8 are wrong. Each pass begins where the one before was rolled back to. The time of a pass is that of the
//! answer's tokens by the number of passes; rounds alternate, and the least time of each counts.
//!
//! Fails if passes with rejected tokens take more than [`LONGER_MAX`] times as long as those without.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapwing::draft::{DraftChoice, Drafter};
use lapwing::{Engine, Prompt, Request};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Most that a pass may take, as a multiple of one whose draft is accepted.
const LONGER_MAX: f64 = 1.03;
/// Tokens of a draft.
const DRAFT: usize = 8;
/// How many of them are wrong.
const WRONG: [usize; 4] = [0, 1, 4, 8];

/// Proposes the true tokens of an answer, the last ones of a draft changed.
#[derive(Debug)]
struct Known(Arc<Mutex<Truth>>);

/// An answer and how much of a draft of it is wrong.
#[derive(Debug, Default)]
struct Truth {
    prompt: usize,
    ids: Vec<u32>,
    wrong: usize,
}

impl Drafter for Known {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        let Ok(truth) = self.0.lock() else { return Vec::new() };
        let known = truth.ids.iter().skip(ids.len() - truth.prompt).copied();
        let mut draft: Vec<u32> = known.take(most.min(DRAFT)).collect();
        let right = draft.len().saturating_sub(truth.wrong);
        draft[right..].iter_mut().for_each(|id| *id ^= 1);
        draft
    }
}

/// Least time of a pass, and passes with their tokens of one answer.
#[derive(Clone, Copy, Debug)]
struct Passes {
    time: Duration,
    count: usize,
    tokens: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(model) = args.next() else {
        eprintln!("give a model: cargo bench -p lapwing --bench rollback -- FILE.gguf");
        return Ok(());
    };
    let rounds: usize = args.next().map_or(Ok(7), |rounds| rounds.parse())?;
    let passes: usize = args.next().map_or(Ok(24), |passes| passes.parse())?;
    let prompt: usize = args.next().map_or(Ok(200), |prompt| prompt.parse())?;
    let truth = Arc::new(Mutex::new(Truth { prompt, ..Truth::default() }));
    let own = Arc::clone(&truth);
    let draft = DraftChoice::made_by("known", move || Known(Arc::clone(&own))).length(DRAFT);
    // The first token follows the prompt.
    let longest = 1 + passes * (DRAFT + 1);
    let builder = Engine::builder().model(model).context(prompt + longest + DRAFT + 1);
    let engine = builder.prefix_cache(false).draft(draft).build().await?;
    let ids: Vec<u32> = (0..prompt as u32).map(|at| 100 + at * 7919 % 20_000).collect();
    let (answer, _) = generate(&engine, &ids, longest + DRAFT, false).await?;
    truth.lock().map_err(|_| "the answer")?.ids = answer;
    let mut least: [Option<Passes>; WRONG.len()] = [None; WRONG.len()];
    for round in 0..=rounds {
        for (wrong, least) in WRONG.into_iter().zip(&mut least) {
            truth.lock().map_err(|_| "the answer")?.wrong = wrong;
            let found = measure(&engine, &ids, 1 + passes * (DRAFT + 1 - wrong)).await?;
            // The first round warms up.
            if round > 0 && least.is_none_or(|least| found.time < least.time) {
                *least = Some(found);
            }
        }
    }
    report(least)
}

/// Prints the table.
fn report(least: [Option<Passes>; WRONG.len()]) -> Result<()> {
    println!(
        "| rejected of {DRAFT} | ms a pass | / none rejected | passes | tokens |\n|---|---|---|---|---|"
    );
    let (mut base, mut missed) = (None, Vec::new());
    for (wrong, passes) in WRONG.into_iter().zip(least) {
        let Passes { time, count, tokens } = passes.ok_or("no round")?;
        let time = time.as_secs_f64() * 1e3;
        let ratio = time / *base.get_or_insert(time);
        println!("| {wrong} | {time:.3} | {ratio:.3} | {count} | {tokens} |");
        if ratio > LONGER_MAX {
            missed.push(format!("{wrong} of {DRAFT} rejected: {ratio:.3} times as long as none"));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n").into()) }
}

/// The time of the passes of an answer behind its first one, which follows the prompt.
async fn measure(engine: &Engine, prompt: &[u32], tokens: usize) -> Result<Passes> {
    let (ids, (time, passes)) = generate(engine, prompt, tokens, true).await?;
    let count = passes.ok_or("no drafts")?;
    Ok(Passes { time: time / count as u32, count, tokens: ids.len() })
}

/// The ids of an answer, and the time of its decode steps with their number.
async fn generate(
    engine: &Engine,
    prompt: &[u32],
    tokens: usize,
    drafts: bool,
) -> Result<(Vec<u32>, (Duration, Option<usize>))> {
    let request = Request::new(Prompt::Ids(prompt.to_vec())).greedy().ignore_eos();
    let mut stream = engine.generate(request.max_tokens(tokens).drafts(drafts)).await?;
    let mut ids = Vec::new();
    while let Some(token) = stream.next().await {
        ids.push(token?.id);
    }
    let summary = stream.summary().ok_or("a summary")?;
    let steps = summary.drafts.as_ref().map(|drafts| drafts.steps);
    Ok((ids, (summary.times.decode(), steps)))
}

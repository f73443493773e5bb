//! Structured output: how many answers of a model follow their JSON schema, and what that costs.
//!
//! The model answers several times with each schema of `tests/support/schemas.json`, at temperature 1. Each
//! constrained answer is paired with one to the same prompt without grammar, of about as many tokens, in the same
//! run; the order alternates. Prints the share of answers that are valid for their schema, and the median ratio of the decode
//! speeds of a pair, with the quartiles. Fails if an answer is not valid.
//!
//! ```text
//! cargo bench -p lapwing --bench structured -- [MODEL] [ANSWERS] [TOP_K]
//! ```

use lapwing::structured::Grammar;
use lapwing::{EndReason, Engine, Request, Summary};
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Most tokens of an answer.
const TOKENS: usize = 400;

/// An answer to a question.
struct Answer {
    text: String,
    summary: Summary,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let model = args.next().unwrap_or_else(|| "smollm2-135m-instruct".to_owned());
    let answers: usize = args.next().map_or(Ok(500), |arg| arg.parse())?;
    let top_k: usize = args.next().map_or(Ok(40), |arg| arg.parse())?;
    let engine = Engine::builder().model_named(&model).context(1024).build().await?;
    let rows: Vec<Value> = serde_json::from_str(include_str!("../tests/support/schemas.json"))?;
    let (mut valid, mut cut) = (0, 0);
    let mut ratios = Vec::new();
    for number in 0..answers {
        let row = &rows[number % rows.len()];
        let (ask, schema) = (row["ask"].as_str().unwrap_or_default(), &row["schema"]);
        let prompt = format!("Give {ask} as JSON that follows this schema: {schema}");
        let request = Request::ask(prompt).temperature(1.0).top_k(top_k);
        let request = request.seed(number as u64).max_tokens(TOKENS);
        let grammar = Grammar::json_schema(schema.clone());
        let bound = request.clone().grammar(grammar);
        let (bound, free) = if number % 2 == 0 {
            let bound = answer(&engine, bound).await?;
            let tokens = bound.summary.times.generated_tokens;
            (bound, answer(&engine, request.max_tokens(tokens).ignore_eos()).await?)
        } else {
            let free = answer(&engine, request.clone().max_tokens(40).ignore_eos()).await?;
            (answer(&engine, bound).await?, free)
        };
        let is_valid = follows(schema, &bound.text)?;
        cut += usize::from(bound.summary.reason == EndReason::Length);
        if !is_valid {
            println!("not valid ({:?}): {} for {schema}", bound.summary.reason, bound.text);
        }
        valid += usize::from(is_valid);
        let speeds = [&bound, &free].map(|answer| answer.summary.tokens_per_second());
        // The speed of a few tokens is that of their first pass.
        if bound.summary.times.generated_tokens >= 8 && speeds[1] > 0.0 {
            ratios.push(speeds[0] / speeds[1]);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = |share: usize| ratios.get(ratios.len() * share / 100).copied().unwrap_or(1.0);
    println!("{valid} of {answers} answers are valid for their schema ({cut} were cut)");
    println!(
        "decode speed with grammar / without: median {:.3}, quartiles {:.3} to {:.3}, {} pairs",
        at(50),
        at(25),
        at(75),
        ratios.len()
    );
    if valid < answers { Err("an answer does not follow its schema".into()) } else { Ok(()) }
}

async fn answer(engine: &Engine, request: Request) -> Result<Answer> {
    let mut stream = engine.generate(request).await?;
    let mut text = String::new();
    while let Some(token) = stream.next().await {
        text.push_str(&token?.text);
    }
    let summary = stream.summary().cloned().ok_or("the answer ended without a result")?;
    Ok(Answer { text, summary })
}

/// Whether a text is JSON that is valid for a schema.
fn follows(schema: &Value, text: &str) -> Result<bool> {
    let options = jsonschema::options().should_validate_formats(true);
    let validator = options.build(schema).map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(text).is_ok_and(|value| validator.is_valid(&value)))
}

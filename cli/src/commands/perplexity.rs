//! `lapwing perplexity`: how well a model predicts a text.

use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use lapwing_engine::tokenizer::{Special, Tokenizer};
use lapwing_engine::{Activations, Engine};
use lapwing_traces::text::counted;
use serde::Serialize;

use crate::cli::attention::AttentionChanges;
use crate::cli::failure::Failure;
use crate::cli::opening::open;
use crate::cli::outlier_report::OutlierReport;
use crate::cli::output::{print, print_json};
use crate::cli::requant::RequantReport;
use crate::cli::session::Session;
use crate::cli::windowed_text::WindowedTextArgs;
use crate::cli::{EngineArgs, ModelArg};

const EXAMPLES: &str = "\
Example:
  lapwing perplexity -m FILE.gguf text.txt

Computed as in llama-perplexity: the text is tokenized as a whole (control tokens in it are plain
text) and split into windows of --ctx tokens; an incomplete last window is left out. Each window
starts with an empty context, and with the begin token in place of its first id if the model uses
one. The tokens of its second half are scored, given all tokens before them in the window.

With --json:
  {\"perplexity\":X,\"standard_error\":X,\"tokens\":N,\"window\":N,\"windows\":N,\"scored\":N,
   \"window_mean_nll\":[…],\"model\":\"PATH\",\"activations\":\"…\",\"requant\":{…}|null,
   \"attention\":[\"FIRST-LAST:MASK\",…]|null,\"share_kv\":\"…\"|null,\"outliers\":[{…},…]}
  tokens: of the whole text; scored: number of scored tokens; nll: negative natural log-likelihood.";

/// Windows in the engine at the same time.
const WINDOWS_AT_ONCE: usize = 2;

const BAR: &str = "{msg:.bold} {bar:40.cyan/dim} {pos}/{len} windows  eta {eta:>4}";

/// Options of `perplexity`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    text: WindowedTextArgs,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    perplexity: f64,
    standard_error: f64,
    tokens: usize,
    window: usize,
    windows: usize,
    scored: usize,
    window_mean_nll: Vec<f64>,
    model: String,
    activations: &'static str,
    requant: Option<RequantReport>,
    #[serde(flatten)]
    attention: AttentionChanges,
    outliers: Vec<OutlierReport>,
}

/// Prints the perplexity of a text.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let ctx = args.text.ctx;
    if ctx < 4 {
        return Err(Failure::usage("--ctx is too small: a window needs at least 4 tokens"));
    }
    let text = args.text.read().await?;
    let builder = args.engine.builder_to_score(&args.model.model, session).await?;
    // The numbers of the strategy's devices are wanted, not of those that compute in their place.
    let builder = builder.context(ctx).wait_for_graphs(true);
    let cache_tokens = ctx.saturating_add(64).saturating_mul(WINDOWS_AT_ONCE);
    let engine = open(builder.cache_tokens(cache_tokens), session).await?;
    engine.tokenizer().check(&text).map_err(|error| Failure::usage(error.to_string()))?;
    let ids = engine.tokenizer().encode(&text, Special::Plain, true);
    let windows = windows(&ids, ctx, engine.tokenizer());
    if windows.is_empty() {
        return Err(Failure::failed(format!(
            "the text has {}, less than one window of {}",
            counted(ids.len(), "token"),
            ctx
        ))
        .hint("use a longer text, or a smaller --ctx"));
    }
    let scores = score(&engine, windows, session).await?;
    let activations = args.engine.activations();
    let report = report(&scores, ids.len(), ctx, &engine, activations);
    if session.json {
        return print_json(&report);
    }
    print(&format!(
        "perplexity {:.4} ± {:.4}\n{} of {} tokens scored, in {} of {}\n{}{}",
        report.perplexity,
        report.standard_error,
        report.scored,
        report.tokens,
        counted(report.windows, "window"),
        report.window,
        report.attention.lines(),
        report.outliers.iter().map(OutlierReport::line).collect::<String>()
    ))
}

/// Complete windows, each starting with the begin token if the model uses one.
fn windows(ids: &[u32], length: usize, tokenizer: &Tokenizer) -> Vec<Vec<u32>> {
    let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
    let mut windows: Vec<Vec<u32>> = ids.chunks_exact(length).map(<[u32]>::to_vec).collect();
    if let Some(bos) = bos {
        windows.iter_mut().for_each(|window| window[0] = bos);
    }
    windows
}

/// Log-probabilities of the second half of each window.
async fn score(
    engine: &Engine,
    windows: Vec<Vec<u32>>,
    session: &Session,
) -> Result<Vec<Vec<f32>>, Failure> {
    let count = windows.len();
    let bar: Option<ProgressBar> = session.bar(BAR);
    match &bar {
        Some(bar) => {
            bar.set_message("scoring");
            bar.set_length(count as u64);
            bar.tick();
        }
        None => session.note(&format!("scoring {}", counted(count, "window"))),
    }
    let scores = stream::iter(windows)
        .map(|window| {
            let from = window.len() / 2 + 1;
            engine.score(window, from)
        })
        .buffered(WINDOWS_AT_ONCE)
        .inspect_ok(|_| bar.iter().for_each(|bar| bar.inc(1)))
        .try_collect()
        .await;
    bar.iter().for_each(ProgressBar::finish_and_clear);
    Ok(scores?)
}

fn report(
    scores: &[Vec<f32>],
    tokens: usize,
    window: usize,
    engine: &Engine,
    activations: Activations,
) -> Report {
    let nll = |scores: &[f32]| scores.iter().map(|score| -f64::from(*score)).sum::<f64>();
    let squares: f64 = scores.iter().flatten().map(|score| f64::from(*score).powi(2)).sum();
    let scored = scores.iter().map(Vec::len).sum::<usize>();
    let mean = scores.iter().map(|scores| nll(scores)).sum::<f64>() / scored as f64;
    let variance = (squares / scored as f64 - mean * mean).max(0.0);
    let perplexity = mean.exp();
    Report {
        perplexity,
        standard_error: perplexity * (variance / (scored.max(2) - 1) as f64).sqrt(),
        tokens,
        window,
        windows: scores.len(),
        scored,
        window_mean_nll: scores.iter().map(|s| nll(s) / s.len() as f64).collect(),
        model: engine.model_path().display().to_string(),
        activations: activations.name(),
        requant: engine.requantized().map(RequantReport::of),
        attention: AttentionChanges::of(engine),
        outliers: OutlierReport::of(engine),
    }
}

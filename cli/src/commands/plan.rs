//! `lapwing plan`: which device would run which part of a prompt, how long it takes, and why.

use std::path::PathBuf;
use std::time::Duration;

use lapwing_engine::plan::Scene;
use lapwing_engine::plan::strategy::Explanation;
use lapwing_engine::{Engine, PartPlacement, Placement, Shutdown, StageKind, TransferPlacement};
use lapwing_traces::text::counted;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::opening::open;
use crate::cli::output::{print, print_json};
use crate::cli::profiles::with_given;
use crate::cli::session::Session;
use crate::cli::stage_report::StageReport;
use crate::cli::{EngineArgs, ModelArg, at_least_one};

mod beside;
mod drafts;
mod graphs;
mod help;
mod moment;
mod text;

use beside::BesideStream;
use drafts::Drafts;
use graphs::Graphs;
use help::EXAMPLES;
use moment::MomentReport;

/// Options of `plan`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Tokens of the prompt
    #[arg(
        short,
        long,
        aliases = ["length", "prompt"],
        short_alias = 'l',
        value_name = "N",
        value_parser = at_least_one
    )]
    prompt_tokens: usize,

    /// Show the predicted time of every strategy, and why the fastest one is fastest
    #[arg(long)]
    explain: bool,

    /// Rate the routes of the prompt's first chunk where it arrives beside so many streams, and after prompts of so many tokens, as in
    /// streams=2,prompts=1000+1000; and show the least time of all prompts on these devices
    #[arg(long, value_name = "MOMENT", requires = "explain")]
    with: Option<Scene>,

    /// Predict from this profile, or from the one in a report [default: the stored one of these devices]
    #[arg(long, value_name = "FILE.json")]
    profile: Option<PathBuf>,

    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Serialize)]
struct Report {
    length: usize,
    strategy: String,
    source: String,
    predicted_ms: Option<f64>,
    cold_ms: Option<f64>,
    first_ms: Option<f64>,
    graphs: Graphs,
    chunks: Vec<ChunkReport>,
    decode: ChunkReport,
    /// `None` if the times of devices are unknown.
    beside_stream: Option<BesideStream>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    explained: Option<Explained>,
    /// Only with `--with`.
    #[serde(skip_serializing_if = "Option::is_none")]
    moment: Option<MomentReport>,
    /// Whether devices were timed at the start, and not by a profile.
    #[serde(skip)]
    is_brief: bool,
}

#[derive(Serialize)]
struct ChunkReport {
    rows: usize,
    context: usize,
    reason: String,
    stages: usize,
    divided: usize,
    /// Predicted time of the chunk alone.
    predicted_ms: Option<f64>,
    /// Stages of each kind, in order, in the format of `inspect`.
    kinds: Vec<Kind>,
    /// Copies between the host's memory and that of devices.
    transfers: Vec<Transfers>,
    #[serde(skip)]
    parts: Vec<String>,
}

#[derive(Serialize)]
struct Transfers {
    device: String,
    to_host: bool,
    count: usize,
    bytes: u64,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
struct Kind {
    count: usize,
    #[serde(flatten)]
    first: StageReport,
}

#[derive(Serialize)]
struct Explained {
    candidates: Vec<Candidate>,
    winner: String,
    why: String,
    drafts: Option<Drafts>,
}

#[derive(Serialize)]
struct Candidate {
    strategy: String,
    predicted_ms: Option<f64>,
    busiest_ms: Option<f64>,
    chunks: Option<usize>,
    why_not: Option<String>,
}

/// Plans and prints.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    args.engine.check(session)?;
    let builder = args.engine.builder_of(&args.model.model, session).await?;
    let builder = with_given(builder, args.profile.as_deref())?;
    let beside = args.with.iter().flat_map(|scene| &scene.prompts).max();
    let context = args.prompt_tokens.max(beside.copied().unwrap_or(0)).saturating_add(1);
    let engine = open(builder.context(context).timed(), session).await?;
    let report = report(&engine, &args);
    engine.shutdown(Shutdown::Now).await?;
    let report = report?;
    if session.json { print_json(&report) } else { print(&text::of(&report)) }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn milliseconds(ms: Option<f64>) -> String {
    ms.map_or("–".to_owned(), |ms| format!("{ms:.2}"))
}

fn report(engine: &Engine, args: &Args) -> Result<Report, Failure> {
    let chunks = engine.plan(args.prompt_tokens)?;
    let explained = args.explain.then(|| {
        let drafts = engine.explain_drafts(args.prompt_tokens)?.map(Drafts::new);
        engine.explain(args.prompt_tokens).map(|strategies| explained(strategies, drafts))
    });
    Ok(Report {
        length: args.prompt_tokens,
        strategy: chunks.first().map_or_else(String::new, |chunk| chunk.strategy.clone()),
        is_brief: engine.cost_source().contains("timed briefly"),
        source: engine.cost_source(),
        predicted_ms: engine.predict(args.prompt_tokens)?.map(ms),
        cold_ms: engine.predict_cold(args.prompt_tokens)?.map(ms),
        first_ms: engine.predict_first(args.prompt_tokens)?.map(ms),
        graphs: Graphs::new(engine.graphs_of(args.prompt_tokens)?),
        chunks: chunks.iter().map(chunk).collect(),
        decode: chunk(&engine.plan_decode(1, args.prompt_tokens)?),
        beside_stream: BesideStream::of(engine, args)?,
        explained: explained.transpose()?,
        moment: args
            .with
            .as_ref()
            .map(|scene| MomentReport::of(engine, args, scene))
            .transpose()?,
    })
}

fn chunk(placement: &Placement) -> ChunkReport {
    let divided = placement.stages.iter().filter(|stage| stage.parts.len() > 1).count();
    // Layers are alike: each kind of stage is shown once, with its count.
    let mut parts: Vec<(String, usize)> = Vec::new();
    for stage in &placement.stages {
        let each: Vec<String> = stage.parts.iter().map(part).collect();
        let text = format!("{}: {}", counted(stage.ops, "op"), each.join(" ‖ "));
        match parts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => parts.push((text, 1)),
        }
    }
    ChunkReport {
        rows: placement.rows,
        context: placement.context,
        reason: placement.reason.clone(),
        stages: placement.stages.len(),
        divided,
        predicted_ms: placement.predicted.map(ms),
        kinds: placement.kinds().iter().map(kind).collect(),
        transfers: placement.transfers.iter().map(transfers).collect(),
        parts: parts.into_iter().map(|(text, count)| format!("{count} × {text}")).collect(),
    }
}

fn transfers(transfers: &TransferPlacement) -> Transfers {
    Transfers {
        device: transfers.device.clone(),
        to_host: transfers.to_host,
        count: transfers.count,
        bytes: transfers.bytes,
        text: transfers.to_string(),
    }
}

fn kind(kind: &StageKind<'_>) -> Kind {
    let mut first = StageReport::of(kind.first);
    (first.first_layer, first.last_layer) = kind.layers.unzip();
    Kind { count: kind.count, first }
}

fn part(part: &PartPlacement) -> String {
    let mut text = part.device.clone();
    if let Some(rows) = &part.rows {
        text.push_str(&format!(" rows {}–{}", rows.start, rows.end));
    }
    if let Some((from, to, of)) = part.features {
        text.push_str(&format!(" output channels {from}/{of}–{to}/{of}"));
    }
    if let Some(experts) = &part.experts {
        text.push_str(&format!(" experts {}–{}", experts.start, experts.end));
    }
    if !part.graphs.is_empty() {
        let graphs: Vec<String> = part.graphs.iter().map(usize::to_string).collect();
        text.push_str(&format!(" graphs {}", graphs.join(" + ")));
    }
    if part.swapped {
        text.push_str(" swapped");
    }
    match part.predicted {
        Some(time) => format!("{text} ({time:.1?})"),
        None => text,
    }
}

fn explained(explanation: Explanation, drafts: Option<Drafts>) -> Explained {
    let why = explanation.to_string();
    let winner = explanation.winner().strategy.clone();
    let candidates = explanation.rated.into_iter().map(|rated| {
        let strategy = rated.strategy;
        match rated.outcome {
            Ok((prediction, _)) => Candidate {
                strategy,
                predicted_ms: Some(ms(prediction.makespan)),
                busiest_ms: Some(ms(prediction.busiest())),
                chunks: Some(prediction.chunks),
                why_not: None,
            },
            Err(error) => Candidate {
                strategy,
                predicted_ms: None,
                busiest_ms: None,
                chunks: None,
                why_not: Some(error.to_string()),
            },
        }
    });
    let mut candidates: Vec<Candidate> = candidates.collect();
    let time = |candidate: &Candidate| candidate.predicted_ms.unwrap_or(f64::INFINITY);
    candidates.sort_by(|a, b| time(a).total_cmp(&time(b)));
    Explained { candidates, winner, why, drafts }
}

//! `lapwing bench --strategy all`: compares strategies on the engine's devices.

use std::path::{Path, PathBuf};

use lapwing_engine::Requantized;
use lapwing_engine::plan::choices;
use lapwing_lab::compare::{Compare, Comparison, Figures, LengthComparison};
use lapwing_traces::text::counted;
use lapwing_traces::whole_file;
use serde::Serialize;

use super::progress::ProgressShown;

use crate::cli::attention::AttentionChanges;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::profiles::{with_given, with_profile};
use crate::cli::requant::{self, RequantReport};
use crate::cli::resolve::model_file;
use crate::cli::session::Session;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;
use crate::cli::{DeviceArgs, EngineArgs};

/// Options of a comparison.
pub(crate) struct CompareOptions<'a> {
    pub(crate) model: &'a str,
    pub(crate) engine: &'a EngineArgs,
    /// `all`, or names; those of several options are concatenated.
    pub(crate) strategies: &'a str,
    pub(crate) lengths: Vec<usize>,
    pub(crate) tokens: usize,
    pub(crate) repetitions: usize,
    pub(crate) html: Option<PathBuf>,
    /// A profile to predict from.
    pub(crate) profile: Option<PathBuf>,
}

/// Default prompt lengths.
pub(crate) const LENGTHS: [usize; 3] = [135, 300, 525];

#[derive(Serialize)]
struct Report<'a> {
    model: &'a str,
    devices: &'a [String],
    isa: &'a str,
    generated_tokens: usize,
    repetitions: usize,
    cost_source: &'a str,
    rounds_alike: bool,
    requant: Option<RequantReport>,
    #[serde(flatten)]
    attention: AttentionChanges,
    lengths: Vec<LengthReport<'a>>,
}

#[derive(Serialize)]
struct LengthReport<'a> {
    tokens: usize,
    fastest: &'a str,
    chosen_by_auto: Option<&'a str>,
    same_tokens: bool,
    strategies: Vec<Figures>,
    absent: Vec<Absent<'a>>,
}

#[derive(Serialize)]
struct Absent<'a> {
    strategy: &'a str,
    reason: &'a str,
}

/// The names of strategies; all must be known.
pub(crate) fn names(strategies: &str) -> Result<Vec<String>, Failure> {
    let mut names = choices(strategies);
    names.retain(|name| !name.is_empty());
    if names.iter().any(|name| name == "all") {
        return Ok(Vec::new());
    }
    names.iter().try_for_each(|name| DeviceArgs::check_strategy(name))?;
    Ok(names)
}

/// Compares and prints.
pub(crate) async fn run(options: CompareOptions<'_>, session: &Session) -> Result<(), Failure> {
    let names = names(options.strategies)?;
    if let Some(path) = &options.html {
        whole_file::check(path)
            .map_err(|error| Failure::file("write the page to", path, &error))?;
    }
    let path = model_file(options.model, session).await?;
    let builder = with_given(options.engine.without_strategy(path)?, options.profile.as_deref())?;
    let builder = with_profile(builder, session);
    let requantized = builder.requantized()?;
    requant::note(requantized.as_ref(), session);
    let changes = AttentionChanges::of_builder(&builder)?;
    changes.note(session);
    let mut compare = Compare::new(builder)
        .lengths(options.lengths.iter().copied())
        .tokens(options.tokens)
        .repetitions(options.repetitions);
    compare = match names.is_empty() {
        true => compare.all_strategies(),
        false => names.iter().fold(compare, |compare, name| compare.strategy(name)),
    };
    let mut shown = ProgressShown::new(session);
    let compared = compare.run(|progress| shown.show(progress)).await?;
    shown.end();
    if let Some(path) = &options.html {
        write_page(&compared, path, session)?;
    }
    if session.json {
        print_json(&Report { attention: changes, ..report(&compared, requantized.as_ref()) })
    } else {
        print(&text(&compared))
    }
}

fn write_page(compared: &Comparison, path: &Path, session: &Session) -> Result<(), Failure> {
    let page = compared.page().map_err(|error| Failure::failed(error.to_string()))?;
    files::write(path, page.as_bytes(), session)
}

fn report<'a>(compared: &'a Comparison, requantized: Option<&Requantized>) -> Report<'a> {
    let length = |of: &'_ LengthComparison| -> (usize, Vec<Figures>) {
        (of.tokens, of.runs.iter().map(lapwing_lab::compare::StrategyRun::figures).collect())
    };
    let lengths = compared.lengths.iter().map(|of| {
        let (tokens, strategies) = length(of);
        LengthReport {
            tokens,
            fastest: &of.runs[of.fastest].strategy,
            chosen_by_auto: of.chosen_by_auto.as_deref(),
            same_tokens: of.same_tokens,
            strategies,
            absent: of
                .absent
                .iter()
                .map(|(strategy, reason)| Absent { strategy, reason })
                .collect(),
        }
    });
    Report {
        model: &compared.model,
        devices: &compared.devices,
        isa: &compared.isa,
        generated_tokens: compared.tokens,
        repetitions: compared.repetitions,
        cost_source: &compared.cost_source,
        rounds_alike: compared.rounds_alike,
        requant: requantized.map(RequantReport::of),
        attention: AttentionChanges::default(),
        lengths: lengths.collect(),
    }
}

fn text(compared: &Comparison) -> String {
    let mut text = format!("{}, {}\n", visible(&compared.model), compared.isa);
    for device in &compared.devices {
        text.push_str(&format!("  {device}\n"));
    }
    text.push_str(&format!(
        "{} each; times are medians in ms; predictions from {}; energy: unknown\n\
         Graphs that a strategy prepares ahead are warm; those that it prepares on the spot are \
         prepared in each run, and TTFT and prediction include it\n",
        counted(compared.repetitions, "run"),
        compared.cost_source
    ));
    for length in &compared.lengths {
        text.push_str(&of_length(length, compared.tokens));
        if !length.same_tokens {
            text.push_str(different_tokens(compared.rounds_alike));
        }
    }
    text
}

fn of_length(length: &LengthComparison, generated: usize) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!(
        "\n{bold}{} tokens{bold:#}, then {generated} generated; fastest first\n",
        length.tokens
    );
    let mut order: Vec<usize> = (0..length.runs.len()).collect();
    let time = |run: usize| length.runs[run].ttft_ms.median;
    order.sort_by(|a, b| time(*a).total_cmp(&time(*b)));
    let rows = order.into_iter().map(|at| row(length, at)).collect();
    let header = [
        ("strategy", Align::Left),
        ("TTFT", Align::Right),
        ("TPOT", Align::Right),
        ("makespan", Align::Right),
        ("overlap", Align::Right),
        ("main idle cause", Align::Left),
        ("copied", Align::Right),
        ("wait error", Align::Right),
        ("predicted", Align::Right),
        ("late", Align::Right),
        ("", Align::Left),
    ];
    text.push_str(&table(header, rows));
    let late = length.runs.iter().any(|run| {
        let share = run.late.as_secs_f64() * 1e3 / run.ttft_ms.median;
        share > 0.05
    });
    if late {
        text.push_str(
            "late: time by which this machine exceeded the devices' models. The measured times are too \
             long by as much; use lower rates, or free the machine from other work.\n",
        );
    }
    for (strategy, reason) in &length.absent {
        text.push_str(&format!("left out {strategy}: {}\n", visible(reason)));
    }
    text
}

/// What it means that strategies generated different tokens.
fn different_tokens(rounds_alike: bool) -> &'static str {
    match rounds_alike {
        true => "The strategies generated different tokens: this is a bug.\n",
        false => {
            "The strategies generated different tokens: a device with a library of its own rounds \
             differently than the others. They differ less often with --exact, with which all compute with \
             activations in f32.\n"
        }
    }
}

fn row(length: &LengthComparison, at: usize) -> [String; 11] {
    let of = length.runs[at].figures();
    let dash = || "–".to_owned();
    let ms = |value: f64| format!("{value:.1}");
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let idle = of.main_idle();
    let idle = idle.map_or_else(dash, |idle| format!("{} {:.1}", idle.cause, idle.ms));
    let predicted = of.predicted_ms.map_or_else(dash, |predicted| {
        format!("{predicted:.1} ({:+.0} %)", of.prediction_error.unwrap_or(f64::NAN) * 100.0)
    });
    let mut marks = Vec::new();
    if at == length.fastest {
        marks.push("fastest");
    }
    if length.chosen_by_auto.as_ref() == Some(&of.strategy) {
        marks.push("auto's choice");
    }
    [
        of.strategy,
        ms(of.ttft_ms),
        of.tpot_ms.map_or_else(dash, ms),
        ms(of.makespan_ms),
        of.overlap.map_or_else(dash, percent),
        idle,
        format!("{:.1} MiB", of.copied_bytes as f64 / 1048576.0),
        of.wait_error.map_or_else(dash, percent),
        predicted,
        ms(of.late_ms),
        marks.join(", "),
    ]
}

//! `lapwing simulate --requests`: many requests in virtual time.

use lapwing_lab::simulate::{ClientRun, Composite, CompositeRun, RequestRun, Scenario};
use lapwing_traces::analysis::{WorkKind, WorkSet};
use lapwing_traces::text::counted;
use serde::Serialize;

use super::{Args, gains, save};
use crate::cli::composite_args::Variant;
use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::simulated;
use crate::cli::table::{Align, table};
use crate::cli::visible::visible;

#[derive(Serialize)]
struct Report {
    soc: String,
    device: Option<String>,
    model: String,
    draft: Option<String>,
    seed: u64,
    runs: Vec<Run>,
}

/// A run, and the acceptance that it is for.
#[derive(Serialize)]
pub(super) struct Run {
    pub(super) acceptance: Option<f64>,
    #[serde(flatten)]
    pub(super) run: CompositeRun,
}

/// Simulates and prints.
pub(super) fn run(
    args: &Args,
    scenario: &Scenario,
    requests: &str,
    session: &Session,
) -> Result<(), Failure> {
    let variants = args.composite.variants(scenario, requests)?;
    let draft = variants.iter().find_map(|variant| variant.composite.draft.as_ref());
    let draft = draft.map(|draft| draft.model.clone());
    if args.trace.is_some() && variants.len() > 1 {
        let reason = "--trace records one run: give one number with --acceptance";
        return Err(Failure::usage(reason.to_owned()));
    }
    let mut runs = Vec::new();
    for Variant { composite, acceptance } in &variants {
        let acceptance = acceptance.filter(|_| composite.overlaps.drafts);
        for run in runs_of(args, composite, session)? {
            let acceptance = acceptance.filter(|_| run.overlaps.drafts);
            runs.push(Run { acceptance, run });
        }
    }
    if session.json {
        return print_json(&Report {
            soc: scenario.soc_name(),
            device: scenario.chosen_devices().map(str::to_owned),
            model: scenario.model.clone(),
            draft,
            seed: scenario.seed,
            runs,
        });
    }
    let drafts = draft.map(|draft| format!(", drafts by {draft}")).unwrap_or_default();
    let count = variants.first().map_or(0, |variant| variant.composite.requests.len());
    let count = counted(count, "request");
    let title = format!("{} on {}: {count}{drafts}", scenario.model, scenario.soc_name());
    let mut text = format!("{}\n", visible(&title));
    match &runs[..] {
        [one] => text.push_str(&detailed(one)),
        _ => {
            text.push_str(&compared(&runs));
            if args.composite.ablate {
                text.push_str(&gains::text(&runs));
            }
        }
    }
    print(&text)
}

fn runs_of(
    args: &Args,
    composite: &Composite,
    session: &Session,
) -> Result<Vec<CompositeRun>, Failure> {
    if args.composite.ablate {
        return Ok(composite.ablate()?);
    }
    let Some(path) = &args.trace else { return Ok(vec![composite.run()?]) };
    let (run, recording) = composite.record()?;
    save(&recording, path, session)?;
    Ok(vec![run])
}

/// Requests shown one by one.
const SHOWN: usize = 32;

fn detailed(Run { run, .. }: &Run) -> String {
    let right = |title| (title, Align::Right);
    let header = [
        right("arrival ms"),
        right("prompt"),
        right("answer"),
        right("first token ms"),
        right("median gap ms"),
        right("worst gap ms"),
        right("end ms"),
        right("accepted"),
    ];
    let gap = |gap: Option<f64>| gap.map_or("–".to_owned(), |ms| format!("{ms:.1}"));
    let row = |request: &RequestRun| {
        [
            format!("{:.0}", request.at_ms),
            request.prompt.to_string(),
            request.tokens.to_string(),
            format!("{:.1}", request.ttft_ms),
            gap(request.gap_median_ms),
            gap(request.gap_max_ms),
            format!("{:.1}", request.end_ms),
            accepted(request.accepted, request.drafted),
        ]
    };
    let mut text = table(header, run.requests.iter().take(SHOWN).map(row).collect());
    if let more @ 1.. = run.requests.len().saturating_sub(SHOWN) {
        text.push_str(&format!("and {more} more, with --json\n"));
    }
    text.push_str(&format!(
        "{}, overlapping: {}; {:.1} ms in all, {:.2} tok/s, first tokens after at most {:.1} ms, gaps of at most {:.1} ms\n",
        visible(&run.strategy),
        run.overlaps,
        run.makespan_ms,
        run.tokens_per_second,
        run.ttft_max_ms,
        run.gap_max_ms
    ));
    text.push_str(&clients(run));
    let alone = shares(run, |set| set.len() == 1).join(", ");
    let several = shares(run, |set| set.len() > 1);
    let several = if several.is_empty() { "nothing".to_owned() } else { several.join(", ") };
    let busy = simulated::uses(&run.devices);
    text.push_str(&format!("shares of the time: {alone}\nat once: {several}\nbusy: {busy}\n"));
    text
}

/// A line for each client that has a name.
fn clients(run: &CompositeRun) -> String {
    if run.clients.is_empty() {
        return String::new();
    }
    let right = |title| (title, Align::Right);
    let header = [
        ("client", Align::Left),
        right("requests"),
        right("first token ms"),
        right("95 %"),
        right("end ms"),
        right("95 %"),
        right("ms per token"),
    ];
    let ms = |time: Option<f64>| time.map_or("–".to_owned(), |ms| format!("{ms:.1}"));
    let row = |(name, of): (&String, &ClientRun)| {
        [
            visible(name).into_owned(),
            of.ttft_ms.count.to_string(),
            ms(of.ttft_ms.mean),
            ms(of.ttft_ms.p95),
            ms(of.response_ms.mean),
            ms(of.response_ms.p95),
            ms(of.response_per_token_ms.mean),
        ]
    };
    table(header, run.clients.iter().map(row).collect())
}

/// Sets of kinds of work that ran, with their shares of the time, small sets first.
fn shares(run: &CompositeRun, is_shown: impl Fn(WorkSet) -> bool) -> Vec<String> {
    let mut sets: Vec<WorkSet> = WorkSet::all().filter(|set| is_shown(*set)).collect();
    sets.retain(|set| run.share(*set) > 0.0);
    sets.sort_by_key(|set| (set.len(), *set));
    sets.iter().map(|set| format!("{} {}", set.name(), percent(run.share(*set)))).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// All kinds of work of which three devices can do one each while requests draft.
fn draft_verify_prompt() -> WorkSet {
    WorkSet::of([WorkKind::Draft, WorkKind::Verify, WorkKind::Prompt])
}

fn accepted(accepted: usize, drafted: usize) -> String {
    match drafted {
        0 => "–".to_owned(),
        _ => format!("{accepted} of {drafted}"),
    }
}

/// A line for each run.
fn compared(runs: &[Run]) -> String {
    let right = |title| (title, Align::Right);
    let header = [
        right("acceptance"),
        ("prompts", Align::Left),
        ("drafts", Align::Left),
        ("cuts", Align::Left),
        ("strategy", Align::Left),
        right("all ms"),
        right("tok/s"),
        right("first token ms"),
        right("worst gap ms"),
        right("accepted"),
        right("draft+verify+prompt"),
    ];
    let on = |on: bool| if on { "on" } else { "–" }.to_owned();
    let row = |Run { acceptance, run }: &Run| {
        [
            acceptance.map_or("–".to_owned(), |rate| rate.to_string()),
            on(run.overlaps.prompts),
            on(run.overlaps.drafts),
            on(run.overlaps.cuts),
            run.strategy.clone(),
            format!("{:.1}", run.makespan_ms),
            format!("{:.2}", run.tokens_per_second),
            format!("{:.1}", run.ttft_max_ms),
            format!("{:.1}", run.gap_max_ms),
            accepted(run.accepted, run.drafted),
            percent(run.share(draft_verify_prompt())),
        ]
    };
    table(header, runs.iter().map(row).collect())
}

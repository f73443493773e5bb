//! `lapwing timeline`: where the time of a recorded run went.

mod asserts;
mod what_if;

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use lapwing_traces::analysis::diff::Diff;
use lapwing_traces::budget::Budget;
use lapwing_traces::html::{self, PageRun};
use lapwing_traces::text::{self, Colours, Glyphs, TextOptions};
use lapwing_traces::{Analysis, Recording, Report, Timeline, export};
use serde_json::{Value, json};

use self::what_if::Scenario;
use crate::cli::charset::is_ascii;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::session::Session;
use crate::cli::visible::one_line;
use crate::commands::report::is_report;

const EXAMPLES: &str = "\
Examples:
  lapwing timeline run.lwt                         chart and tables in the terminal
  lapwing timeline run.lwt --html run.html         an HTML page with everything
  lapwing timeline before.lwt after.lwt            what made the second run faster or slower
  lapwing timeline run.lwt --what-if 'op:attention*0.5'
                                                   makespan if those ops took half as long
  lapwing timeline run.lwt --assert 'overlap>=0.6' --assert 'requests.ttft_ms.p95<200'
                                                   exit code 1 if a bound is violated
  lapwing timeline run.lwt --assert 'concurrent.draft+verify+prompt>=0.1'
                                                   three kinds of work at the same time
  lapwing timeline run.lwt --assert 'makespan/bound<=1.25'
                                                   close to the least time of the devices
  lapwing timeline run.lwt --perfetto run.pftrace --chrome run.json --csv tables

--assert: METRIC OP NUMBER. METRIC is a path into the output of --json; an element of a list is
selected by its name or cause: lanes.cpu.utilization, ops.attention.self_ns, idle.hand-off.ns. OP is
one of >= <= == != > <. concurrent.SET is the share of the time in which all kinds of work of the
set ran, each on a device of its own: draft, verify, decode, prompt, joined by +.
With two files, paths begin with a., b. or diff.

--what-if: changes separated by commas. op:NAME*F, activity:KIND*F and on:LANE*F scale the durations
of these spans; sync*F scales those of messages, restart*F the delays of lanes before they continue;
slots:LANE*N runs N such lanes in parallel. The order of the work is kept. Ops that are fused into
one dispatch are one span, such as 'ffn_down + ffn_residual': the name of one of them selects it.

With --json:
  {\"version\":1,\"makespan_ns\":N,\"overlap\":F|null,…,
   \"asserts\":[{\"metric\":\"…\",\"expected\":\"…\",\"value\":N|null,\"ok\":true|false}],
   \"what_if\":[{\"change\":\"…\",\"makespan_ns\":N,\"delta_ns\":N,\"ratio\":F|null,
               \"fused\":[\"…\"]}]}
  asserts and what_if only if requested. Two files: {\"a\":{…},\"b\":{…},\"diff\":{…},…}";

/// Options of `timeline`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A recorded run
    #[arg(value_name = "FILE.lwt")]
    file: PathBuf,

    /// Another run to compare it with
    #[arg(value_name = "FILE2.lwt")]
    other: Option<PathBuf>,

    /// Show a chart and tables in the terminal; the default without other outputs
    #[arg(long)]
    text: bool,

    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,

    /// Write a trace for ui.perfetto.dev and its trace processor
    #[arg(long, value_name = "OUT", conflicts_with = "other")]
    perfetto: Option<PathBuf>,

    /// Write a trace in Chrome's JSON format
    #[arg(long, value_name = "OUT", conflicts_with = "other")]
    chrome: Option<PathBuf>,

    /// Write CSV tables to a folder: spans, gaps, messages and more
    #[arg(long, value_name = "FOLDER", conflicts_with = "other")]
    csv: Option<PathBuf>,

    /// Check a bound on a number of the report; may be repeated
    #[arg(long, value_name = "METRIC OP NUMBER", value_parser = Budget::parse)]
    assert: Vec<Budget>,

    /// Show the makespan with changed durations; may be repeated
    #[arg(long, value_name = "CHANGES", conflicts_with = "other", value_parser = Scenario::parse)]
    what_if: Vec<Scenario>,

    /// Width of the chart in columns [default: that of the terminal, else 100]
    #[arg(long, value_name = "N", value_parser = columns())]
    width: Option<usize>,

    /// Draw with ASCII characters only
    #[arg(long)]
    ascii: bool,
}

fn columns() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(text::WIDTH_MIN as u64..=text::WIDTH_MAX as u64)
}

/// A recorded run, loaded and analysed.
struct Run {
    title: String,
    timeline: Timeline,
    analysis: Analysis,
    report: Report,
}

impl Run {
    fn load(path: &Path) -> Result<Run, Failure> {
        let recording = Recording::load(path).map_err(|error| {
            let failure = Failure::failed(error.to_string());
            match is_report(path) {
                true => failure.hint("it is a report, which `lapwing report --show FILE` shows"),
                false => failure,
            }
        })?;
        let timeline = Timeline::new(&recording);
        let analysis = Analysis::new(&timeline);
        let report = Report::new(&timeline, &analysis);
        let title = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Run { title, timeline, analysis, report })
    }

    fn page_run(&self) -> PageRun<'_> {
        let Run { title, timeline, analysis, report } = self;
        PageRun { title, timeline, analysis, report }
    }

    fn json(&self) -> Result<Value, Failure> {
        serde_json::to_value(&self.report)
            .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))
    }
}

/// Loads, writes, prints, and checks the bounds.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    if args.text && session.json {
        return Err(Failure::usage("--text and --json both write to stdout: use only one of them"));
    }
    protect_inputs(args)?;
    let first = Run::load(&args.file)?;
    let second = args.other.as_deref().map(Run::load).transpose()?;
    let diff = second.as_ref().map(|second| {
        Diff::new((&first.timeline, &first.analysis), (&second.timeline, &second.analysis))
    });
    let mut printed = match (&second, &diff) {
        (Some(second), Some(diff)) => {
            json!({"a": first.json()?, "b": second.json()?, "diff": diff})
        }
        _ => first.json()?,
    };
    let asserted = asserts::check(&args.assert, &printed)?;
    let outcomes = what_if::replay(&args.what_if, &first.timeline)?;
    let mut runs = vec![&first];
    runs.extend(&second);
    write_files(args, &runs, session)?;
    if session.json {
        if !asserted.is_empty() {
            printed["asserts"] = json!(asserted);
        }
        if !outcomes.is_empty() {
            printed["what_if"] = json!(outcomes);
        }
        print_json(&printed)?;
    } else {
        let options = text_options(args);
        let mut out = String::new();
        if args.text || !writes_files(args) {
            out.push_str(&text_of(&runs, diff.as_ref(), &options));
        }
        out.push_str(&what_if::text(&outcomes));
        out.push_str(&asserts::text(&asserted));
        print(&out)?;
    }
    asserts::verdict(&asserted)
}

/// Refuses to overwrite an input.
fn protect_inputs(args: &Args) -> Result<(), Failure> {
    let canonical = |path: &PathBuf| path.canonicalize().ok();
    let is_lost = |input: &PathBuf| {
        let outputs = [&args.html, &args.perfetto, &args.chrome];
        let in_tables = input.extension().is_some_and(|end| end == "csv")
            && args.csv.as_ref().and_then(canonical).as_deref() == input.parent();
        in_tables
            || outputs.into_iter().flatten().any(|path| canonical(path).as_ref() == Some(input))
    };
    let inputs = std::iter::once(&args.file).chain(&args.other);
    match inputs.filter_map(canonical).find(is_lost) {
        None => Ok(()),
        Some(path) => Err(Failure::usage(format!(
            "{} is an input, and writing there would destroy it: give another file",
            path.display()
        ))),
    }
}

fn writes_files(args: &Args) -> bool {
    [&args.html, &args.perfetto, &args.chrome, &args.csv].iter().any(|path| path.is_some())
}

fn write_files(args: &Args, runs: &[&Run], session: &Session) -> Result<(), Failure> {
    let first = runs[0];
    if let Some(path) = &args.html {
        let page_runs: Vec<PageRun> = runs.iter().map(|run| run.page_run()).collect();
        let page = html::page(&page_runs).map_err(|error| Failure::failed(error.to_string()))?;
        files::write(path, page.as_bytes(), session)?;
    }
    if let Some(path) = &args.perfetto {
        files::write(path, &export::perfetto(&first.timeline, &first.analysis), session)?;
    }
    if let Some(path) = &args.chrome {
        let trace = export::chrome(&first.timeline, &first.analysis);
        files::write(path, trace.as_bytes(), session)?;
    }
    if let Some(folder) = &args.csv {
        files::make_folder(folder)?;
        for table in export::csv(&first.timeline, &first.analysis) {
            files::write(&folder.join(table.file), table.text.as_bytes(), session)?;
        }
    }
    Ok(())
}

/// Width of the chart if stdout is not a terminal.
const WIDTH: usize = 100;

fn text_options(args: &Args) -> TextOptions {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    TextOptions {
        width: args.width.or(terminal).unwrap_or(WIDTH),
        glyphs: if args.ascii || is_ascii() { Glyphs::Ascii } else { Glyphs::Unicode },
        // `print` removes styles where they are unwanted.
        colours: Colours::Ansi,
        ..TextOptions::default()
    }
}

fn text_of(runs: &[&Run], diff: Option<&Diff>, options: &TextOptions) -> String {
    let mut out = String::new();
    for run in runs {
        if runs.len() > 1 {
            out.push_str(&format!("== {}\n", one_line(&run.title)));
        }
        out.push_str(&text::text(&run.timeline, &run.analysis, &run.report, options));
        if runs.len() > 1 {
            out.push('\n');
        }
    }
    if let (Some(diff), [a, b]) = (diff, runs) {
        out.push_str(&format!("== {} -> {}\n", one_line(&a.title), one_line(&b.title)));
        out.push_str(&text::difference(diff, options));
    }
    out
}

//! `lapwing study`: scenarios, strategies, parameters and seeds in one file, and their results in one folder.

use std::path::PathBuf;

use lapwing_lab::study::{Begin, ScenarioSummary, Study, StudyError, StudyRun};
use lapwing_traces::text::counted;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{print, print_json};
use crate::cli::resolve::fetched_before;
use crate::cli::session::Session;

mod progress;
mod text;

use progress::Shown;

const EXAMPLES: &str = "\
Examples:
  lapwing study examples/studies/gpu_and_npu.toml
  lapwing study my_study.toml --out results/first
  lapwing study my_study.toml --out results/first --resume     after an interruption

A study has scenarios; a setting with a list of values makes a run for each:
  seeds = 5
  [[scenario]]
  name = \"prompts\"
  soc = \"sd8gen3\"
  prompt = [64, 256, 1024]
  strategy = [\"pipe\", \"tensor-level\"]
  noise.spread = 0.05
  against = \"strategy=pipe\"

docs/study.md describes the file. The folder has the study, its presets and files, all runs as
comma-separated values, means with 95 % intervals, plots, and the page index.html. The same study
and version give the same bytes.

With --json:
  {\"folder\":\"…\",\"runs\":N,\"failed\":N,\"files\":[\"…\"],
   \"scenarios\":[{\"name\":\"…\",\"runs\":N,\"failed\":N,\"error\":\"…\"|null,
     \"means\":[{\"values\":[\"…\"],\"result\":\"…\",\"runs\":N,\"mean\":F|null,\"low\":F|null,\"high\":F|null}]}]}";

/// Options of `study`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The study
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,

    /// Folder for the results [default: NAME-results, after the file's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Go on with the interrupted run in the folder
    #[arg(long, conflicts_with = "restart")]
    resume: bool,

    /// Remove the results of a study in the folder, and begin again
    #[arg(long)]
    restart: bool,
}

#[derive(Serialize)]
struct Report {
    folder: String,
    runs: usize,
    failed: usize,
    files: Vec<String>,
    scenarios: Vec<ScenarioReport>,
}

#[derive(Serialize)]
struct ScenarioReport {
    name: String,
    runs: usize,
    failed: usize,
    error: Option<String>,
    means: Vec<MeanReport>,
}

/// The mean of a result.
#[derive(Serialize)]
struct MeanReport {
    values: Vec<String>,
    result: String,
    runs: usize,
    mean: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        match error {
            StudyError::Exists { .. } | StudyError::NotResumable { .. } => {
                Failure::instead(error.to_string())
            }
            _ => Failure::failed(error.to_string()),
        }
    }
}

/// Runs the study, and prints its means.
pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let study = Study::read(&args.file, |name| fetched_before(name).ok().flatten())?;
    let usual = || PathBuf::from(format!("{}-results", study.name()));
    let folder = args.out.clone().unwrap_or_else(usual);
    let begin = match (args.resume, args.restart) {
        (true, _) => Begin::Resume,
        (_, true) => Begin::Restart,
        _ => Begin::New,
    };
    let mut run = study.begin(&folder, begin)?;
    go_on(&mut run, session)?;
    let summaries = run.summaries();
    notes(&summaries, session);
    let files = run.finish()?;
    let count = counted(files.len(), "file");
    session.note(&format!("wrote {count} to {}", folder.display()));
    let report = Report {
        folder: folder.display().to_string(),
        runs: study.runs(),
        failed: summaries.iter().map(|summary| summary.failed).sum(),
        files,
        scenarios: summaries.iter().map(ScenarioReport::new).collect(),
    };
    match session.json {
        true => print_json(&report)?,
        false => print(&text::text(&study.title, &report.scenarios))?,
    }
    let lost = |scenario: &&ScenarioReport| scenario.failed == scenario.runs;
    match report.scenarios.iter().find(lost) {
        None => Ok(()),
        Some(ScenarioReport { name, error, .. }) => {
            let error = error.clone().unwrap_or_default();
            Err(Failure::failed(format!("all runs of scenario '{name}' failed: {error}")))
        }
    }
}

/// Runs what is left. A signal ends it between two runs.
fn go_on(run: &mut StudyRun<'_>, session: &Session) -> Result<(), Failure> {
    let claim = session.interrupts.claim();
    let (done, all) = run.done();
    if done > 0 {
        session.note(&format!("{done} of {} have ended already", counted(all, "run")));
    }
    let mut shown = Shown::new(session);
    let is_complete = run.go_on(&mut |progress| {
        shown.show(progress);
        claim.received().is_none()
    });
    shown.end();
    match (is_complete?, claim.received()) {
        (false, Some(signal)) => {
            let (done, all) = run.done();
            session.note(&format!(
                "{done} of {all} runs have ended; --resume goes on with the others"
            ));
            Err(Failure::Interrupted(signal))
        }
        _ => Ok(()),
    }
}

fn notes(summaries: &[ScenarioSummary], session: &Session) {
    for ScenarioSummary { name, failed, error, seeds_are_equal, .. } in summaries {
        if let Some(error) = error {
            let failed = counted(*failed, "run");
            session.note(&format!(
                "note: {failed} of scenario '{name}' failed, the first because: {error}"
            ));
        }
        if *seeds_are_equal {
            session.note(&format!(
                "note: all seeds of scenario '{name}' have the same results; noise.spread = 0.05 makes times differ"
            ));
        }
    }
}

impl ScenarioReport {
    fn new(summary: &ScenarioSummary) -> ScenarioReport {
        let ScenarioSummary { name, sweep, figures, failed, error, .. } = summary;
        let means = figures.iter().flat_map(|figure| {
            sweep.means(figure).into_iter().map(|group| {
                let (low, high) = group.interval.unzip();
                let mean = Some(group.mean).filter(|mean| mean.is_finite());
                let (values, result, runs) = (group.values, figure.clone(), group.runs);
                MeanReport { values, result, runs, mean, low, high }
            })
        });
        ScenarioReport {
            name: name.clone(),
            runs: sweep.points.len(),
            failed: *failed,
            error: error.clone(),
            means: means.collect(),
        }
    }
}

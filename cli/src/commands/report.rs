//! `lapwing report`: what this machine is and does, in a file for others.

use std::path::{Path, PathBuf};

use lapwing_traces::whole_file;

use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::output::{print, print_json};
use crate::cli::resolve::model_file;
use crate::cli::session::Session;
use crate::cli::{ModelArg, at_least_one};
use content::Report;
use private::Private;
use steps::Steps;

mod collect;
mod content;
mod load;
mod machine;
mod private;
mod steps;
mod text;

/// File of a report, if none is named.
const FILE: &str = "lapwing-report.json";

/// What a report has, said before it is made.
const CONTENT: &str = "\
the report will have: the processor with its cores, caches and memory; the system with its version; devices and \
drivers with their versions; the name and the size of the model's file; times of the model's ops on each device; \
predicted and measured times of strategies; token ids of a fixed prompt; and what failed. It will have no names \
of the machine or its users, no paths, no serial numbers and no text of yours";

const EXAMPLES: &str = "\
Examples:
  lapwing report                                      lapwing-report.json, in about a minute
  lapwing report --device cpu+gpu=opencl --seconds 300 -o mine.json
  lapwing report --show mine.json
  lapwing plan -p 300 --explain --device cpu+gpu=opencl --profile mine.json
  lapwing calibrate --profile mine.json -o mine.toml && lapwing simulate --soc mine.toml

A report is one JSON file that the owner of a GPU, an NPU or a phone can send to others: machine,
drivers, a profile, strategies predicted and measured, and whether each device generates the ids of
the CPU. What it has is said before it is made, and it is shown when it is written. Its profile is
accepted wherever the file of a profile is.

Without --device, these are the CPU and all real GPUs and NPUs that drivers list. Each step has a
process of its own, so that a driver which aborts, hangs or cannot run the model is named in the
report, and the other steps go on. --seconds bounds all steps together (default 60, of which the
profile takes up to half); what does not fit is left out, and the report says so. Ctrl-C leaves no
file.

With --json: the report (docs/json.md)";

/// Options of `report`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Show this report instead of making one
    #[arg(long, value_name = "FILE.json",
          conflicts_with_all = ["output", "seconds", "device", "threads", "model", "prompt_tokens"])]
    show: Option<PathBuf>,

    /// Write the report to FILE [default: lapwing-report.json]
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,

    /// Maximum seconds for all steps together
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = at_least_one)]
    seconds: usize,

    /// Tokens of the prompt with which strategies are measured
    #[arg(short, long, value_name = "N", default_value_t = 135, value_parser = at_least_one)]
    prompt_tokens: usize,

    /// Add a device, as in cpu, gpu=opencl or npu=openvino; repeat it, or join several with + [default: cpu, and
    /// every real processor that a driver lists]
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,

    /// Compute threads of the CPU [default: all hardware threads]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    threads: Option<usize>,

    #[command(flatten)]
    model: ModelArg,
}

/// Makes a report, writes it and prints it; or prints one.
pub(crate) async fn run(args: Args, session: &Session) -> Result<(), Failure> {
    if let Some(path) = &args.show {
        let report = Report::load(path).map_err(|error| Failure::failed(error.to_string()))?;
        return show(&report, session);
    }
    let path = args.output.as_deref().unwrap_or(Path::new(FILE));
    files::parent(path)?;
    whole_file::check(path).map_err(|error| Failure::file("write", path, &error))?;
    let model = model_file(&args.model.model, session).await?;
    session.note(CONTENT);
    let steps = Steps::new(&args, &model, session);
    let report = collect::report(&args, &model, &steps, session).await?;
    let report = clean(&report, &steps.private)?;
    let mut json = serde_json::to_string_pretty(&report).map_err(unwritable)?;
    json.push('\n');
    files::write(path, json.as_bytes(), session)?;
    show(&report, session)
}

/// Whether a file is a report.
pub(crate) fn is_report(path: &Path) -> bool {
    Report::load(path).is_ok()
}

/// The report without anything private, as it is written.
fn clean(report: &Report, private: &Private) -> Result<Report, Failure> {
    let mut value = serde_json::to_value(report).map_err(unwritable)?;
    private.clean(&mut value);
    serde_json::from_value(value).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::failed(format!("cannot write the report as JSON: {error}"))
}

fn show(report: &Report, session: &Session) -> Result<(), Failure> {
    if session.json { print_json(report) } else { print(&text::of(report)) }
}

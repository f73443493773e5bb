//! Options of a scenario with many requests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use lapwing_engine::draft::{DraftForm, Schedule};
use lapwing_lab::load::{LoadRequest, Trace};
use lapwing_lab::simulate::speculation::Acceptance;
use lapwing_lab::simulate::{
    Composite, DraftSettings, Overlaps, RequestText, Scenario, Workflow, stages,
};

use super::acceptance;
use super::draft_form::DraftFormArgs;
use super::draft_length::{Length, length};
use super::failure::Failure;
use super::parse::time;
use super::resolve::fetched_before;

/// Many requests, in place of one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Many requests")]
pub(crate) struct CompositeArgs {
    /// Serve these requests in place of one: [NAME:][COUNTx]PROMPT+ANSWER[@TIME][^PRIORITY],… in
    /// tokens, as in 2x30+150,860+1@1s; @RATE/min*TIME are random arrivals, as in
    /// chat:213+70@3/min*15min^background; or a trace, as of `lapwing load`
    #[arg(
        long,
        value_name = "REQUESTS|TRACE",
        conflicts_with_all = ["prompt_tokens", "max_tokens", "verify", "repeat"]
    )]
    pub(crate) requests: Option<String>,

    /// Shape of a model that drafts for them, as for --model
    #[arg(long, value_name = "SHAPE", requires = "requests")]
    draft: Option<String>,

    /// Device of the draft model [default: a CPU, or the first that computes attention]
    #[arg(long, value_name = "NAME", requires = "draft")]
    draft_device: Option<String>,

    /// Probabilities that a drafted token is right; a run for each
    #[arg(
        long,
        value_name = "A,…",
        value_delimiter = ',',
        requires = "draft",
        default_value = "0.8"
    )]
    acceptance: Vec<f64>,

    /// Probabilities that the first, second, … token of a draft is right if those before it are
    #[arg(
        long,
        value_name = "A,…",
        value_delimiter = ',',
        requires = "draft",
        conflicts_with = "acceptance"
    )]
    acceptance_at: Vec<f64>,

    /// The same from a real run: the output of `run --draft … --json`
    #[arg(
        long,
        value_name = "RUN.json",
        requires = "draft",
        conflicts_with_all = ["acceptance", "acceptance_at"]
    )]
    acceptance_of: Option<PathBuf>,

    /// Schedule of the draft model: sync or async
    #[arg(long, value_name = "NAME", requires = "draft", default_value = "async")]
    schedule: Schedule,

    /// Drafted tokens of a step, 1 to 15, or auto: as many as pay, as in the live engine
    #[arg(long, value_name = "N", requires = "draft", default_value = "auto", value_parser = length)]
    draft_length: Length,

    #[command(flatten)]
    form: DraftFormArgs,

    /// Longest time that a stream is to wait for a token while other prompts are computed, as in 250ms
    #[arg(long, value_name = "TIME", requires = "requests", value_parser = time)]
    token_gap: Option<Duration>,

    /// Maximum requests that run at the same time [default: 16]
    #[arg(
        long,
        value_name = "N",
        requires = "requests",
        value_parser = clap::value_parser!(u32).range(1..=65536)
    )]
    max_running_requests: Option<u32>,

    /// Models of clients' requests, and whose requests precede theirs: NAME[=SHAPE[@DEVICE]][>NAME+NAME]
    /// with spaces between, as in 'draft=qwen2-1.5b@cpu answer>draft'
    #[arg(long, value_name = "STAGES", requires = "requests")]
    stages: Option<String>,

    /// Requests that begin the longest chain of requests go first
    #[arg(long, requires = "stages")]
    critical_first: bool,

    /// Chunks other than those of the first request wait while those in flight take this bandwidth
    #[arg(long, value_name = "GB/s", requires = "requests", value_parser = above_0)]
    bandwidth_limit: Option<f64>,

    /// Turn off: prompts beside streams, drafts, or cuts between devices; the fastest device then computes all
    #[arg(
        long,
        value_name = "prompts,drafts,cuts",
        value_delimiter = ',',
        value_parser = ["prompts", "drafts", "cuts"],
        hide_possible_values = true,
        requires = "requests"
    )]
    without: Vec<String>,

    /// Run with each of prompts, drafts and cuts on or off, and compare
    #[arg(long, requires = "requests", conflicts_with_all = ["without", "trace"])]
    pub(crate) ablate: bool,
}

/// A scenario, and the acceptance that it is for.
pub(crate) struct Variant {
    pub(crate) composite: Composite,
    /// `None` without drafts, and if acceptance is by position.
    pub(crate) acceptance: Option<f64>,
}

impl CompositeArgs {
    /// The scenarios to run.
    pub(crate) fn variants(&self, base: &Scenario, text: &str) -> Result<Vec<Variant>, Failure> {
        let off = |name: &str| self.without.iter().any(|off| off == name);
        let overlaps =
            Overlaps { prompts: !off("prompts"), drafts: !off("drafts"), cuts: !off("cuts") };
        let composite = Composite::new(base.clone(), read(text, base.seed)?);
        let stages = self.stages.as_deref().map(stages).transpose()?.unwrap_or_default();
        let workflow = Workflow { stages, critical_first: self.critical_first };
        let bandwidth_limit = self.bandwidth_limit;
        let composite = Composite { workflow, bandwidth_limit, ..composite };
        let sequences = self.max_running_requests.map(|most| most as usize);
        let sequences = sequences.unwrap_or(composite.sequences);
        let composite = Composite { token_gap: self.token_gap, sequences, overlaps, ..composite };
        let Some(draft) = &self.draft else {
            self.check_form(false)?;
            return Ok(vec![Variant { composite, acceptance: None }]);
        };
        let variant = |rate: Option<f64>, acceptance: Acceptance| Variant {
            composite: Composite {
                draft: Some(self.settings(draft, base, acceptance)),
                ..composite.clone()
            },
            acceptance: rate,
        };
        let seed = base.seed;
        let by_position = match (&self.acceptance_of, &self.acceptance_at[..]) {
            (Some(path), _) => Some(acceptance::of_run(path, seed)?),
            (None, []) => None,
            (None, rates) => Some(Acceptance::ByPosition { rates: rates.into(), seed }),
        };
        if let Some(acceptance) = by_position {
            return Ok(vec![variant(None, acceptance)]);
        }
        let rates = self.acceptance.iter();
        let independent =
            rates.map(|rate| variant(Some(*rate), Acceptance::Independent { rate: *rate, seed }));
        Ok(independent.collect())
    }

    fn settings(&self, draft: &str, base: &Scenario, acceptance: Acceptance) -> DraftSettings {
        let mut of_draft = base.clone();
        draft.clone_into(&mut of_draft.model);
        let is_known = of_draft.check_model().is_ok();
        let cached = || fetched_before(draft).ok().flatten();
        let cached = if is_known { None } else { cached() };
        DraftSettings {
            model: cached.map_or_else(|| draft.to_owned(), |path| path.display().to_string()),
            device: self.draft_device.clone(),
            acceptance,
            schedule: self.schedule,
            length: self.draft_length.0,
            form: self.form.form(),
        }
    }

    /// Checks that options of drafts are given only where a model drafts.
    pub(crate) fn check_form(&self, drafts: bool) -> Result<(), Failure> {
        match self.form.form() == DraftForm::default() || drafts {
            true => Ok(()),
            false => Err(Failure::usage(
                "--sync-bonus-pass, --pre-verify and --post-verify are for drafts: add --requests and --draft SHAPE",
            )),
        }
    }
}

fn above_0(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0);
    number.ok_or_else(|| "it must be above 0".to_owned())
}

/// Reads requests from their text, or from a trace. The seed says when those of a rate arrive.
fn read(text: &str, seed: u64) -> Result<Vec<LoadRequest>, Failure> {
    let path = Path::new(text);
    if !path.is_file() {
        return Ok(text.parse::<RequestText>()?.requests(seed));
    }
    let file = std::fs::File::open(path).map_err(|error| Failure::file("read", path, &error))?;
    let trace = Trace::read(file)
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    Ok(trace.requests)
}

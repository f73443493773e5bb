//! The command line and its commands, one file each.

mod bench;
mod calibrate;
mod chat;
mod completions;
mod convert;
mod devices;
mod embed;
mod export_hf;
mod fit;
mod groups;
mod inspect;
mod load;
mod models;
mod perplexity;
mod plan;
mod prepare;
mod profile;
mod ps;
mod pull;
mod ranges;
mod report;
mod reproduce;
mod rerank;
mod run;
mod sensitivity;
pub(crate) mod serve;
mod simulate;
mod speculate;
mod study;
mod sweep;
mod timeline;
mod tokenize;
mod what_if;

pub(crate) use devices::list_drivers;

use std::ffi::OsString;
use std::io::Write;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::charset::shown;
use crate::cli::failure::Failure;
use crate::cli::other_names;
use crate::cli::session::Session;

/// The end of `lapwing --help`.
const EXAMPLES: &str = "\
Examples:
  lapwing run \"Why is the sky blue?\"           answer one prompt; fetches the default model first
  lapwing run gemma-3-1b-it \"Why?\"             answer with another model
  lapwing chat gemma-3-1b-it                   talk to it
  lapwing serve                                serve a model over HTTP, with a page to chat
  lapwing run -m FILE.gguf --raw \"def fib(n):\" continue plain text with a file on disk
  lapwing bench -m FILE.gguf -t 4              measure tokens per second
  lapwing bench -m FILE.gguf --vs llama.cpp    compare with another engine, run by run
  lapwing timeline run.lwt                     show where the time of a recorded run went
  lapwing profile --device phone               measure the devices, to predict times
  lapwing prepare --device cpu+npu=openvino    measure, plan and compile graphs ahead
  lapwing plan -p 525 --device phone           which device would run which part of a prompt
  lapwing devices                              show the processors of this machine
  lapwing report                               describe them, measured, in a file for others
  lapwing reproduce                            compare published numbers with simulated ones

Models:
  MODEL is a .gguf file, a name from `lapwing models`, or hf:owner/repo[:QUANT], or
  hf:owner/repo/file.gguf[@revision]; hf.co/owner/repo is the same as hf:owner/repo.
  Files on disk need no network. Fetched models are stored in $LAPWING_CACHE, or else in
  $XDG_CACHE_HOME/lapwing or ~/.cache/lapwing. Models in the cache of Hugging Face's tools are used
  where they are. With HF_HUB_OFFLINE=1 no request is sent to the hub.

Names of other programs:
  Options of llama.cpp, Ollama and vLLM mean what they mean there, or the error says what to type
  instead; docs/names.md lists them.

Output:
  Results go to stdout; progress, notes and errors go to stderr. With --json a command prints one
  JSON object (chat: one per answer); docs/json.md describes them. NO_COLOR turns colours off.

Exit codes:
  0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C,
  143 ended by SIGTERM, 129 by SIGHUP";

/// The end of `lapwing -h`.
const NEXT: &str = "\
lapwing run \"Why is the sky blue?\" answers one prompt, and fetches the default model first.
lapwing COMMAND -h lists a command's main options; --help lists all, with examples.";

/// Maximum width of help texts, in columns.
const WIDTH: usize = 100;

/// Runs large language models on this machine.
#[derive(Debug, Parser)]
#[command(name = "lapwing", version, about = "Runs large language models on this machine", after_help = NEXT, after_long_help = EXAMPLES, max_term_width = WIDTH)]
pub(crate) struct Cli {
    /// Print JSON instead of text; docs/json.md defines the format
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the program's arguments. `--help` and `--version` end the process.
    ///
    /// # Errors
    /// When they are wrong, in one sentence.
    pub(crate) fn from_args() -> Result<Cli, Failure> {
        Cli::of_words(std::env::args_os()).map_err(|wrong| match wrong {
            Wrong::Failure(failure) => failure,
            Wrong::Clap(error) => match error.kind() {
                ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => end_with(&error),
                _ => Failure::usage(first_paragraph(&error.render().to_string())),
            },
        })
    }

    /// Parses words of which the first is the program, with names of other programs in the place of its own.
    fn of_words(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Wrong> {
        let cli = Cli::built();
        let words = other_names::translated(&cli, words).map_err(Wrong::Failure)?;
        let matches = cli.try_get_matches_from(words).map_err(Wrong::Clap)?;
        Cli::from_arg_matches(&matches).map_err(Wrong::Clap)
    }

    /// The command line, with options of all commands in each.
    pub(crate) fn built() -> clap::Command {
        let mut cli = Cli::grouped();
        cli.build();
        cli
    }

    /// The command line, with its commands in groups.
    fn grouped() -> clap::Command {
        groups::group(Cli::command())
    }
}

/// Why arguments cannot be parsed.
#[derive(Debug)]
enum Wrong {
    /// A name is unknown, or has no counterpart.
    Failure(Failure),
    /// The parser says so, or help was requested.
    Clap(clap::Error),
}

/// The first paragraph of an error of the parser on one line, without its label: usage and tips follow it.
fn first_paragraph(error: &str) -> String {
    let text = error.strip_prefix("error: ").unwrap_or(error);
    let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

/// Prints a help text and ends the process.
fn end_with(error: &clap::Error) -> ! {
    let text = error.render().ansi().to_string();
    let text = shown(&text);
    // A reader that is gone gets nothing, as with every other output.
    let _ = match error.use_stderr() {
        true => anstream::stderr().write_all(text.as_bytes()),
        false => anstream::stdout().write_all(text.as_bytes()),
    };
    std::process::exit(error.exit_code())
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer one prompt, or continue a text
    Run(run::Args),
    /// Chat with a model
    Chat(chat::Args),
    /// Serve models over HTTP, to the clients of OpenAI, Ollama and Anthropic
    Serve(serve::Args),
    /// Fetch a model into the cache
    Pull(pull::Args),
    /// List, verify and remove models
    Models(models::Args),
    /// Show which models a server has loaded
    Ps(ps::Args),
    /// Show the contents of a model file, and which device would run which stage
    Inspect(inspect::Args),
    /// Convert a model file older than GGUF to GGUF
    Convert(convert::Args),
    /// Write a model's tokenizer and chat template for transformers and engines with its interfaces
    #[command(name = "export-hf")]
    ExportHf(export_hf::Args),
    /// Convert text to token ids
    Tokenize(tokenize::Args),
    /// Print the embeddings of texts
    Embed(embed::Args),
    /// Order documents by how well they answer a query
    Rerank(rerank::Args),
    /// Show the devices of this machine, and why other kinds of device are absent
    Devices(devices::Args),
    /// Send many requests of several clients, and report how each was served
    Load(load::Args),
    /// Measure how well a model predicts a text
    Perplexity(perplexity::Args),
    /// Show which device would run which part of a prompt, how long it takes, and why
    Plan(plan::Args),
    /// Measure the devices, so that predicted times are based on measurements
    Profile(profile::Args),
    /// Measure, plan and prepare graphs ahead, so that the first prompt starts warm
    Prepare(prepare::Args),
    /// Measure the ranges of activations, for NPUs that compute with int8
    Ranges(ranges::Args),
    /// Measure the speed of prompt processing and generation in tokens per second
    Bench(bench::Args),
    /// Describe this machine and its devices in a file that can be sent to others
    Report(report::Args),
    /// Show where the time of a recorded run went
    Timeline(timeline::Args),
    /// Simulate a run on a phone's processors, without weights
    Simulate(simulate::Args),
    /// Compare published numbers with simulated ones
    Reproduce(reproduce::Args),
    /// Simulate a run for each value of a setting
    Sweep(sweep::Args),
    /// Run the scenarios of a file, and write tables, plots and a page to a folder
    Study(study::Args),
    /// Show what a change of the processors would change, and where
    WhatIf(what_if::Args),
    /// Show how much each parameter of the processors matters
    Sensitivity(sensitivity::Args),
    /// Simulate speculative decoding: acceptance, draft length, schedules, shared bandwidth
    Speculate(speculate::Args),
    /// Describe this machine's devices as a preset
    Calibrate(calibrate::Args),
    /// Fit the parameters of the processors to published numbers
    Fit(fit::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

/// Runs a command.
pub(crate) async fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args, session).await,
        Command::Chat(args) => chat::run(args, session).await,
        Command::Serve(args) => serve::run(args, session).await,
        Command::Pull(args) => pull::run(args, session).await,
        Command::Models(args) => models::run(args, session).await,
        Command::Ps(args) => ps::run(args, session).await,
        Command::Inspect(args) => inspect::run(args, session).await,
        Command::Load(args) => load::run(args, session).await,
        Command::Convert(args) => convert::run(args, session).await,
        Command::ExportHf(args) => export_hf::run(args, session).await,
        Command::Tokenize(args) => tokenize::run(args, session).await,
        Command::Embed(args) => embed::run(args, session).await,
        Command::Rerank(args) => rerank::run(args, session).await,
        Command::Devices(args) => devices::run(args, session).await,
        Command::Perplexity(args) => perplexity::run(args, session).await,
        Command::Plan(args) => plan::run(args, session).await,
        Command::Profile(args) => profile::run(args, session).await,
        Command::Prepare(args) => prepare::run(args, session).await,
        Command::Ranges(args) => ranges::run(args, session).await,
        Command::Bench(args) => bench::run(args, session).await,
        Command::Report(args) => report::run(args, session).await,
        Command::Timeline(args) => timeline::run(&args, session),
        Command::Simulate(args) => simulate::run(&args, session),
        Command::Reproduce(args) => reproduce::run(&args, session),
        Command::Sweep(args) => sweep::run(&args, session),
        Command::Study(args) => study::run(&args, session),
        Command::WhatIf(args) => what_if::run(&args, session),
        Command::Sensitivity(args) => sensitivity::run(&args, session),
        Command::Speculate(args) => speculate::run(&args, session),
        Command::Fit(args) => fit::run(&args, session),
        Command::Calibrate(args) => calibrate::run(args, session).await,
        Command::Completions(args) => completions::run(&args, Cli::grouped(), session),
    }
}

#[cfg(test)]
mod tests;

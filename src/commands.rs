//! The commands, one file each, and their shared helpers.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod devices;
pub(crate) mod failure;
pub(crate) mod fit;
pub(crate) mod inspect;
pub(crate) mod models;
pub(crate) mod perplexity;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod pull;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod sensitivity;
pub(crate) mod session;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod timeline;
pub(crate) mod tokenize;
pub(crate) mod what_if;

mod answer;
mod compare;
mod fetch_progress;
mod input;
mod interrupts;
mod output;
mod requant;
pub(crate) mod resolve;
mod table;
mod trace;
mod watch;

use crate::cli::Command;
use failure::Failure;
use session::Session;

/// Runs a command.
pub(crate) async fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args, session).await,
        Command::Chat(args) => chat::run(args, session).await,
        Command::Pull(args) => pull::run(args, session).await,
        Command::Models(args) => models::run(args, session).await,
        Command::Inspect(args) => inspect::run(args, session).await,
        Command::Tokenize(args) => tokenize::run(args, session).await,
        Command::Devices(args) => devices::run(args, session).await,
        Command::Perplexity(args) => perplexity::run(args, session).await,
        Command::Plan(args) => plan::run(args, session).await,
        Command::Profile(args) => profile::run(args, session).await,
        Command::Bench(args) => bench::run(args, session).await,
        Command::Timeline(args) => timeline::run(&args, session),
        Command::Simulate(args) => simulate::run(&args, session),
        Command::Reproduce(args) => reproduce::run(&args, session),
        Command::Sweep(args) => sweep::run(&args, session),
        Command::WhatIf(args) => what_if::run(&args, session),
        Command::Sensitivity(args) => sensitivity::run(&args, session),
        Command::Fit(args) => fit::run(&args, session),
        Command::Calibrate(args) => calibrate::run(args, session).await,
        Command::Completions(args) => completions::run(&args, session),
    }
}

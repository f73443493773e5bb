//! `lapwing completions`: completion scripts for shells.

use clap_complete::Shell;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::output::{print_json, print_plain};
use crate::cli::session::Session;

const EXAMPLES: &str = "\
Examples:
  lapwing completions bash > ~/.local/share/bash-completion/completions/lapwing
  lapwing completions zsh  > ~/.zfunc/_lapwing
  lapwing completions fish > ~/.config/fish/completions/lapwing.fish

With --json: {\"shell\":\"bash\",\"script\":\"…\"}";

/// Options of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

#[derive(Serialize)]
struct Report {
    shell: String,
    script: String,
}

/// Prints the script that completes `command`.
pub(crate) fn run(
    args: &Args,
    mut command: clap::Command,
    session: &Session,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "lapwing", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if session.json {
        return print_json(&Report { shell: args.shell.to_string(), script });
    }
    print_plain(&script)
}

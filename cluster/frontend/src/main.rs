//! The program `lapwing-frontend`.

use std::process::ExitCode;

use clap::Parser;
use lapwing_frontend::Options;

fn main() -> ExitCode {
    match Options::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

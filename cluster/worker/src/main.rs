//! The program `lapwing-worker`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use lapwing_cli::engine_options::{self, leave};
use lapwing_worker::Options;

fn main() -> ExitCode {
    engine_options::answer_lister();
    let options = Options::parse();
    // Dynamo starts the runtime that serves.
    let opened = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(options.open()),
        Err(error) => {
            eprintln!("error: cannot start the async runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (worker, config) = match opened {
        Ok(opened) => opened,
        Err(error) => return error.report(),
    };
    match dynamo_backend_common::run(Arc::new(worker), config) {
        Ok(()) => leave(0),
        Err(error) => {
            eprintln!("error: {error:#}");
            leave(1)
        }
    }
}

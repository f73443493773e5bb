//! The program `lapwing-worker`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use lapwing_cli::engine_options::{self, leave};
use lapwing_worker::{LapwingWorker, Options};

fn main() -> ExitCode {
    engine_options::answer_lister();
    let options = Options::parse();
    if let Err(error) = options.engine.check() {
        return error.report();
    }
    let config = match options.worker() {
        Ok(config) => config,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    match dynamo_backend_common::run(Arc::new(LapwingWorker::new(options)), config) {
        Ok(()) => leave(0),
        Err(error) => {
            eprintln!("error: {error:#}");
            leave(1)
        }
    }
}

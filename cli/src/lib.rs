//! The command line of the `lapwing` program, whose help describes it; `docs/json.md` defines its JSON.

mod cli;
mod commands;
pub mod engine_options;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cli::failure::Failure;
use cli::session::Session;
use cli::signals::Signals;
use commands::Cli;
use lapwing_kernels::leave;

/// Maximum time that an interrupted command may take to clean up.
const ABORT_MAX: Duration = Duration::from_millis(200);

/// The program: reads its arguments, runs the command, and ends the process where that was interrupted.
pub fn main() -> ExitCode {
    engine_options::answer_lister();
    let cli = match Cli::from_args() {
        Ok(cli) => cli,
        Err(failure) => return failure.report(),
    };
    let session = Arc::new(Session::new(cli.json));
    if let Err(failure) = cli::limits::check() {
        return failure.report();
    }
    let outcome =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => {
                let outcome = runtime.block_on(supervise(&runtime, cli, &session));
                runtime.shutdown_background();
                outcome
            }
            Err(error) => Err(Failure::failed(format!("cannot start the async runtime: {error}"))),
        };
    session.restore_terminal();
    let code = outcome.err().map_or(0, |failure| {
        failure.report();
        failure.code()
    });
    let _ = std::io::stdout().flush();
    // Drivers free at the end of a process what their threads may still use.
    leave(code)
}

/// Runs the command while listening for signals, so that a command that is stuck, for example in a
/// write to a full pipe, can still be interrupted.
async fn supervise(
    runtime: &tokio::runtime::Runtime,
    cli: Cli,
    session: &Arc<Session>,
) -> Result<(), Failure> {
    cli::limits::receive_file_size_signal();
    let mut signals = Signals::listen().map_err(deaf)?;
    let mine = Arc::clone(session);
    let mut command = runtime.spawn(async move { commands::run(cli.command, &mine).await });
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Ok(signal) if session.interrupts.deliver(signal) => {}
                Ok(signal) => {
                    session.restore_after_interrupt();
                    command.abort();
                    // Dropping the command ends what it has started, such as pip. A command that is
                    // stuck is abandoned.
                    let _ = tokio::time::timeout(ABORT_MAX, command).await;
                    // The command may have begun to read a line in the meantime.
                    session.restore_terminal();
                    // Threads that compute or read input are abandoned. Standard output is not flushed, since it may
                    // be what the command is stuck in.
                    leave(Failure::Interrupted(signal).code());
                }
                Err(error) => return Err(deaf(error)),
            },
            ended = &mut command => {
                return ended.unwrap_or_else(|error| {
                    Err(Failure::failed(format!("the command ended without a result: {error}")))
                });
            }
        }
    }
}

/// Signals cannot be received.
fn deaf(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot listen for signals: {error}"))
}

//! The steps of a report: commands of this program, each in a process of its own, which a driver may end or hold up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::ProgressBar;
use lapwing_traces::{Clock, OsClock};
use serde::de::DeserializeOwned;

use super::Args;
use super::private::Private;
use crate::cli::child::{self, ChildError};
use crate::cli::drivers;
use crate::cli::session::Session;

/// Runs steps until their time is over.
pub(super) struct Steps<'a> {
    program: PathBuf,
    /// Options of every step: the model and the threads.
    options: Vec<String>,
    clock: OsClock,
    time: Duration,
    session: &'a Session,
    bar: Option<ProgressBar>,
    pub(super) private: Private,
}

impl<'a> Steps<'a> {
    /// Steps of a report. Their time begins now.
    pub(super) fn new(args: &Args, model: &Path, session: &'a Session) -> Steps<'a> {
        let mut options = vec!["-m".to_owned(), model.display().to_string()];
        if let Some(threads) = args.threads {
            options.extend(["-t".to_owned(), threads.to_string()]);
        }
        Steps {
            program: drivers::itself(),
            options,
            clock: OsClock::start(),
            time: Duration::from_secs(args.seconds as u64),
            session,
            bar: session.bar("{spinner} {msg}"),
            private: Private::here(model),
        }
    }

    /// Time since the first step.
    pub(super) fn taken(&self) -> Duration {
        Duration::from_nanos(self.clock.now().0)
    }

    /// Time that is left for further steps.
    pub(super) fn left(&self) -> Duration {
        self.time.saturating_sub(self.taken())
    }

    /// Runs a command for at most that share of the time that is left, and reads its JSON.
    ///
    /// # Errors
    /// Why it has no result, without anything private.
    pub(super) async fn run<T: DeserializeOwned>(
        &self,
        what: &str,
        share: f64,
        command: &str,
        more: &[&str],
    ) -> Result<T, String> {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => self.session.note(what),
        }
        let limit = self.left().mul_f64(share);
        if limit.is_zero() {
            return Err("left out: the time was over (--seconds gives more)".to_owned());
        }
        let mut args = vec![command.to_owned(), "--json".to_owned()];
        args.extend_from_slice(&self.options);
        args.extend(more.iter().map(|more| (*more).to_owned()));
        match tokio::time::timeout(limit, child::run(&self.program, &args)).await {
            Err(_) => Err(format!(
                "ended after {:.1} s, its share of the time (--seconds gives more)",
                limit.as_secs_f64()
            )),
            Ok(Err(error)) => Err(self.private.cleaned(&reason(&error))),
            Ok(Ok(ended)) => serde_json::from_slice(&ended.stdout)
                .map_err(|error| format!("its process gave a wrong answer: {error}")),
        }
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// Why a process has no result, in one line.
fn reason(error: &ChildError) -> String {
    let (status, stderr) = match error {
        ChildError::Start { source, .. } => return format!("no process can be started: {source}"),
        ChildError::Status { status, stderr, .. } => (status, stderr),
    };
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    match stderr.lines().find_map(|line| line.strip_prefix("error: ")) {
        Some(error) => error.to_owned(),
        None => match lines.next_back() {
            Some(line) => format!("its process ended with {status}, and wrote: {line}"),
            None => format!("its process ended with {status}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_error_or_how_the_process_ended() {
        let status = |status: &str, stderr: &str| ChildError::Status {
            program: "/a/lapwing".to_owned(),
            status: status.to_owned(),
            stderr: stderr.to_owned(),
        };
        let rows = [
            (status("exit status: 1", "note: x\nerror: no room\nhint: y"), "no room"),
            (status("signal: 6 (SIGABRT)", ""), "its process ended with signal: 6 (SIGABRT)"),
            (
                status("signal: 6 (SIGABRT)", "first\nlast words\n"),
                "its process ended with signal: 6 (SIGABRT), and wrote: last words",
            ),
        ];
        for (error, text) in rows {
            assert_eq!(reason(&error), text);
        }
    }
}

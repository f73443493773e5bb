//! Progress of a comparison of strategies, and how long it still takes.

use std::time::Duration;

use indicatif::ProgressBar;
use lapwing_lab::compare::Progress;
use lapwing_traces::text::counted;

use crate::cli::session::Session;

/// Shows the progress as a bar on a terminal, and otherwise as a line before each engine is built and before each run.
pub(in crate::commands) struct ProgressShown<'a> {
    session: &'a Session,
    bar: Option<ProgressBar>,
    /// Whether the expected duration has been printed.
    announced: bool,
}

impl<'a> ProgressShown<'a> {
    pub(in crate::commands) fn new(session: &'a Session) -> ProgressShown<'a> {
        let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len} runs{prefix}");
        ProgressShown { session, bar, announced: false }
    }

    pub(in crate::commands) fn show(&mut self, progress: &Progress) {
        if let (false, Some(left)) = (self.announced, progress.left) {
            self.announced = true;
            self.session.note(&announcement(progress.all, left));
        }
        match &self.bar {
            Some(bar) => {
                let left = left(progress).map(|left| format!(", {left}"));
                bar.set_length(progress.all as u64);
                bar.set_position(progress.done as u64);
                bar.set_prefix(left.unwrap_or_default());
                bar.set_message(match progress.tokens {
                    0 => format!("{}: preparing", progress.strategy),
                    tokens => format!("{}, {tokens} tokens", progress.strategy),
                });
            }
            None => self.session.note(&line(progress)),
        }
    }

    pub(in crate::commands) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How long a comparison is expected to take, before its first run.
fn announcement(runs: usize, left: Duration) -> String {
    format!(
        "{}, expected to take {}; --quick measures each strategy once",
        counted(runs, "run"),
        approximate(left)
    )
}

/// The time that is left, once a run has shown how fast runs are.
fn left(progress: &Progress) -> Option<String> {
    let left = progress.left.filter(|_| progress.done > 0);
    left.map(|left| format!("{} left", approximate(left)))
}

/// What begins now.
fn line(progress: &Progress) -> String {
    let Progress { done, all, strategy, tokens, .. } = progress;
    if *tokens == 0 {
        return format!("preparing {strategy}");
    }
    let left = left(progress).map_or_else(String::new, |left| format!(" ({left})"));
    format!("run {} of {all}: {strategy}, {tokens} tokens{left}", done + 1)
}

/// A duration as people estimate it: `40 s`, `5 min`.
fn approximate(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 10.0 => "less than 10 s".to_owned(),
        s if s < 90.0 => format!("about {:.0} s", (s / 10.0).ceil() * 10.0),
        s => format!("about {:.0} min", (s / 60.0).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_up_to_what_one_would_say() {
        let cases = [
            (2, "less than 10 s"),
            (61, "about 70 s"),
            (90, "about 2 min"),
            (1601, "about 27 min"),
        ];
        for (seconds, text) in cases {
            assert_eq!(approximate(Duration::from_secs(seconds)), text);
        }
    }
}

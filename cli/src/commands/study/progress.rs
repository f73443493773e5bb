//! Progress of a study.

use indicatif::ProgressBar;
use lapwing_lab::study::StudyProgress;

use crate::cli::session::Session;

/// Shows the progress as a bar on a terminal, and otherwise as a line now and then.
pub(super) struct Shown<'a> {
    session: &'a Session,
    bar: Option<ProgressBar>,
    /// Percentage at which the next line is written.
    next_line: usize,
}

/// A line is written each time this many more percent of the runs have ended.
const LINE_PERCENT: usize = 25;

impl<'a> Shown<'a> {
    pub(super) fn new(session: &'a Session) -> Shown<'a> {
        let bar = session.bar("{msg:.bold} {bar:40.cyan/dim} {pos}/{len} runs");
        Shown { session, bar, next_line: 0 }
    }

    /// Shows the number of finished runs, and the scenario of the next one.
    pub(super) fn show(&mut self, progress: &StudyProgress<'_>) {
        let StudyProgress { done, all, scenario, .. } = progress;
        if let Some(bar) = &self.bar {
            bar.set_length(*all as u64);
            bar.set_position(*done as u64);
            bar.set_message((*scenario).to_owned());
            return;
        }
        let percent = done * 100 / (*all).max(1);
        if percent >= self.next_line {
            let values = progress.values.join(", ");
            let values = if values.is_empty() { values } else { format!(": {values}") };
            self.session.note(&format!("run {} of {all}, {scenario}{values}", done + 1));
            self.next_line = (percent / LINE_PERCENT + 1) * LINE_PERCENT;
        }
    }

    pub(super) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

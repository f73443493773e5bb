//! Shows the progress of a fetch on stderr: a bar on a terminal, otherwise occasional lines.

use indicatif::{HumanBytes, ProgressBar};
use lapwing_engine::models::{FetchEvent, Progress};

use super::session::Session;

const BAR: &str =
    "{msg:9.bold} {bar:24.cyan/dim} {bytes:>10}/{total_bytes} {bytes_per_sec:>12} {eta:>4}";
const BAR_WITHOUT_TOTAL: &str = "{msg:.bold}  {bytes} {bytes_per_sec}";
const BAR_WITHOUT_COUNT: &str = "{msg:.bold}";

/// A line is written each time this many more percent of a phase are done.
const LINE_PERCENT: u64 = 25;

/// Shows the events of one fetch.
pub(crate) struct FetchProgress<'a> {
    session: &'a Session,
    bar: Option<ProgressBar>,
    done: u64,
    total: Option<u64>,
    /// Percentage at which the next line is written.
    next_line: u64,
    fetching: bool,
}

impl<'a> FetchProgress<'a> {
    /// Shows nothing before the first event.
    pub(crate) fn new(session: &'a Session) -> FetchProgress<'a> {
        FetchProgress { session, bar: None, done: 0, total: None, next_line: 0, fetching: false }
    }

    /// Removes the bar from the screen.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn phase(&mut self, title: &str, total: Option<u64>) {
        let template = if total.is_some() { BAR } else { BAR_WITHOUT_TOTAL };
        self.begin(template, title, total);
    }

    fn begin(&mut self, template: &str, title: &str, total: Option<u64>) {
        self.clear();
        (self.done, self.total, self.next_line) = (0, total, LINE_PERCENT);
        self.bar = self.session.bar(template);
        match (&self.bar, total) {
            (Some(bar), _) => {
                bar.set_message(title.to_owned());
                total.into_iter().for_each(|total| bar.set_length(total));
                bar.tick();
            }
            (None, Some(total)) => self.session.note(&format!("{title} ({})", HumanBytes(total))),
            (None, None) => self.session.note(title),
        }
    }

    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
            return;
        }
        let Some(total) = self.total.filter(|total| *total > 0) else { return };
        let percent = self.done * 100 / total;
        if percent >= self.next_line {
            self.session.note(&format!("  {percent} % of {}", HumanBytes(total)));
            self.next_line = (percent / LINE_PERCENT + 1) * LINE_PERCENT;
        }
    }
}

impl Progress for FetchProgress<'_> {
    fn on_event(&mut self, event: FetchEvent) {
        match event {
            FetchEvent::Waiting { name } => {
                self.session.note(&format!("another process is fetching {name}; waiting for it"));
            }
            FetchEvent::Notice { text } => self.session.note(&text),
            FetchEvent::Started { name, bytes_total } => {
                self.fetching = true;
                self.session.note(&format!("fetching {name}"));
                self.phase("transfer", bytes_total);
            }
            FetchEvent::Advanced { bytes } => self.advance(bytes),
            FetchEvent::Unpacking { bytes_total } => self.phase("unpack", bytes_total),
            FetchEvent::Verifying => self.begin(BAR_WITHOUT_COUNT, "verify", None),
            FetchEvent::Unverified { reason } => {
                self.session.note(&format!("warning: the file could not be verified: {reason}"));
            }
            FetchEvent::Done { path } if self.fetching => {
                self.clear();
                self.session.note(&format!("saved {}", path.display()));
            }
            _ => {}
        }
    }
}

//! State of a call of the program: output format, terminal, and signals.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anstyle::Style;
use indicatif::{
    MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle, WeakProgressBar,
};

use super::charset::is_ascii;
use super::failure::Failure;
use super::interrupts::Interrupts;
use super::output::for_stderr;
use super::terminal::TypingModes;
use super::visible::visible;
use super::watch;

/// One call of the program.
pub(crate) struct Session {
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Routes signals.
    pub(crate) interrupts: Interrupts,
    /// Modes of the terminal while a line is typed.
    pub(crate) typing: Arc<TypingModes>,
    bars: MultiProgress,
    latest_bar: Mutex<WeakProgressBar>,
    mid_line: AtomicBool,
}

impl Session {
    /// A session with the bars on stderr.
    pub(crate) fn new(json: bool) -> Session {
        Session {
            json,
            interrupts: Interrupts::default(),
            typing: Arc::default(),
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
            latest_bar: Mutex::default(),
            mid_line: AtomicBool::new(false),
        }
    }

    /// A progress bar on stderr, if that is a terminal; dropping it removes it.
    pub(crate) fn bar(&self, template: &str) -> Option<ProgressBar> {
        if !stderr().is_terminal() {
            return None;
        }
        let bar = self.bars.add(ProgressBar::no_length().with_finish(ProgressFinish::AndClear));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars(if is_ascii() { "##-" } else { "━━─" }));
        }
        *self.latest_bar.lock().unwrap_or_else(PoisonError::into_inner) = bar.downgrade();
        Some(bar)
    }

    /// Prints a note to stderr, above a bar if there is one.
    pub(crate) fn note(&self, text: &str) {
        self.styled_note(Style::new(), text);
    }

    /// As [`note`](Session::note), in a style, if stderr is a terminal and `NO_COLOR` is not set.
    pub(crate) fn styled_note(&self, style: Style, text: &str) {
        self.write_note(&format!("{style}{}{style:#}\n", visible(text)));
    }

    /// Prints a failure after which the command goes on.
    pub(crate) fn note_failure(&self, failure: &Failure) {
        self.write_note(&failure.text());
    }

    fn write_note(&self, styled: &str) {
        let text = for_stderr(styled);
        // A closed stderr must not make the command fail.
        let _ = self.bars.suspend(|| anstream::stderr().write_all(text.as_bytes()));
    }

    /// Records whether the output on the terminal ends in the middle of a line.
    pub(crate) fn set_mid_line(&self, mid_line: bool) {
        self.mid_line.store(mid_line, Ordering::Relaxed);
    }

    /// As [`restore_terminal`](Session::restore_terminal), after a signal. The echo `^C` of Ctrl-C
    /// follows the latest output. A bar fills its line, so the echo is on the next one: that line is cleared
    /// instead of the bar, which is one line further up.
    pub(crate) fn restore_after_interrupt(&self) {
        let bar = self.latest_bar.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        self.restore_terminal();
        if bar.is_some_and(|bar| !bar.is_finished()) {
            let _ = write!(stderr(), "\x1b[1A\r\x1b[2K");
        } else if self.mid_line.load(Ordering::Relaxed) && stdout().is_terminal() {
            let _ = writeln!(stderr());
        }
    }

    /// Restores the terminal's modes and its normal screen, and removes all bars.
    pub(crate) fn restore_terminal(&self) {
        self.typing.restore();
        watch::restore();
        let _ = self.bars.clear();
        self.bars.set_draw_target(ProgressDrawTarget::hidden());
    }
}

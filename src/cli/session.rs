//! What every command knows: the form of the output, the terminal, and where Ctrl-C goes.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::{
    MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle, WeakProgressBar,
};

use super::interrupts::Interrupts;
use super::visible::visible;

/// One call of the program.
pub(crate) struct Session {
    /// Print JSON.
    pub(crate) json: bool,
    /// Where Ctrl-C goes.
    pub(crate) interrupts: Interrupts,
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
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
            latest_bar: Mutex::default(),
            mid_line: AtomicBool::new(false),
        }
    }

    /// A progress bar on stderr, if that is a terminal. It is gone when it is dropped.
    pub(crate) fn bar(&self, template: &str) -> Option<ProgressBar> {
        if !stderr().is_terminal() {
            return None;
        }
        let bar = self.bars.add(ProgressBar::no_length().with_finish(ProgressFinish::AndClear));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━━─"));
        }
        *self.latest_bar.lock().unwrap_or_else(PoisonError::into_inner) = bar.downgrade();
        Some(bar)
    }

    /// Says something on stderr that is no error. With a bar on the screen, above it.
    pub(crate) fn note(&self, text: &str) {
        // A note that nobody can read is not worth failing for.
        let _ = self.bars.suspend(|| writeln!(anstream::stderr(), "{}", visible(text)));
    }

    /// Remembers whether output on the terminal stands in the middle of a line.
    pub(crate) fn set_mid_line(&self, mid_line: bool) {
        self.mid_line.store(mid_line, Ordering::Relaxed);
    }

    /// As [`restore_terminal`](Session::restore_terminal) after Ctrl-C, whose echo `^C` stands
    /// behind the latest output. A bar fills its line, so that the echo is on the next one: that
    /// one is cleared in place of the bar, and the bar is one line further up.
    pub(crate) fn restore_after_interrupt(&self) {
        let bar = self.latest_bar.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        self.restore_terminal();
        if bar.is_some_and(|bar| !bar.is_finished()) {
            let _ = write!(stderr(), "\x1b[1A\r\x1b[2K");
        } else if self.mid_line.load(Ordering::Relaxed) && stdout().is_terminal() {
            let _ = writeln!(stderr());
        }
    }

    /// Takes the bars from the screen, for good.
    pub(crate) fn restore_terminal(&self) {
        let _ = self.bars.clear();
        self.bars.set_draw_target(ProgressDrawTarget::hidden());
    }
}

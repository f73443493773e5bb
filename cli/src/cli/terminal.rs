//! The modes of the terminal while a line is typed, restored if a signal ends the program then.

#[cfg(unix)]
pub(crate) use unix::TypingModes;

#[cfg(not(unix))]
pub(crate) use elsewhere::TypingModes;

#[cfg(unix)]
mod unix {
    use std::io::{IsTerminal, Write, stderr, stdin, stdout};
    use std::sync::{Mutex, PoisonError};

    use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
    use nix::unistd::{getpgrp, tcgetpgrp};

    /// Ends the marking of pasted text, which a line editor switches on.
    const BRACKETED_PASTE_OFF: &[u8] = b"\x1b[?2004l";

    /// The modes from before a line editor changed them.
    #[derive(Debug, Default)]
    pub(crate) struct TypingModes(Mutex<Option<Termios>>);

    impl TypingModes {
        /// A line editor is about to change the modes of the terminal on stdin.
        pub(crate) fn begin(&self) {
            self.set(tcgetattr(stdin()).ok());
        }

        /// The line editor has restored them.
        pub(crate) fn end(&self) {
            self.set(None);
        }

        fn set(&self, modes: Option<Termios>) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = modes;
        }

        /// Restores the modes if a line is being typed.
        pub(crate) fn restore(&self) {
            let modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(modes) = &*modes else { return };
            // A process in the background would be stopped for changing the modes, and the shell has
            // set its own.
            if tcgetpgrp(stdin()) != Ok(getpgrp()) {
                return;
            }
            // A closed terminal needs no restoring.
            let _ = tcsetattr(stdin(), SetArg::TCSANOW, modes);
            let _ = match stdout().is_terminal() {
                true => stdout().write_all(BRACKETED_PASTE_OFF).and_then(|()| stdout().flush()),
                false => stderr().write_all(BRACKETED_PASTE_OFF),
            };
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    /// Other systems restore a console's modes with the program's end.
    #[derive(Debug, Default)]
    pub(crate) struct TypingModes;

    impl TypingModes {
        /// A line editor is about to change the modes.
        pub(crate) fn begin(&self) {}

        /// The line editor has restored them.
        pub(crate) fn end(&self) {}

        /// Restores the modes if a line is being typed.
        pub(crate) fn restore(&self) {}
    }
}

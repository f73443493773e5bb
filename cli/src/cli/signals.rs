//! The signals that ask the program to end.

use std::io;

/// Such a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C, or SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

impl Signal {
    /// Exit code of a program that the signal ended: 128 plus the signal's number.
    pub(crate) fn code(self) -> u8 {
        128 + match self {
            Signal::HangUp => 1,
            Signal::Interrupt => 2,
            Signal::Terminate => 15,
        }
    }
}

/// Receives the signals. From its creation on, none of them ends the process by itself.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// `None` if the program was started to survive a hang-up, as by nohup.
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// Starts to listen. Must be called on the async runtime.
    pub(crate) fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};

        let hang_up = (!ignores_hang_up()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
        })
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> io::Result<Signal> {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        let (told, signal) = tokio::select! {
            told = self.interrupt.recv() => (told, Signal::Interrupt),
            told = self.terminate.recv() => (told, Signal::Terminate),
            told = hang_up => (told, Signal::HangUp),
        };
        told.map(|()| signal).ok_or_else(|| io::Error::other("the signal handler has ended"))
    }
}

/// Whether the process was started with SIGHUP ignored, as by nohup. Where the system does not tell,
/// a program without a terminal on stdout and stderr keeps the way in which it was started.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    use std::io::IsTerminal;

    let status = std::fs::read_to_string("/proc/self/status").ok();
    let ignored = status.as_deref().and_then(|status| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    match ignored {
        // Bit 0 is signal 1, SIGHUP.
        Some(mask) => mask & 1 != 0,
        None => !io::stdout().is_terminal() && !io::stderr().is_terminal(),
    }
}

/// Receives Ctrl-C; other systems have no such signals.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Starts to listen.
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals)
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> io::Result<Signal> {
        tokio::signal::ctrl_c().await.map(|()| Signal::Interrupt)
    }
}

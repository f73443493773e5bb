//! Signals that ask the program to end: they do so, unless a command has claimed them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::signals::Signal;

/// Routes the signals.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct State {
    claimed: Option<Claimed>,
    /// The signal received since the claim.
    received: Option<Signal>,
    /// Whether the holder of the claim has seen it.
    seen: bool,
}

/// Signals of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claimed {
    All,
    CtrlC,
}

impl Interrupts {
    /// Until the claim is dropped, its holder receives all signals, and must end the command soon.
    pub(crate) fn claim(&self) -> Claim<'_> {
        self.claim_as(Claimed::All)
    }

    /// Until the claim is dropped, its holder receives Ctrl-C; other signals end the process.
    pub(crate) fn claim_ctrl_c(&self) -> Claim<'_> {
        self.claim_as(Claimed::CtrlC)
    }

    fn claim_as(&self, claimed: Claimed) -> Claim<'_> {
        *self.state() = State { claimed: Some(claimed), received: None, seen: false };
        Claim(self)
    }

    /// Notifies the holder of the claim. Returns false if the signal is not claimed, or if the holder
    /// has not seen an earlier one, for example because it is stuck in a write to a full pipe.
    pub(crate) fn deliver(&self, signal: Signal) -> bool {
        let mut state = self.state();
        let wanted = match state.claimed {
            None => false,
            Some(Claimed::All) => true,
            Some(Claimed::CtrlC) => signal == Signal::Interrupt,
        };
        if !wanted || (state.received.is_some() && !state.seen) {
            return false;
        }
        (state.received, state.seen) = (Some(signal), false);
        self.notify.notify_waiters();
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to receive signals.
#[derive(Debug)]
pub(crate) struct Claim<'a>(&'a Interrupts);

impl Claim<'_> {
    /// Completes when a signal was received after the claim was made.
    pub(crate) async fn interrupted(&self) -> Signal {
        loop {
            // Registered before the check, so that no signal is missed between the two.
            let told = self.0.notify.notified();
            if let Some(signal) = self.received() {
                return signal;
            }
            told.await;
        }
    }

    /// The latest signal since the claim was made.
    pub(crate) fn received(&self) -> Option<Signal> {
        let mut state = self.0.state();
        state.seen = state.received.is_some();
        state.received
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        *self.0.state() = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_interrupt_reaches_only_the_current_claim() {
        let interrupts = Interrupts::default();
        assert!(!interrupts.deliver(Signal::Interrupt));
        {
            let claim = interrupts.claim();
            assert!(interrupts.deliver(Signal::Interrupt));
            // Pressed before the await, for example while the prompt is read.
            assert_eq!(claim.interrupted().await, Signal::Interrupt);
            assert!(interrupts.deliver(Signal::Terminate));
            assert_eq!(claim.received(), Some(Signal::Terminate));
        }
        let claim = interrupts.claim();
        let later = claim.interrupted();
        let told = tokio::time::timeout(std::time::Duration::from_millis(20), later).await;
        assert!(told.is_err(), "an old interrupt stopped a new answer");
    }

    #[test]
    fn a_claim_of_ctrl_c_leaves_other_signals() {
        let interrupts = Interrupts::default();
        let _claim = interrupts.claim_ctrl_c();
        for signal in [Signal::Terminate, Signal::HangUp] {
            assert!(!interrupts.deliver(signal), "{signal:?}");
        }
        assert!(interrupts.deliver(Signal::Interrupt));
    }

    #[test]
    fn a_second_signal_ends_a_command_that_has_not_seen_the_first() {
        let interrupts = Interrupts::default();
        let _claim = interrupts.claim();
        assert!(interrupts.deliver(Signal::Terminate));
        assert!(!interrupts.deliver(Signal::Terminate));
    }
}

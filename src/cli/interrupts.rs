//! Ctrl-C: ends the process, unless a command has claimed it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Routes Ctrl-C.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    claimed: AtomicBool,
    /// Whether it was pressed since the claim.
    pressed: AtomicBool,
    notify: Notify,
}

impl Interrupts {
    /// Until the claim is dropped, its holder receives Ctrl-C.
    pub(crate) fn claim(&self) -> Claim<'_> {
        self.pressed.store(false, Ordering::SeqCst);
        self.claimed.store(true, Ordering::SeqCst);
        Claim(self)
    }

    /// Notifies the holder of the claim; returns false if there is none.
    pub(crate) fn deliver(&self) -> bool {
        let claimed = self.claimed.load(Ordering::SeqCst);
        if claimed {
            self.pressed.store(true, Ordering::SeqCst);
            self.notify.notify_waiters();
        }
        claimed
    }
}

/// The right to receive Ctrl-C.
#[derive(Debug)]
pub(crate) struct Claim<'a>(&'a Interrupts);

impl Claim<'_> {
    /// Completes when Ctrl-C was pressed after the claim was made.
    pub(crate) async fn interrupted(&self) {
        // Registered before the check, so that no press is missed between the two.
        let told = self.0.notify.notified();
        if !self.0.pressed.load(Ordering::SeqCst) {
            told.await;
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.claimed.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_interrupt_reaches_only_the_current_claim() {
        let interrupts = Interrupts::default();
        assert!(!interrupts.deliver());
        {
            let claim = interrupts.claim();
            assert!(interrupts.deliver());
            // Pressed before the await, for example while the prompt is read.
            claim.interrupted().await;
            assert!(interrupts.deliver());
        }
        let claim = interrupts.claim();
        let later = claim.interrupted();
        let told = tokio::time::timeout(std::time::Duration::from_millis(20), later).await;
        assert!(told.is_err(), "an old interrupt stopped a new answer");
    }
}

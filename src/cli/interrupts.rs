//! Ctrl-C: it ends the process, unless a command has asked to be told instead.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Where Ctrl-C goes.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    claimed: AtomicBool,
    /// Pressed since the claim.
    pressed: AtomicBool,
    notify: Notify,
}

impl Interrupts {
    /// From now on until the claim is dropped, Ctrl-C goes to its holder.
    pub(crate) fn claim(&self) -> Claim<'_> {
        self.pressed.store(false, Ordering::SeqCst);
        self.claimed.store(true, Ordering::SeqCst);
        Claim(self)
    }

    /// Tells the holder of the claim; false if there is none.
    pub(crate) fn deliver(&self) -> bool {
        let claimed = self.claimed.load(Ordering::SeqCst);
        if claimed {
            self.pressed.store(true, Ordering::SeqCst);
            self.notify.notify_waiters();
        }
        claimed
    }
}

/// The right to be told of Ctrl-C.
#[derive(Debug)]
pub(crate) struct Claim<'a>(&'a Interrupts);

impl Claim<'_> {
    /// Ready when Ctrl-C was pressed after the claim was made.
    pub(crate) async fn interrupted(&self) {
        // Made before the look, so that no press can fall between the two.
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
    async fn an_interrupt_reaches_only_the_answer_it_was_meant_for() {
        let interrupts = Interrupts::default();
        assert!(!interrupts.deliver());
        {
            let claim = interrupts.claim();
            assert!(interrupts.deliver());
            // Pressed before anybody waited: while the prompt was being read, for example.
            claim.interrupted().await;
            assert!(interrupts.deliver());
        }
        let claim = interrupts.claim();
        let later = claim.interrupted();
        let told = tokio::time::timeout(std::time::Duration::from_millis(20), later).await;
        assert!(told.is_err(), "an old interrupt stopped a new answer");
    }
}

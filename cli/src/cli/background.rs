//! Long work that a signal ends early.

use std::fmt::Arguments;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use lapwing_engine::Error;

use super::failure::Failure;
use super::session::Session;
use super::signals::Signal;

/// What work calls before each step: with the steps that are done, their number, and what the next one is. It breaks after a
/// signal.
pub(crate) type Step<'a> = dyn FnMut(usize, usize, Arguments<'_>) -> ControlFlow<()> + 'a;

/// Runs `work` on a separate thread, and shows its steps in the bar. `what` is named in an error.
pub(crate) async fn until_signal<T: Send + 'static>(
    what: &str,
    bar: Option<ProgressBar>,
    session: &Session,
    work: impl FnOnce(&mut Step<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, shown) = (Arc::clone(&stop), bar.clone());
    let work = tokio::task::spawn_blocking(move || {
        work(&mut |done, of, next| {
            if let Some(bar) = &shown {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
                bar.set_message(next.to_string());
            }
            match stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    });
    tokio::pin!(work);
    let claim = session.interrupts.claim();
    let mut received = Signal::Interrupt;
    let ended = tokio::select! {
        biased;
        signal = claim.interrupted() => {
            received = signal;
            stop.store(true, Ordering::Relaxed);
            session.restore_after_interrupt();
            (&mut work).await
        }
        ended = &mut work => ended,
    };
    bar.iter().for_each(ProgressBar::finish_and_clear);
    match ended {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.is_cancelled() => Err(Failure::Interrupted(received)),
        Ok(Err(error)) => Err(error.into()),
        Err(error) => Err(Failure::failed(format!("the {what} ended early: {error}"))),
    }
}

//! Long work that a signal ends early.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lapwing_engine::Error;

use super::failure::Failure;
use super::session::Session;
use super::signals::Signal;

/// Runs `work` on a separate thread. It calls its argument between steps, which breaks after a signal. `what` is named in an
/// error.
pub(crate) async fn until_signal<T: Send + 'static>(
    what: &str,
    session: &Session,
    work: impl FnOnce(&dyn Fn() -> ControlFlow<()>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let work = tokio::task::spawn_blocking(move || {
        work(&|| match stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
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
    match ended {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.is_cancelled() => Err(Failure::Interrupted(received)),
        Ok(Err(error)) => Err(error.into()),
        Err(error) => Err(Failure::failed(format!("the {what} ended early: {error}"))),
    }
}

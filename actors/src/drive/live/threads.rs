//! Threads of actors.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

use crate::error::RunError;

/// Starts an actor's thread; `on_end` receives its result, or an error if it panicked.
#[expect(clippy::disallowed_methods, reason = "drive owns the engine's threads")]
pub(super) fn spawn(
    name: &str,
    run: impl FnOnce() -> Result<(), RunError> + Send + 'static,
    on_end: impl FnOnce(Result<(), RunError>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let actor = name.to_owned();
    thread::Builder::new().name(format!("lapwing-{name}")).spawn(move || {
        // Nothing that the closure owns is used after a panic.
        on_end(catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            Err(RunError::ActorDied { actor, reason: panic_text(&*panic) })
        }));
    })
}

/// The text of a panic.
pub(in crate::drive) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked without a message".to_owned())
}
